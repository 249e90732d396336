/**
 * Recorded puts played back by many threads at once, in simulated time: locks, and a device behind some of the structures.
 *
 * A thread has its participant's puts for its own, one after the other without a pause. A put is the processor's time and the recorded
 * events; what lies in DRAM is in the processor's time, what lies in the device costs on top of it:
 *
 *     a cache line that the put has not touched yet is fetched from the device when it is written to, and the thread waits, as for a
 *     load; lines of one range are under way together. Less what DRAM would have taken for a line that is not in the caches.
 *     at its end the put's lines are written back, and leave the caches (clwb, on the processors that the presets were measured on).
 *     Nobody waits for that, unless the module's buffer is full.
 *
 * Owns: simulated time. Invariant: sections are played in the order of their beginnings, a lock belongs to one thread at a time and
 * goes to who has waited longest.
 */
import { DeviceModel, type ModuleFacts } from '../devices/model/device-model.js';
import { type DevicePreset, PRESETS } from '../devices/model/presets.js';
import { type Put, PutEvent, type PutTrace } from './put-trace.js';
import { STRUCTURES, type Structure } from './structures.js';

const CACHE_LINE_BYTES = 64;

export interface PutCosts {
  /** The processor's nanoseconds of a put outside of the store: socket, protocol, reply. */
  readonly requestNs: number;
  /** Of taking a chunk and filling it. */
  readonly stageNs: number;
  /** Of finding the key, linking the item, and freeing the old one. */
  readonly linkNs: number;
}

export interface PutCase {
  /** What lies in the device. */
  readonly inDevice: ReadonlySet<Structure>;
  /** What the processor's caches hold in the DRAM case: a fetch is charged in full. */
  readonly cached: ReadonlySet<Structure>;
  /** The map's lock is taken before the item is staged. */
  readonly stagesUnderLock: boolean;
}

export interface PutModelOptions {
  readonly device: DevicePreset;
  readonly costs: PutCosts;
  /** Locks of the map: shards share them in turn. */
  readonly mapLocks: number;
  /** Puts of each thread; the trace is gone through again as often as needed. */
  readonly puts: number;
}

export interface PutOutcome {
  readonly perSecond: number;
  readonly meanLatencyNs: number;
  /** Of the time, the part in which the busiest lock was held. */
  readonly lockBusy: number;
  readonly dimms: readonly ModuleFacts[];
  readonly elapsedNs: number;
}

class Lock {
  owner = -1;
  heldNs = 0;
  sinceNs = 0;
  readonly waiting: number[] = [];
}

/** Neighbouring cache lines in the device, and DRAM's part of their fetch. */
type Range = readonly [address: number, bytes: number, dramNs: number];

/** What a thread does next. */
interface Step {
  readonly kind: 'work' | 'lock' | 'unlock' | 'writeBack';
  readonly cpuNs: number;
  readonly lock: number;
  readonly ranges: readonly Range[];
}

class Thread {
  nowNs = 0;
  startedNs = 0;
  step = 0;
  put = 0;
  done = 0;
  latencyNs = 0;
}

/** Distinct cache lines as ranges of neighbours, in the order of their first store. */
function rangesOf(lines: ReadonlyMap<number, number>): Range[] {
  const ranges: [address: number, bytes: number, dramNs: number][] = [];
  for (const [line, dramNs] of lines) {
    const last = ranges.at(-1);
    const address = line * CACHE_LINE_BYTES;
    if (last !== undefined && last[0] + last[1] === address && last[2] === dramNs) last[1] += CACHE_LINE_BYTES;
    else ranges.push([address, CACHE_LINE_BYTES, dramNs]);
  }
  return ranges;
}

export function simulatePuts(trace: PutTrace, theCase: PutCase, options: PutModelOptions): PutOutcome {
  return new Simulation(trace, theCase, options).run();
}

class Simulation {
  readonly #options: PutModelOptions;
  readonly #case: PutCase;
  readonly #trace: PutTrace;
  readonly #model: DeviceModel;
  readonly #programs: readonly (readonly (readonly Step[])[])[];
  readonly #threads: Thread[];
  readonly #locks: Lock[] = [];
  readonly #lockNumbers = new Map<number, number>();
  readonly #inDevice: readonly boolean[];
  readonly #dramNs: readonly number[];

  constructor(trace: PutTrace, theCase: PutCase, options: PutModelOptions) {
    this.#trace = trace;
    this.#case = theCase;
    this.#options = options;
    this.#model = new DeviceModel(options.device, trace.poolBytes);
    this.#inDevice = STRUCTURES.map((structure) => theCase.inDevice.has(structure));
    this.#dramNs = STRUCTURES.map((structure) => (theCase.cached.has(structure) ? 0 : PRESETS.dram.randomReadNs));
    for (let i = 0; i < options.mapLocks; i++) this.#locks.push(new Lock());
    this.#programs = trace.puts.map((puts) => puts.map((put) => this.#compile(put)));
    this.#threads = trace.puts.map(() => new Thread());
  }

  #lockNumber(address: number): number {
    let number = this.#lockNumbers.get(address);
    if (number !== undefined) return number;
    if (this.#trace.isShardLock(address)) number = (address / CACHE_LINE_BYTES) % this.#options.mapLocks;
    else number = this.#locks.push(new Lock()) - 1;
    this.#lockNumbers.set(address, number);
    return number;
  }

  #compile({ kinds, addresses, bytes, structures }: Put): Step[] {
    const { requestNs, stageNs, linkNs } = this.#options.costs;
    const mapLock = kinds.findIndex((kind, i) => kind === PutEvent.LOCK && this.#trace.isShardLock(addresses[i]));
    if (mapLock < 0) throw new Error('a put without the lock of its shard');
    const steps: Step[] = [];
    const lock = this.#lockNumber(addresses[mapLock]);
    let lines = new Map<number, number>();
    let cpuNs = requestNs;
    const touched = new Set<number>();
    const written: Range[] = [];
    const endSection = (): void => {
      const ranges = rangesOf(lines);
      written.push(...ranges);
      steps.push({ kind: 'work', cpuNs, lock: -1, ranges });
      lines = new Map();
      cpuNs = 0;
    };
    if (this.#case.stagesUnderLock) {
      endSection();
      steps.push({ kind: 'lock', cpuNs: 0, lock, ranges: [] });
    }
    cpuNs += stageNs;
    for (const [i, kind] of kinds.entries()) {
      if (kind === PutEvent.WRITE) {
        this.#touch(lines, touched, addresses[i], bytes[i], structures[i]);
        continue;
      }
      if (i === mapLock && this.#case.stagesUnderLock) {
        // Held already: the section goes on.
        cpuNs += linkNs;
        continue;
      }
      endSection();
      if (i === mapLock) cpuNs += linkNs;
      steps.push({
        kind: kind === PutEvent.LOCK ? 'lock' : 'unlock',
        cpuNs: 0,
        lock: this.#lockNumber(addresses[i]),
        ranges: [],
      });
    }
    endSection();
    steps.push({ kind: 'writeBack', cpuNs: 0, lock: -1, ranges: written });
    return steps;
  }

  #touch(lines: Map<number, number>, touched: Set<number>, address: number, bytes: number, structure: number): void {
    if (!this.#inDevice[structure]) return;
    for (let line = Math.floor(address / CACHE_LINE_BYTES); line * CACHE_LINE_BYTES < address + bytes; line++) {
      if (touched.has(line)) continue;
      touched.add(line);
      lines.set(line, this.#dramNs[structure]);
    }
  }

  run(): PutOutcome {
    const threads = this.#threads;
    const runnable = new Set<number>(threads.keys());
    let elapsedNs = 0;
    let done = 0;
    let latencyNs = 0;
    // Half of the puts warm the buffers up.
    const total = this.#options.puts * threads.length;
    let measuredFromNs = 0;
    let measured = 0;
    while (done < total) {
      let next = -1;
      for (const i of runnable) if (next < 0 || threads[i].nowNs < threads[next].nowNs) next = i;
      if (next < 0) throw new Error('all threads wait for locks');
      const thread = threads[next];
      const program = this.#programs[next][thread.put];
      const step = program[thread.step];
      if (step.kind === 'work') thread.nowNs = this.#work(step, thread.nowNs);
      else if (step.kind === 'writeBack') thread.nowNs = this.#writeBack(step, thread.nowNs);
      else if (step.kind === 'lock') {
        if (!this.#take(this.#locks[step.lock], next, thread.nowNs)) {
          runnable.delete(next);
          continue;
        }
      } else {
        const woken = this.#release(this.#locks[step.lock], thread.nowNs);
        if (woken >= 0) {
          threads[woken].nowNs = thread.nowNs;
          threads[woken].step++;
          runnable.add(woken);
        }
      }
      if (++thread.step < program.length) continue;
      done++;
      if (done > total / 2) {
        if (measured++ === 0) measuredFromNs = thread.nowNs;
        latencyNs += thread.nowNs - thread.startedNs;
      }
      elapsedNs = Math.max(elapsedNs, thread.nowNs);
      thread.step = 0;
      thread.put = (thread.put + 1) % this.#programs[next].length;
      thread.startedNs = thread.nowNs;
    }
    const busiest = Math.max(...this.#locks.map(({ heldNs }) => heldNs));
    return {
      perSecond: ((measured - 1) * 1e9) / (elapsedNs - measuredFromNs),
      meanLatencyNs: latencyNs / measured,
      lockBusy: busiest / elapsedNs,
      dimms: this.#model.modules(),
      elapsedNs,
    };
  }

  #work({ cpuNs, ranges }: Step, startNs: number): number {
    let nowNs = startNs;
    for (const [address, bytes, dramNs] of ranges) {
      nowNs += Math.max(0, this.#model.read(address, bytes, nowNs) - nowNs - dramNs);
    }
    return nowNs + cpuNs;
  }

  #writeBack({ ranges }: Step, nowNs: number): number {
    const { writeNs } = this.#options.device;
    let acceptedNs = nowNs;
    for (const [address, bytes] of ranges) {
      acceptedNs = Math.max(acceptedNs, this.#model.write(address, bytes, nowNs) - writeNs);
    }
    return acceptedNs;
  }

  #take(lock: Lock, thread: number, nowNs: number): boolean {
    if (lock.owner >= 0) {
      lock.waiting.push(thread);
      return false;
    }
    lock.owner = thread;
    lock.sinceNs = nowNs;
    return true;
  }

  /** The thread that has it now, or -1. */
  #release(lock: Lock, nowNs: number): number {
    lock.heldNs += nowNs - lock.sinceNs;
    lock.owner = lock.waiting.shift() ?? -1;
    lock.sinceNs = nowNs;
    return lock.owner;
  }
}

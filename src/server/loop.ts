/**
 * The data plane of one worker: poll, handle events, let background work have its slice, again; never back to libuv.
 *
 *   poll(sends of the last turn) -> clock -> enterBatch -> events -> drivers write replies -> background -> leaveBatch
 *
 * Owns the order of things in a turn. The invariant: between enterBatch and leaveBatch nothing waits or sleeps, and what
 * one connection can cost in one turn is bounded (receiveBytes of the pump, MAX_REQUESTS_PER_TURN of the drivers).
 */
import type { Hub } from '../commands/messaging/hub.js';
import type { Settings, SizeCheck } from '../config/index.js';
import { Bytes } from '../layout/bytes.js';
import { Counter, type CounterRow, type CounterTotals } from '../layout/counters.js';
import { addon, Event, EventKind, Gauge, type Pump } from '../native/addon.js';
import { Closing, type Driver, type DriverClient } from '../protocol/driver.js';
import type { Output } from '../protocol/output.js';
import { Admission } from './admission.js';
import { LoopClients } from './client-host.js';
import { ClientMemory } from './client-memory.js';
import type { Clock } from './clock.js';
import { Connections } from './connections.js';
import type { HeldReplies } from './held-replies.js';
import { Limits } from './limits.js';
import type { OutputHolds } from './output-holds.js';
import type { SaveSchedule } from './save-schedule.js';
import { ScriptTurns } from './script-turns.js';
import { ShutOut } from './shut-out.js';
import { Slices } from './slices.js';
import { answerTopic } from './topics.js';
import { type ControlHost, HELD_BACK_MS, type WorkerControl } from './worker-control.js';

/** What the loop needs of the keyspace. */
export interface LoopStore {
  /** Wall-clock milliseconds of this turn. */
  setClock(ms: number): void;
  /** False = a long script runs alone: this turn must do without the store. */
  tryEnterBatch(): boolean;
  leaveBatch(): void;
  /** Expiry, reclaim, purge for about so long; true when there is more to do now. */
  background(budgetMicroseconds: number): boolean;
  keepsExpired: boolean;
  /** The bytes of a region send have left. */
  unpin(token: number): void;
  setPolicy(policy: Settings['maxmemoryPolicy']): void;
  setLfu(logFactor: number, decayMinutes: number): void;
  setMaxMemory(bytes: number): void;
  readonly sizes: {
    set(dramBytes: number, capacityBytes: number): void;
    problem(dramBytes: number, capacityBytes: number): ReturnType<SizeCheck>;
  };
  /** Memory outside the store that counts as used. */
  chargeClients(bytes: number): void;
}

export interface LoopParts {
  readonly pump: Pump;
  readonly holds: OutputHolds;
  readonly output: Output;
  readonly store: LoopStore;
  readonly clock: Clock;
  readonly counters: CounterRow;
  readonly totals: CounterTotals;
  readonly control: WorkerControl;
  /** By ListenerKind. */
  readonly drivers: readonly Driver[];
  /** Messages between workers; absent in tests of the loop alone. */
  readonly hub?: Hub;
  /** Of a durable pool. */
  readonly held?: HeldReplies | undefined;
  /** A further driver for Redis clients, for the turns within a long script. */
  readonly makeScriptDriver: () => Driver;
  readonly saveSchedule?: SaveSchedule;
}

/** How often a worker that a script shuts out of the store looks whether it has ended. */
const SHUT_OUT_MS = 10;
/** Most milliseconds one poll waits. */
const POLL_MAX_MS = 1000;

export class Loop implements ControlHost {
  readonly connections: Connections;
  readonly pump: Pump;
  readonly holds: OutputHolds;
  readonly control: WorkerControl;
  readonly hub: Hub | null;
  nowMs: number;

  readonly #output: Output;
  readonly #store: LoopStore;
  readonly #clock: Clock;
  readonly #values: Float64Array;
  readonly #drivers: readonly Driver[];
  readonly #limits: Limits;
  readonly #held: HeldReplies | null;
  readonly #events: Int32Array;
  readonly #input: Bytes;
  /** Requests too large for the input buffer lie in arenas of their own. */
  readonly #inputs = new Map<number, Bytes>();
  /** Connections to close after this turn's replies have been handed over. */
  readonly #closing: number[] = [];
  /** Turns go without the store, until a script ends. */
  #isShutOut = false;
  readonly #shutOut: ShutOut;
  readonly #scriptTurns: ScriptTurns;
  readonly #clientMemory: ClientMemory;
  readonly #admission: Admission;
  readonly #slices: Slices;
  /** Events of the turn, and the next one to handle: a script's turns within the turn go on from there. */
  #eventCount = 0;
  #nextEvent = 0;
  /** The record of the connection that is being fed. */
  #fedEvent = 0;
  #bytesOutSeen = 0;
  #stopDeadlineMs = 0;

  constructor(parts: LoopParts) {
    this.pump = parts.pump;
    this.holds = parts.holds;
    this.control = parts.control;
    this.connections = new Connections(parts.counters);
    this.#shutOut = new ShutOut(parts.pump, this.connections);
    this.#output = parts.output;
    this.#store = parts.store;
    this.#clock = parts.clock;
    this.#values = parts.counters.values;
    this.#drivers = parts.drivers;
    this.hub = parts.hub ?? null;
    this.#held = parts.held ?? null;
    this.#events = new Int32Array(parts.pump.events);
    this.#input = new Bytes(parts.pump.input, parts.pump.inputArena);
    this.#scriptTurns = new ScriptTurns(
      parts.pump,
      parts.output,
      this.connections,
      this.#events,
      parts.makeScriptDriver,
    );
    const { saveSchedule, store: background } = parts;
    const work = (budget: number): boolean => {
      saveSchedule?.look();
      return background.background(budget);
    };
    this.#slices = new Slices(work, parts.clock, parts.control, this.#values);
    this.nowMs = parts.clock.nowMs;
    parts.control.attach(this);
    this.#limits = new Limits(parts.pump, parts.store, parts.control, this.connections, this.hub);
    const { pump, control, counters, totals, store, output, drivers } = parts;
    this.#admission = new Admission({
      ...{ pump, output, control, drivers, connections: this.connections, limits: this.#limits },
      values: this.#values,
      closing: this.#closing,
    });
    this.#clientMemory = new ClientMemory({
      ...{ pump, control, counters, totals, connections: this.connections, hub: this.hub },
      charge: (bytes) => store.chargeClients(bytes),
      close: (conn) => this.closeClient(conn, false),
    });
    parts.hub?.attach(new LoopClients(this, parts.clock, this.#limits));
  }

  /** Runs until stop() and the last connection's end. */
  run(): void {
    while (this.#stopDeadlineMs === 0) this.turn(this.#timeoutMs());
    this.#finish();
  }

  turn(timeoutMs: number): void {
    const output = this.#output;
    const hub = this.hub;
    const count = this.pump.poll(output.sendCount, timeoutMs);
    output.restart();
    this.#held?.release();
    hub?.awake();
    this.nowMs = this.#clock.tick();
    // For a script that goes on meanwhile time stands still.
    if (!this.#scriptTurns.isActive) this.#store.setClock(this.nowMs);
    this.#store.keepsExpired = this.control.isPaused;
    const values = this.#values;
    values[Counter.turns]++;

    const monotonicMs = this.#clock.monotonicMs;
    const isSliceDue = this.#slices.isDue(monotonicMs);
    const isMailDue = hub?.isDue(monotonicMs) === true;
    const heldKib = this.#events[this.#events.length - Event.WORDS + Gauge.heldKib];
    const isReportDue = this.#clientMemory.isDue(heldKib, monotonicMs);
    if (count > 0 || isSliceDue || isMailDue || isReportDue || this.control.isHoldingBack) {
      if (this.#store.tryEnterBatch()) {
        if (this.#isShutOut) this.#endShutOut();
        if (isMailDue) hub?.turn(monotonicMs);
        if (this.control.isHoldingBack) this.control.tryHeldBack(monotonicMs);
        this.#handleAll(count);
        if (isSliceDue) this.#slices.run(count > 0);
        // What memcached's commands and the background have told this worker's own clients, and what is said once a turn.
        hub?.endTurn();
        if (isReportDue) this.#clientMemory.report(monotonicMs);
        this.#store.leaveBatch();
      } else {
        this.#isShutOut = true;
        this.#slices.postpone(monotonicMs + SHUT_OUT_MS);
        this.#handleAll(count);
      }
    }
    this.#held?.endTurn();
    if (count === 0) values[Counter.idleTurns]++;
    values[Counter.bytesOut] += output.totalBytes - this.#bytesOutSeen;
    this.#bytesOutSeen = output.totalBytes;

    this.control.flushLines();
    if (this.control.isPaused) this.control.checkPause(this.nowMs);
    this.#slices.watchClock(monotonicMs);
    if (this.#closing.length > 0) this.#closeAfterReplies();
  }

  #timeoutMs(): number {
    if (this.#slices.hasMore) return 0;
    let waitMs = Math.min(this.#slices.nextAtMs - addon.monotonicMs(), POLL_MAX_MS);
    if (this.control.isHoldingBack) waitMs = Math.min(waitMs, HELD_BACK_MS);
    if (this.control.isPaused) waitMs = Math.min(waitMs, this.control.pauseLeftMs(this.nowMs));
    if (this.hub !== null) waitMs = Math.min(waitMs, this.hub.sleep(this.#clock.monotonicMs));
    // Rounded up: waking a fraction of a millisecond early would spin.
    return waitMs <= 0 ? 0 : Math.ceil(waitMs);
  }

  #handleAll(count: number): void {
    this.#eventCount = count;
    this.#nextEvent = 0;
    while (this.#nextEvent < this.#eventCount) this.#handle(this.#nextEvent++ * Event.WORDS);
  }

  /**
   * A script of this worker has run for longer than the limit, and is asked again every so often: one turn for everybody else, without the
   * store. True = the server is to stop.
   */
  serveDuringScript(): boolean {
    const turns = this.#scriptTurns;
    const output = this.#output;
    if (!turns.isActive) {
      const event = this.#fedEvent;
      const conn = this.#events[event + Event.conn];
      const client = this.connections.at(conn)!;
      turns.begin(client, event, this.connections.drivers[conn]!.consumedByNow());
      this.#isShutOut = true;
      while (this.#nextEvent < this.#eventCount) this.#handle(this.#nextEvent++ * Event.WORDS);
    }
    const count = this.pump.poll(output.sendCount, 0);
    output.restart();
    this.nowMs = this.#clock.tick();
    this.#handleAll(count);
    if (this.#closing.length > 0) this.#closeAfterReplies();
    return this.#stopDeadlineMs !== 0;
  }

  /** That script has ended and is about to reply. */
  endServing(): void {
    this.#scriptTurns.end();
  }

  #handle(event: number): void {
    const events = this.#events;
    const conn = events[event + Event.conn];
    switch (events[event + Event.kind]) {
      case EventKind.DATA:
        this.#data(event, conn);
        return;
      case EventKind.SENT:
        this.#store.unpin(events[event + Event.aux]);
        return;
      case EventKind.INTO_DONE:
        this.#intoDone(conn, events[event + Event.length]);
        return;
      case EventKind.ACCEPT:
        this.#admission.accept(conn, events[event + Event.aux], this.nowMs);
        return;
      case EventKind.CLOSE:
        this.#admission.closed(conn, events[event + Event.aux]);
        return;
      case EventKind.DATAGRAM:
        this.#datagram(event, conn);
        return;
      case EventKind.WAKE:
        this.control.drain();
        return;
      case EventKind.PEER_END:
        this.#peerEnded(conn);
        return;
    }
  }

  #data(event: number, conn: number): void {
    const events = this.#events;
    const length = events[event + Event.length];
    const client = this.connections.at(conn);
    if (client === null || client.closing !== Closing.NO) {
      events[event + Event.consumed] = length;
      return;
    }
    if (client.suspended || this.control.isAllPaused) {
      if (!client.suspended) this.control.waitForUnpause(client);
      this.pump.pauseReading(conn, true);
      events[event + Event.consumed] = 0;
      events[event + Event.aux] = 1;
      return;
    }
    const driver = this.connections.drivers[conn]!;
    if (this.#isShutOut && !driver.answersShutOut(client)) {
      this.#shutOut.wait(client);
      events[event + Event.consumed] = 0;
      events[event + Event.aux] = 1;
      return;
    }
    const offset = events[event + Event.offset];
    const output = this.#output;
    const bytesOutBefore = output.totalBytes;
    client.again = false;
    output.begin(conn);
    let consumed: number;
    if (this.#scriptTurns.isActive) {
      consumed = this.#scriptTurns.driver.feed(client, this.#inputOf(event), offset, offset + length);
    } else {
      this.#fedEvent = event;
      consumed = driver.feed(client, this.#inputOf(event), offset, offset + length);
      if (this.#scriptTurns.takeBack()) {
        output.end();
        this.#endShutOut();
        if (this.connections.at(conn) === client) this.#afterDriver(client, conn);
        return;
      }
    }
    output.end();
    events[event + Event.consumed] = consumed;
    events[event + Event.aux] = client.again || client.suspended ? 1 : 0;
    this.#values[Counter.bytesIn] += consumed;
    this.connections.bytesIn[conn] += consumed;
    this.connections.bytesOut[conn] += output.totalBytes - bytesOutBefore;
    this.connections.activeAtMs[conn] = this.nowMs;
    this.#afterDriver(client, conn);
  }

  #endShutOut(): void {
    this.#isShutOut = false;
    this.#shutOut.end((conn, length) => this.#intoDone(conn, length));
  }

  #intoDone(conn: number, length: number): void {
    const client = this.connections.at(conn);
    if (client === null || client.closing !== Closing.NO) return;
    if (this.#isShutOut) return this.#shutOut.keepArrived(client, length);
    this.#values[Counter.bytesIn] += length;
    this.connections.bytesIn[conn] += length;
    this.connections.activeAtMs[conn] = this.nowMs;
    client.intoLength = 0;
    this.#output.begin(conn);
    this.connections.drivers[conn]!.resumeInto(client);
    this.#output.end();
    this.#afterDriver(client, conn);
  }

  /** What a driver asked for while it had the client. */
  #afterDriver(client: DriverClient, conn: number): void {
    if (client.closing !== Closing.NO) {
      this.closeClient(conn, client.closing === Closing.AFTER_REPLY);
      return;
    }
    if (client.intoLength > 0) {
      this.pump.receiveInto(conn, client.intoArena, client.intoOffset, client.intoLength);
      client.intoLength = 0;
    }
    if (client.suspended) this.pump.pauseReading(conn, true);
  }

  /** One that waits for an answer or a pause still gets its replies; a blocked one, as in Redis, does not wait any longer. */
  #peerEnded(conn: number): void {
    const client = this.connections.at(conn);
    if (client !== null && this.hub?.endsWithPeer(client) === true) this.closeClient(conn, false);
  }

  #datagram(event: number, slot: number): void {
    const events = this.#events;
    const offset = events[event + Event.offset];
    const length = events[event + Event.length];
    // Datagrams may be lost; nothing keeps them.
    if (this.#isShutOut) return;
    this.#values[Counter.datagrams]++;
    this.#values[Counter.bytesIn] += length;
    this.#drivers[events[event + Event.aux]].datagram(slot, this.#inputOf(event), offset, offset + length);
  }

  #inputOf(event: number): Bytes {
    const arena = this.#events[event + Event.arena];
    if (arena < 0) return this.#input;
    let input = this.#inputs.get(arena);
    if (input === undefined || input.length === 0) {
      input = new Bytes(addon.wrapArena(arena), arena);
      this.#inputs.set(arena, input);
    }
    return input;
  }

  settingsChanged(): void {
    this.#limits.settingsChanged();
  }

  sizeProblem(dramBytes: number, capacityBytes: number): ReturnType<SizeCheck> {
    return this.#store.sizes.problem(dramBytes, capacityBytes);
  }

  // ---- the control plane's wishes

  answerTopic(topic: Parameters<ControlHost['answerTopic']>[0], question: never): unknown {
    return answerTopic(this, topic, question);
  }

  suspend(conn: number): void {
    this.pump.pauseReading(conn, true);
  }

  resume(conn: number, clientId: number, write: (() => void) | null): void {
    const client = this.connections.withId(conn, clientId);
    if (client === null) return;
    client.suspended = false;
    if (write !== null) {
      this.#output.begin(conn);
      write();
      this.#output.end();
    }
    this.#afterDriver(client, conn);
    if (!client.suspended && client.closing === Closing.NO) this.pump.pauseReading(conn, false);
  }

  writeTo(conn: number, clientId: number, write: () => void): void {
    if (this.connections.withId(conn, clientId) === null) return;
    this.#output.begin(conn);
    write();
    this.#output.end();
  }

  unsentBytes(conn: number): number {
    return this.pump.outputQueued(conn);
  }

  descriptorOf(conn: number): number {
    return this.pump.fd(conn);
  }

  closeClient(conn: number, afterReply: boolean): void {
    const client = this.connections.at(conn);
    if (client === null) return;
    if (afterReply) {
      client.closing = Closing.AFTER_REPLY;
      if (!client.suspended) this.#closing.push(conn);
      return;
    }
    client.closing = Closing.NOW;
    this.connections.remove(conn);
    this.pump.close(conn, true);
  }

  #closeAfterReplies(): void {
    this.pump.flush(this.#output.sendCount);
    this.#output.restart();
    for (const conn of this.#closing) this.pump.close(conn, false);
    this.#closing.length = 0;
  }

  stop(graceMs: number): void {
    this.#stopDeadlineMs = this.#clock.monotonicMs + Math.max(1, graceMs);
  }

  /** What is written is sent, for as long as the grace lasts; no new request is read. */
  #finish(): void {
    this.pump.pauseAccept(true);
    this.pump.flush(this.#output.sendCount);
    this.#output.restart();
    for (let conn = 0; conn < this.connections.clients.length; conn++) {
      const client = this.connections.clients[conn];
      if (client === null) continue;
      client.closing = Closing.AFTER_REPLY;
      this.pump.close(conn, false);
    }
    while (this.connections.count > 0) {
      const leftMs = this.#stopDeadlineMs - addon.monotonicMs();
      if (leftMs <= 0) break;
      this.turn(Math.ceil(Math.min(leftMs, POLL_MAX_MS)));
    }
    for (let conn = 0; conn < this.connections.clients.length; conn++) this.connections.remove(conn);
    this.pump.destroy();
  }
}

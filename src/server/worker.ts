/**
 * A worker: attaches to the store, listens, runs the loop until it is told to stop; in a thread of its own (start-worker.ts), or in the main
 * thread of a test server.
 *
 * A start that fails is reported to the main thread with its code; a loop that fails ends the thread with the error, and
 * the main thread starts another one. The invariant: 'ready' is posted after the first turn, when the listeners answer.
 */
import { memcachedListeners, type Settings } from '../config/index.js';
import { Bytes } from '../layout/bytes.js';
import { Counter, CounterRow, CounterTotals } from '../layout/counters.js';
import { addon, type Pump } from '../native/addon.js';
import { Output } from '../protocol/output.js';
import { encodeEffects } from '../rdb/value-encoder.js';
import { attach, detach } from '../store/attach.js';
import type { Keyspace } from '../store/keyspace.js';
import { Clock } from './clock.js';
import { saveCompiled } from './compile-cache.js';
import { createDrivers } from './drivers.js';
import { HeldReplies } from './held-replies.js';
import { Loop } from './loop.js';
import { ListenerKind, reportOf, type ToMain } from './messages.js';
import { OutputHolds } from './output-holds.js';
import { SaveSchedule } from './save-schedule.js';
import { WorkerControl } from './worker-control.js';
import type { WorkerStart } from './worker-start.js';

const MIB = 1024 * 1024;
/**
 * Received bytes of one turn, all connections, and of one connection. With 64 KiB a connection, a pipeline of 1,000 small
 * requests is one turn; a turn of all connections together stays about a millisecond.
 */
const INPUT_BYTES = 4 * MIB;
const RECEIVE_BYTES = 64 * 1024;
/** Replies of one turn; more is flushed within the turn. */
const OUTPUT_BYTES = 4 * MIB;
const EVENTS_MAX = 1024;

function listen(pump: Pump, settings: Settings): void {
  const { bind, port, unix, memcachedUnix, unixMode, tcpBacklog } = settings;
  if (port !== 0) for (const host of bind) pump.listenTcp(host, port, tcpBacklog, ListenerKind.REDIS);
  for (const at of memcachedListeners(settings)) {
    if (at.port !== 0) pump.listenTcp(at.host, at.port, tcpBacklog, ListenerKind.MEMCACHED);
    if (at.udpPort !== 0) pump.listenUdp(at.host, at.udpPort, ListenerKind.MEMCACHED_UDP);
  }
  if (unix !== '') pump.listenUnix(unix, unixMode, tcpBacklog, ListenerKind.REDIS_UNIX);
  if (memcachedUnix !== '') pump.listenUnix(memcachedUnix, unixMode, tcpBacklog, ListenerKind.MEMCACHED_UNIX);
}

function createLoop(start: WorkerStart, control: WorkerControl, counters: CounterRow, store: Keyspace): Loop {
  const pump = addon.createPump({
    inputBytes: INPUT_BYTES,
    outputBytes: OUTPUT_BYTES,
    maxEvents: EVENTS_MAX,
    receiveBytes: RECEIVE_BYTES,
  });
  const output = new Output(new Bytes(pump.output, pump.outputArena), new Int32Array(pump.sends), (sendCount) =>
    pump.flush(sendCount),
  );
  const totals = new CounterTotals(start.counterBlock, start.counterBaseline);
  const { drivers, hub, makeScriptDriver } = createDrivers({
    keyspace: store,
    output,
    control,
    counters,
    totals,
    sharedScripts: start.sharedScripts,
  });
  const clock = new Clock(addon);
  const saveSchedule = new SaveSchedule(store, counters.shared, control);
  const { effects } = store.feed;
  const holds = new OutputHolds(pump);
  const held = effects === null ? undefined : new HeldReplies(pump, holds, output, store, effects, control.settings);
  const parts = {
    pump,
    holds,
    output,
    store,
    clock,
    counters,
    totals,
    control,
    drivers,
    hub,
    makeScriptDriver,
    saveSchedule,
  };
  const loop = new Loop({ ...parts, held });
  listen(pump, start.settings);
  return loop;
}

export interface StartedWorker {
  /** Wakes it when something has been posted to its port. */
  readonly wakeFd: number;
  /** Serves for so long, but not beyond a turn in which a client had to wait for the control plane. */
  serveFor(milliseconds: number): void;
  /** Serves until it is told to stop, and leaves the store. */
  run(): void;
}

/** Throws when it cannot attach or listen. */
export function startWorker(start: WorkerStart): StartedWorker {
  const counters = new CounterRow(start.counterBlock, start.workerIndex);
  const control = new WorkerControl(start, counters);
  const store = attach(start.store);
  encodeEffects(store);
  store.onLoss = (items, pages) => {
    const what = `${pages} MiB of the capacity tier cannot be read any more: ${items} items are lost with them`;
    control.log(
      'warning',
      `${what}, and the tier takes no new ones; look at its file and medium, and make the pool anew`,
    );
  };
  const loop = createLoop(start, control, counters, store);
  loop.turn(0);
  const { wakeFd } = loop.pump;
  control.post({ type: 'ready', wakeFd });
  return {
    wakeFd,
    serveFor: (milliseconds) => {
      const endMs = addon.monotonicMs() + milliseconds;
      for (let leftMs = milliseconds; leftMs > 0; leftMs = endMs - addon.monotonicMs()) {
        loop.turn(Math.ceil(leftMs));
        if (counters.values[Counter.suspendedClients] > 0) return;
      }
    },
    run: () => {
      loop.run();
      detach(store);
      start.port.close();
    },
  };
}

/** In a thread of its own, which ends with it. */
export function runWorker(start: WorkerStart): void {
  let worker: StartedWorker;
  try {
    worker = startWorker(start);
  } catch (error) {
    start.port.postMessage({ type: 'failed', error: reportOf(error) } satisfies ToMain);
    start.port.close();
    return;
  }
  saveCompiled();
  worker.run();
}

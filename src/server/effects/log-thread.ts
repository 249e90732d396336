/**
 * Entry of the thread that writes the effect log: a participant of the pool that takes what the others append, and waits for the medium.
 *
 * Invariant: it never takes a lock of the store, so whoever waits for room in its ring while holding some is served.
 */
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { Super } from '../../layout/superblock.js';
import { addon } from '../../native/addon.js';
import { attach, detach } from '../../store/attach.js';
import type { StoreHandle } from '../../store/open.js';
import type { Level } from '../messages.js';
import { LogWriter, type Policy } from './log-writer.js';

export interface LogThreadStart {
  readonly store: StoreHandle;
  readonly folder: string;
  /** Of the segment to begin with. */
  readonly number: number;
  readonly checkpointBytes: number;
  readonly settings: LogSettings;
}

export interface LogSettings {
  readonly policy: Policy;
  readonly minBytes: number;
  readonly percentage: number;
}

export type ToLogThread =
  | { readonly type: 'settings'; readonly settings: LogSettings }
  /** Of the checkpoint in hand; -1 = it has failed. */
  | { readonly type: 'checkpointed'; readonly bytes: number }
  | { readonly type: 'stop' };

export type FromLogThread =
  | { readonly type: 'ready' }
  | { readonly type: 'log'; readonly level: Level; readonly message: string }
  | { readonly type: 'checkpoint'; readonly number: number }
  | { readonly type: 'named'; readonly number: number }
  /** Everything is on the medium; the number of the last segment. */
  | { readonly type: 'closed'; readonly number: number };

/** Most milliseconds between two looks: what is due by the second must not be late, nor messages. */
const IDLE_MS = 100;
/** After there was something, when nobody waits for it. */
const BUSY_MS = 5;

const port = parentPort!;
const post = (message: FromLogThread): void => port.postMessage(message);
const { store, folder, number, checkpointBytes, settings } = workerData as LogThreadStart;

const keyspace = attach(store);
const { ctl, arenas, self } = keyspace.memory;
const writer = new LogWriter(keyspace, folder, number, checkpointBytes, {
  log: (level, message) => post({ type: 'log', level, message }),
  checkpoint: (of) => post({ type: 'checkpoint', number: of }),
  named: (of) => post({ type: 'named', number: of }),
});

function apply({ policy, minBytes, percentage }: LogSettings): void {
  writer.policy = policy;
  writer.minBytes = minBytes;
  writer.percentage = percentage;
}

/** False = it is to end. */
function obey(): boolean {
  for (;;) {
    const next = receiveMessageOnPort(port) as { readonly message: ToLogThread } | undefined;
    if (next === undefined) return true;
    const { message } = next;
    if (message.type === 'stop') return false;
    if (message.type === 'settings') apply(message.settings);
    else writer.endCheckpoint(message.bytes);
  }
}

/** Until somebody hurries, or a while. */
function sleep(hasWorked: boolean): void {
  if (writer.policy === 'always' && hasWorked && writer.hasMore) return;
  Atomics.store(ctl, Super.EFFECTS_SLEEP_WORD, 1);
  // What was appended before the word was set has hurried nobody.
  const ms = writer.policy === 'always' && writer.hasMore ? 0 : hasWorked ? BUSY_MS : IDLE_MS;
  if (ms > 0) addon.futexWait(arenas[0].arena, Super.EFFECTS_SLEEP_WORD << 2, 1, ms);
  Atomics.store(ctl, Super.EFFECTS_SLEEP_WORD, 0);
}

function turns(): void {
  // Back to the event loop now and then, or terminate() would wait for ever.
  for (let i = 0; i < TURNS; i++) {
    if (!obey()) return end();
    sleep(writer.turn());
  }
  setImmediate(turns);
}

const TURNS = 20;

function end(): void {
  writer.close();
  Atomics.store(ctl, Super.EFFECTS_WRITER_WORD, 0);
  detach(keyspace);
  post({ type: 'closed', number: writer.number });
  port.close();
}

apply(settings);
Atomics.store(ctl, Super.EFFECTS_WRITER_WORD, self + 1);
post({ type: 'ready' });
turns();

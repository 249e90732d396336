/**
 * Entry of the durability thread of a warm pool: rebuilds the index after a reboot, copies items of DRAM into the log (store/write-behind), and
 * makes that persistent twice a second.
 *
 * An ordinary Node thread with a seat in the pool of its own: it waits for the medium, so that workers never do. Invariant: the
 * log is made persistent at least once a second also while the rebuild is under way.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { CheckpointRestorer } from '../commands/persistence/checkpoint-restorer.js';
import { Super } from '../layout/superblock.js';
import { CheckpointWriter } from '../rdb/checkpoint-writer.js';
import { attach, detach } from '../store/attach.js';
import { Persister } from '../store/persister.js';
import { Rebuild } from '../store/rebuild.js';
import { WriteBehind } from '../store/write-behind.js';
import type { DurabilityStart, FromDurability } from './durability.js';

/** Between two flushes: half of what may be lost, the other half is for the flush itself. */
const PERIOD_MS = 500;
/** Of the write-behind's time: a fifth of a core at most. */
const WRITE_BEHIND_SLICE_MS = 4;
const WRITE_BEHIND_REST_MS = 16;
/** What it may take at the end. */
const WRITE_BEHIND_LAST_MS = 3000;
/** The rebuild works so long before messages are looked at. */
const REBUILD_SLICE_MS = 20;

const port = parentPort!;
const post = (message: FromDurability): void => port.postMessage(message);

const { store, settings } = workerData as DurabilityStart;
const keyspace = attach(store);
const { ctl } = keyspace.memory;
const persister = new Persister(keyspace);
const rebuild = new Rebuild(keyspace, new CheckpointRestorer(keyspace, settings));
const writeBehind = new WriteBehind(keyspace, new CheckpointWriter(keyspace));
let nextPersistMs = 0;
let isFailing = false;
let timer: NodeJS.Timeout | null = null;

function persist(): void {
  try {
    persister.run();
    if (isFailing) post({ type: 'log', level: 'notice', message: 'the capacity tier is persistent again' });
    isFailing = false;
  } catch (error) {
    ctl[Super.PERSIST_FAILURES_WORD]++;
    if (!isFailing) {
      const reason = error instanceof Error ? error.message : String(error);
      post({ type: 'log', level: 'warning', message: `cannot make the capacity tier persistent: ${reason}` });
    }
    isFailing = true;
  }
}

function rebuildSlice(): boolean {
  const endMs = performance.now() + REBUILD_SLICE_MS;
  let hasMore = true;
  while (hasMore && performance.now() < endMs) {
    keyspace.enterBatch();
    keyspace.refreshClock();
    hasMore = rebuild.step();
    keyspace.leaveBatch();
  }
  if (!hasMore) {
    const items = ctl[Super.REBUILD_ITEMS_WORD];
    const corrupt = ctl[Super.REBUILD_CORRUPT_WORD];
    const took = ctl[Super.REBUILD_MS_WORD];
    const message = `rebuilt from the capacity tier: ${items} items in ${took} ms, ${corrupt} damaged ones dropped`;
    post({ type: 'log', level: 'notice', message });
  }
  return hasMore;
}

function turn(): void {
  timer = null;
  if (performance.now() >= nextPersistMs) {
    persist();
    nextPersistMs = performance.now() + PERIOD_MS;
  }
  const isBusy = rebuild.isUnderWay && rebuildSlice();
  const waitMs = isBusy ? 0 : Math.min(writeBehindSlice(WRITE_BEHIND_SLICE_MS), nextPersistMs - performance.now());
  timer = setTimeout(turn, isBusy ? 0 : Math.max(1, waitMs));
}

/** Returns for how long there is nothing to do. */
function writeBehindSlice(sliceMs: number): number {
  const endMs = performance.now() + sliceMs;
  while (performance.now() < endMs) {
    keyspace.enterBatch();
    keyspace.refreshClock();
    const waitMs = writeBehind.step();
    keyspace.leaveBatch();
    if (waitMs > 0) return waitMs;
  }
  return WRITE_BEHIND_REST_MS;
}

/** The only message: the workers have ended, what they wrote last is to be kept. */
port.once('message', () => {
  if (timer !== null) clearTimeout(timer);
  writeBehind.beginLast();
  writeBehindSlice(WRITE_BEHIND_LAST_MS);
  persister.run();
  detach(keyspace);
});

post({ type: 'ready' });
turn();

/**
 * Bringing a pool whose DRAM tier is new to what the effect log holds: the part of a start that needs the store and the commands.
 *
 * Invariant: EFFECTS_STATE_WORD says LIVE only once all of it is in the pool; a recovery that was cut short begins anew, with an empty one.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Settings } from '../../config/index.js';
import { attach, detach } from '../../store/attach.js';
import type { Keyspace } from '../../store/keyspace.js';
import type { StoreHandle } from '../../store/open.js';
import type { Log } from '../log.js';
import { checkpointPath, type LogFiles, segmentPath } from './log-files.js';
import { LogError, LogReader, type ReadResult } from './log-reader.js';
import { Replay } from './replay.js';

export async function recover(
  settings: Settings,
  store: StoreHandle,
  folder: string,
  files: LogFiles,
  log: Log,
): Promise<void> {
  const keyspace = attach(store);
  // What is done next is known to the log already.
  keyspace.feed.effects = null;
  const startedMs = performance.now();
  try {
    empty(keyspace);
    const replay = new Replay(keyspace, settings);
    const cutAt = await readAll(keyspace, folder, files, replay);
    replay.end();
    let keys = 0;
    for (let db = 0; db < settings.databases; db++) keys += keyspace.size(db);
    const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
    log('notice', `recovered from the effect log: ${keys} keys, ${replay.records} records, in ${seconds} s`);
    if (cutAt > 0)
      log(
        'warning',
        `the effect log was cut short by a crash: what followed byte ${cutAt} of its last segment was not whole`,
      );
  } finally {
    detach(keyspace);
  }
}

function empty(keyspace: Keyspace): void {
  keyspace.enterBatch();
  keyspace.closeGate();
  keyspace.flushAll();
  keyspace.openGate();
  keyspace.leaveBatch();
}

/** Carries out what the files hold. Returns where the last segment was cut short; -1 = it was not. */
export async function readAll(keyspace: Keyspace, folder: string, files: LogFiles, replay: Replay): Promise<number> {
  const reader = new LogReader(replay);
  const { checkpoint, segments } = files;
  const first = Math.max(checkpoint, 1);
  if (segments.length > 0 && segments[0] !== first) {
    throw new LogError(segmentPath(folder, first), 'it is missing, and later ones are there');
  }
  if (checkpoint > 0) {
    const path = checkpointPath(folder, checkpoint);
    const { endCut } = await inBatch(keyspace, () => reader.read(path, checkpoint, true));
    if (endCut === null) throw new LogError(path, 'it is not whole');
    replay.strictFrom = endCut;
  }
  let cutAt = -1;
  // All of a segment is on the medium before the next one gets its header: only the last one that has it may be cut short.
  const isBegun = (number: number): boolean => reader.isBegun(segmentPath(folder, number), number);
  const lastBegun = segments.findLast(isBegun) ?? first;
  for (const [i, number] of segments.entries()) {
    const path = segmentPath(folder, number);
    if (number !== first + i)
      throw new LogError(segmentPath(folder, first + i), 'it is missing, and later ones are there');
    if (number > lastBegun) break;
    const isLast = number === lastBegun;
    ({ cutAt } = await inBatch(keyspace, () => reader.read(path, number, isLast)));
    if (replay.failure !== '') throw new LogError(path, `a command in it failed: ${replay.failure}`);
  }
  return cutAt;
}

async function inBatch(keyspace: Keyspace, work: () => ReadResult): Promise<ReadResult> {
  await nextTurn();
  keyspace.enterBatch();
  try {
    return work();
  } finally {
    keyspace.leaveBatch();
  }
}

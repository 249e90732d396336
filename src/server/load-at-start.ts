/**
 * Whether a pool is to be filled from files of Redis before the workers start, and from which.
 *
 * It is what `--load` names, if the pool holds no keys; else `dbfilename` in the pool's folder, if the pool has just been made. A
 * file beside the pool says that a load has begun and not ended: after a crash or an error the pool is emptied and the load tried again, so that
 * nobody ever meets half of a data set, or an empty one that a snapshot would then be made of. Invariant: a pool that is served holds all
 * of the file, or none of it was asked for.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Settings } from '../config/index.js';
import type { StoreHandle } from '../store/open.js';
import type { Log } from './log.js';

/** Says that the pool is being filled, and from what. */
const UNFINISHED_FILE = 'loading';

/** Returns the store's changes by the end of it (see fillPool); 0 = nothing was loaded. */
export async function loadAtStart(settings: Settings, store: StoreHandle, log: Log): Promise<number> {
  const marker = join(settings.pool, UNFINISHED_FILE);
  const isUnfinished = existsSync(marker);
  const isNamed = settings.load !== '';
  if (!isNamed && !isUnfinished && !store.isNew) return 0;
  const begun = isUnfinished ? readFileSync(marker, 'utf8') : '';
  const own = join(settings.pool, settings.dbfilename);
  const path = resolve(isNamed ? settings.load : existsSync(begun) ? begun : own);
  const isThere = isNamed || existsSync(path);
  if (!isThere && !isUnfinished) return 0;
  // Most starts do without it.
  const { fillPool } = await import('./load-file.js');
  return fillPool({ path: isThere ? path : null, isUnfinished, marker }, settings, store, log);
}

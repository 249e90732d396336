/**
 * Entresol as a library: `import { open } from 'entresol'`.
 *
 *     const cache = await open({ path: './cache', dram: '256mb', capacity: '4gb' });
 *     cache.set('user:1', 'Ada', { ttl: 60_000 });
 *     cache.get('user:1');                                     // 'Ada'
 *     await cache.getOrCompute('report', () => build(), { ttl: 10_000 });
 *
 * Any number of worker threads and processes may open the same path, with or without a server on it; all see the same
 * data. Calls are synchronous: they cost less than a microsecond and never do I/O.
 */
import { parseSize } from '../config/size.js';
import { attach, detach } from '../store/attach.js';
import { claimPool } from '../store/claim.js';
import type { Keyspace } from '../store/keyspace.js';
import { findStore, openStore } from '../store/open.js';
import { POLICY_NAMES, type PolicyName } from '../store/policy.js';
import { Cache, type CacheSeat } from './cache.js';
import { CacheError } from './errors.js';
import { Computations } from './get-or-compute.js';

export { PoolError, type PoolErrorCode } from '../store/errors.js';
export type { StoreStats } from '../store/statistics.js';
export { Cache, type Key, type SetOptions, type Value } from './cache.js';
export { CacheError, type CacheErrorCode } from './errors.js';
export type { ComputeOptions } from './get-or-compute.js';

export interface OpenOptions {
  /** Directory of the pool. Default './data', the server's own default. */
  readonly path?: string;
  /** DRAM tier, bytes or '128mb'. Absent: what the pool has; 128 MiB for a new one. */
  readonly dram?: number | string;
  /** Capacity tier, bytes or '1gb', 0 = none. Absent: what the pool has; none for a new one. */
  readonly capacity?: number | string;
  /** Redis's maxmemory policies. Default for a new pool: allkeys-lru. */
  readonly policy?: PolicyName;
  /** True: nobody else may have the pool open, no server, process or thread, until this cache is closed. Default false. */
  readonly exclusive?: boolean;
}

const DEFAULT_PATH = './data';
const DEFAULT_DRAM_BYTES = 128 * 1024 * 1024;
/** Expiry, reclaim and the like, when no server runs: how often, and how long at most. */
const BACKGROUND_PERIOD_MS = 100;
const BACKGROUND_MICROSECONDS = 500;

/**
 * Opens (or makes) a pool and takes a seat in it for this thread.
 * @throws PoolError when the pool cannot be used: code, path and what to do
 */
export async function open(options: OpenOptions = {}): Promise<Cache> {
  const pool = options.path ?? DEFAULT_PATH;
  const claim = claimPool(pool, options.exclusive === true ? 'exclusive' : 'shared');
  let keyspace: Keyspace;
  try {
    keyspace = attachTo(pool, options);
  } catch (error) {
    claim.release();
    throw error;
  }
  keyspace.gate.becomeUnbatched();
  keyspace.gate.lone.become();
  const timer = setInterval(() => {
    keyspace.refreshClock();
    keyspace.enterBatch();
    keyspace.background(BACKGROUND_MICROSECONDS);
    keyspace.leaveBatch();
  }, BACKGROUND_PERIOD_MS);
  timer.unref();
  const seat: CacheSeat = {
    keyspace,
    closed: false,
    clockCalls: 0,
    computations: new Computations(keyspace.memory, () => root),
    close() {
      if (seat.closed) return;
      seat.closed = true;
      clearInterval(timer);
      keyspace.gate.endUnbatched();
      detach(keyspace);
      claim.release();
    },
  };
  const root = new Cache(seat, '');
  return root;
}

function attachTo(pool: string, options: OpenOptions): Keyspace {
  const { policy } = options;
  if (policy !== undefined && !POLICY_NAMES.includes(policy)) {
    throw new CacheError('ERR_ENTRESOL_OPTION', `policy: '${policy}' is none of ${POLICY_NAMES.join(', ')}`);
  }
  const existing = options.dram === undefined && options.capacity === undefined ? findStore(pool) : null;
  return attach(
    existing ??
      openStore({
        pool,
        dramBytes: bytesOf('dram', options.dram, DEFAULT_DRAM_BYTES),
        capacityBytes: bytesOf('capacity', options.capacity, 0),
        policy: options.policy ?? 'allkeys-lru',
      }),
  );
}

function bytesOf(name: string, value: number | string | undefined, fallback: number): number {
  if (value === undefined) return fallback;
  const bytes = typeof value === 'number' ? value : parseSize(value);
  if (bytes === undefined || !Number.isFinite(bytes) || bytes < 0) {
    throw new CacheError(
      'ERR_ENTRESOL_OPTION',
      `${name}: ${JSON.stringify(value)} is not a size (examples: 134217728, '128mb', '1gb')`,
    );
  }
  return bytes;
}

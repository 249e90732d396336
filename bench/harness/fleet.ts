/**
 * Servers loaded with the same data set (keys of 16 bytes, values of 100), kept for all benches that use it: loading 10 M
 * keys three times over would take longer than measuring. Servers not in use are stopped (SIGSTOP).
 */
import type { LoadResult } from './load.js';
import { runLoad } from './load.js';
import type { BenchContext } from './measurement.js';
import { countLabel } from './profile.js';
import { type Server, startMemcached, startOurs, startRedis } from './servers.js';

export const VALUE_BYTES = 100;
/** Room per item: Redis needs about 200 bytes for these, memcached 190. */
const BYTES_PER_ITEM = 320;
const MIN_STORE_BYTES = 256 * 2 ** 20;

export interface Fleet {
  readonly keyCount: number;
  readonly entresol: Server;
  readonly redis: Server;
  readonly memcached: Server;
  /** How the loading went (pipeline 16, one SET per key in order), by server. */
  readonly fills: Readonly<Record<'entresol' | 'redis', LoadResult>>;
}

const fleets = new Map<number, Promise<Fleet>>();

export function fleetOf(context: BenchContext, keyCount: number): Promise<Fleet> {
  let fleet = fleets.get(keyCount);
  if (fleet === undefined) {
    fleet = load(context, keyCount);
    fleets.set(keyCount, fleet);
  }
  return fleet;
}

/** Ends them all: their gigabytes are no company for benches that start servers of their own. */
export async function stopFleets(): Promise<void> {
  const all = [...fleets.values()];
  fleets.clear();
  for (const loaded of await Promise.allSettled(all)) {
    if (loaded.status !== 'fulfilled') continue;
    const { entresol, redis, memcached } = loaded.value;
    await Promise.all([entresol.stop(), redis.stop(), memcached.stop()]);
  }
}

async function load(context: BenchContext, keyCount: number): Promise<Fleet> {
  const { cores } = context;
  const size = { dramBytes: Math.max(MIN_STORE_BYTES, keyCount * BYTES_PER_ITEM) };
  const fill = async (server: Server): Promise<LoadResult> => {
    context.say(`loading ${countLabel(keyCount)} keys into ${server.name}`);
    const protocol = server.respPort === 0 ? 'memcached' : 'resp';
    const result = await runLoad(cores.load, server, { mode: 'fill', protocol, keys: keyCount, pipeline: 16 });
    server.park();
    return result;
  };
  const entresol = await startOurs(cores.server, size);
  const ourFill = await fill(entresol);
  const redis = await startRedis(cores.server, size);
  const redisFill = await fill(redis);
  const memcached = await startMemcached(cores.server, size);
  await fill(memcached);
  return { keyCount, entresol, redis, memcached, fills: { entresol: ourFill, redis: redisFill } };
}

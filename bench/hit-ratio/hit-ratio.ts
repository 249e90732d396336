/**
 * Miss ratios at the same number of bytes, metadata included: the store's placement (two tiers, and DRAM alone) beside exact LRU and SIEVE,
 * redis-server and memcached, on the same traces; and what the capacity tier is written.
 *
 * Bytes are what each was told to use: --maxmemory, -m less memcached's hash table, both tiers whole. LRU and SIEVE pay 56 bytes an item.
 */
import { type Bench, type BenchContext, measured } from '../harness/measurement.js';
import { type Server, startMemcached, startRedis } from '../harness/servers.js';
import { lruMisses, sieveMisses } from './models.js';
import { memcachedWire, peerMisses, redisWire } from './peers.js';
import { loadModules, type Outcome, runStore } from './store.js';
import { makeTraces, type Trace } from './traces.js';

const MIB = 2 ** 20;
/** Of all bytes. */
const DRAM_SHARE = 0.4;
const POLICIES = ['allkeys-lru', 'allkeys-lfu'] as const;

async function withServer(start: () => Promise<Server>, use: (server: Server) => Promise<number>): Promise<number> {
  const server = await start();
  try {
    return await use(server);
  } finally {
    await server.stop();
  }
}

async function peers(context: BenchContext, trace: Trace, bytes: number): Promise<Record<string, number>> {
  const core = context.cores.server;
  const misses: Record<string, number> = {};
  for (const policy of POLICIES) {
    misses[`redis-${policy.slice(-3)}`] = await withServer(
      () => startRedis(core, { dramBytes: bytes, evict: true, policy }),
      (server) => peerMisses(trace, redisWire, server.respPort),
    );
  }
  // Its hash table, 512 KiB at the start and doubled as it fills, is not in -m.
  misses.memcached = await withServer(
    () => startMemcached(core, { dramBytes: bytes - MIB, evict: true }),
    (server) => peerMisses(trace, memcachedWire, server.memcachedPort),
  );
  return misses;
}

function share(part: number, whole: number): string {
  return `${((100 * part) / whole).toFixed(1)} %`;
}

function tiersNote(outcome: Outcome, counted: number): string {
  return `${share(outcome.dramHits, counted)} hits in DRAM, ${share(outcome.capacityHits, counted)} in the capacity tier`;
}

async function run(context: BenchContext): Promise<void> {
  const { hitRatioBytes: bytes, hitRatioRequests, hitRatioKeys } = context.profile;
  const modules = await loadModules();
  const dramBytes = Math.floor((bytes * DRAM_SHARE) / MIB) * MIB;
  for (const trace of makeTraces(hitRatioRequests, hitRatioKeys)) {
    const counted = trace.keys.length - trace.warm;
    const tiers = { dramBytes, capacityBytes: bytes - dramBytes };
    const [lru, lfu] = POLICIES.map((policy) => runStore(modules, trace, { ...tiers, policy }));
    const dram = runStore(modules, trace, { dramBytes: bytes, capacityBytes: 0, policy: POLICIES[0] });
    const misses: Record<string, number> = {
      entresol: lru.misses,
      'entresol-lfu': lfu.misses,
      'entresol-dram': dram.misses,
      lru: lruMisses(trace, bytes),
      sieve: sieveMisses(trace, bytes),
      ...(await peers(context, trace, bytes)),
    };
    const percents = Object.entries(misses).map(([name, count]) => [name, [(100 * count) / counted]] as const);
    context.report(
      measured(`hitRatio.${trace.name}.misses`, '%', 'less', Object.fromEntries(percents), tiersNote(lru, counted)),
    );
    context.report(
      measured(`hitRatio.${trace.name}.writes`, '% of writing all', 'less', {
        entresol: [(100 * lru.writtenBytes) / lru.insertedBytes],
        'entresol-lfu': [(100 * lfu.writtenBytes) / lfu.insertedBytes],
      }),
    );
  }
}

export const hitRatio: Bench = {
  name: 'hit-ratio',
  about: 'miss ratios on traces at equal bytes, with LRU, SIEVE, Redis and memcached; writes to the capacity tier',
  run,
};

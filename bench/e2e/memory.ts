/**
 * Memory per item beyond its key and value, values uniform 20-300 bytes, the store full: every server gets the same cap and
 * more items than fit, so old ones go. What is left is counted exactly by reading every key once.
 *
 * Memory is counted twice. `cap`: what the server was told it may use (--dram, --maxmemory, -m) plus what it holds outside
 * that by its own account (memcached's hash table). `process`: what the process grew by (memory that a server takes at
 * start, as ours does, counts as grown). The bar is judged on the larger of our two and the smaller of each peer's.
 */
import { memcachedStats, redisInfo } from '../harness/ask.js';
import { type LoadOptions, runLoad } from '../harness/load.js';
import { type Bench, type BenchContext, measured } from '../harness/measurement.js';
import { processMemory } from '../harness/proc.js';
import { type Server, type StoreSize, startMemcached, startOurs, startRedis } from '../harness/servers.js';

const VALUE_MIN_BYTES = 20;
const VALUE_MAX_BYTES = 300;
/** No server needs less than this per item, so this many items overfill all of them. */
const LEAST_ITEM_BYTES = 176;
const OVERFILL = 1.5;

interface Footprint {
  readonly items: number;
  readonly payloadBytes: number;
  readonly capBytes: number;
  readonly processBytes: number;
  readonly account: Account;
}

interface Account {
  /** What the server says that it uses. */
  readonly usedBytes: number;
  /** What it uses outside the cap it was given. */
  readonly outsideCapBytes: number;
  /** DRAM metadata: tables, index, participants' pages (client buffers too, but no client is busy now). Ours only. */
  readonly metadataBytes: number | undefined;
}

async function accountOf(server: Server): Promise<Account> {
  if (server.name === 'memcached') {
    const stats = await memcachedStats(server.memcachedPort);
    const hashBytes = Number(stats.get('hash_bytes'));
    return { usedBytes: Number(stats.get('bytes')) + hashBytes, outsideCapBytes: hashBytes, metadataBytes: undefined };
  }
  const info = await redisInfo(server.respPort, 'memory');
  const metadataBytes = server.name === 'entresol' ? Number(info.get('used_memory_overhead')) : undefined;
  return { usedBytes: Number(info.get('used_memory')), outsideCapBytes: 0, metadataBytes };
}

async function fillAndCount(context: BenchContext, server: Server, size: StoreSize): Promise<Footprint> {
  const core = context.cores.load;
  const keys = Math.ceil((size.dramBytes / LEAST_ITEM_BYTES) * OVERFILL);
  const load: Omit<LoadOptions, 'mode'> = {
    protocol: server.respPort === 0 ? 'memcached' : 'resp',
    keys,
    valueMin: VALUE_MIN_BYTES,
    valueMax: VALUE_MAX_BYTES,
    pipeline: 16,
  };
  const before = processMemory(server.pid);
  context.say(`memory: filling ${server.name}`);
  await runLoad(core, server, { ...load, mode: 'fill' });
  const after = processMemory(server.pid);
  const account = await accountOf(server);
  const sweep = await runLoad(core, server, { ...load, mode: 'sweep' }, true);
  const grown = after.anonymousBytes - before.anonymousBytes;
  return {
    items: sweep.hits,
    payloadBytes: sweep.hits * sweep.keyBytes + sweep.valueBytesRead,
    capBytes: size.dramBytes + account.outsideCapBytes,
    processBytes: server.name === 'entresol' ? Math.max(size.dramBytes, after.sharedBytes) + grown : grown,
    account,
  };
}

async function run(context: BenchContext): Promise<void> {
  const size: StoreSize = { dramBytes: context.profile.memoryStoreBytes, evict: true };
  const samples: Record<string, number[]> = {};
  const notes: string[] = [];
  for (const start of [startOurs, startRedis, startMemcached]) {
    const server = await start(context.cores.server, size);
    const footprint = await fillAndCount(context, server, size);
    await server.stop();
    if (footprint.items === 0) throw new Error(`${server.name} holds no item after the fill`);
    const byCap = (footprint.capBytes - footprint.payloadBytes) / footprint.items;
    const byProcess = (footprint.processBytes - footprint.payloadBytes) / footprint.items;
    samples[server.name] = [server.name === 'entresol' ? Math.max(byCap, byProcess) : Math.min(byCap, byProcess)];
    const byAccount = (footprint.account.usedBytes - footprint.payloadBytes) / footprint.items;
    notes.push(
      `${server.name}: ${footprint.items} items, cap ${byCap.toFixed(1)}, process ${byProcess.toFixed(1)}, ` +
        `its own account ${byAccount.toFixed(1)}`,
    );
    if (footprint.account.metadataBytes !== undefined) {
      const perItem = { entresol: [footprint.account.metadataBytes / footprint.items] };
      context.report(
        measured('memory.metadata', 'bytes/item', 'less', perItem, 'INFO used_memory_overhead over items'),
      );
    }
  }
  context.report(measured('memory.overhead', 'bytes/item', 'less', samples, notes.join('; ')));
}

export const memory: Bench = { name: 'memory', about: 'bytes per item beyond key and value in a full store', run };

/**
 * How fast the index of a warm pool is rebuilt after a reboot: items of 100 bytes a second, by one thread that does nothing else.
 *
 * The pool is filled beyond its DRAM tier, left, robbed of that tier and opened again. The medium is the page cache: what a disk
 * takes to bring the pages comes on top.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { removeTemporaryFolder, temporaryFolder } from '../harness/child.js';
import { VALUE_BYTES } from '../harness/fleet.js';
import { type Bench, type BenchContext, measured } from '../harness/measurement.js';
import { rootFolder } from '../harness/paths.js';

const MIB = 2 ** 20;
/** Key, value, header, record, rounded up; half as much again is room for reclaim. */
const CAPACITY_BYTES_PER_KEY = 300;
const DRAM_BYTES_PER_KEY = 80;
const MIN_BYTES = 32 * MIB;
/** Beyond what the smallest DRAM tier holds. */
const MIN_KEYS = 400_000;
const KEY_BYTES = 16;
const STRING = 1;

interface Bytes {
  readonly u8: Uint8Array;
}

interface Keyspace {
  readonly memory: { readonly ctl: Int32Array };
  refreshClock(): void;
  enterBatch(): void;
  leaveBatch(): void;
  lock(hash: number): void;
  unlock(hash: number): void;
  hash(db: number, key: Bytes, offset: number, length: number): number;
  stage(hash: number, db: number, key: Bytes, offset: number, length: number, valueLength: number): boolean;
  commit(type: number, encoding: number, clientFlags: number, expiryMs: number): boolean;
  size(db: number): number;
}

interface Handle {
  readonly dramPath: string;
}

interface Modules {
  openStore(options: Readonly<Record<string, unknown>>): Handle;
  attach(handle: Handle): Keyspace;
  detach(keyspace: Keyspace): void;
  readonly Rebuild: new (keyspace: Keyspace, restorer: { restore(): boolean }) => { step(): boolean };
  readonly Persister: new (keyspace: Keyspace) => { run(): void };
  readonly Bytes: { allocate(length: number): Bytes };
}

async function load(): Promise<Modules> {
  const files = ['store/open.js', 'store/attach.js', 'store/rebuild.js', 'store/persister.js', 'layout/bytes.js'];
  const parts = await Promise.all(files.map((file) => import(pathToFileURL(join(rootFolder, 'dist', file)).href)));
  return Object.assign({}, ...parts) as Modules;
}

function fill(keyspace: Keyspace, key: Bytes, keyCount: number): void {
  for (let i = 0; i < keyCount; i++) {
    key.u8.set(Buffer.from(`key:${String(i).padStart(KEY_BYTES - 4, '0')}`));
    keyspace.enterBatch();
    const hash = keyspace.hash(0, key, 0, KEY_BYTES);
    if (!keyspace.stage(hash, 0, key, 0, KEY_BYTES, VALUE_BYTES)) throw new Error('the store is full');
    keyspace.lock(hash);
    keyspace.commit(STRING, 0, 0, 0);
    keyspace.unlock(hash);
    keyspace.leaveBatch();
  }
}

/** Items a second, of the clock and of the thread's own time. */
function timeRebuild(modules: Modules, keyspace: Keyspace): { clock: number; cpu: number } {
  const rebuild = new modules.Rebuild(keyspace, { restore: () => false });
  const startedMs = performance.now();
  const cpu = process.cpuUsage();
  for (let hasMore = true; hasMore; ) {
    keyspace.enterBatch();
    hasMore = rebuild.step();
    keyspace.leaveBatch();
  }
  const { user, system } = process.cpuUsage(cpu);
  const items = keyspace.size(0);
  return { clock: (items * 1000) / (performance.now() - startedMs), cpu: (items * 1e6) / (user + system) };
}

async function run({ profile, report, say }: BenchContext): Promise<void> {
  const modules = await load();
  const keyCount = Math.max(MIN_KEYS, profile.workerKeys);
  const pool = temporaryFolder('rebuild');
  const options = {
    pool,
    dramBytes: Math.max(MIN_BYTES, keyCount * DRAM_BYTES_PER_KEY),
    capacityBytes: Math.max(MIN_BYTES, keyCount * CAPACITY_BYTES_PER_KEY),
    policy: 'allkeys-lru',
    tier: 'file',
    durability: 'warm',
  };
  say('rebuild: the index of a warm pool after a reboot');
  let handle = modules.openStore(options);
  try {
    let keyspace = modules.attach(handle);
    fill(keyspace, modules.Bytes.allocate(KEY_BYTES), keyCount);
    modules.detach(keyspace);
    const clock: number[] = [];
    const cpu: number[] = [];
    let items = 0;
    for (let round = 0; round < profile.pairs; round++) {
      rmSync(handle.dramPath);
      handle = modules.openStore(options);
      keyspace = modules.attach(handle);
      const speed = timeRebuild(modules, keyspace);
      clock.push(speed.clock);
      cpu.push(speed.cpu);
      // It is at its end when that is on the medium: else the next one takes it for cut off.
      new modules.Persister(keyspace).run();
      items = keyspace.size(0);
      modules.detach(keyspace);
    }
    if (items === 0) throw new Error('nothing came back');
    report(measured('rebuild.items', 'items/s', 'more', { entresol: clock }, `${items} items`));
    report(measured('rebuild.items.cpu', 'items/s of CPU', 'more', { entresol: cpu }));
  } finally {
    rmSync(handle.dramPath, { force: true });
    removeTemporaryFolder(pool);
  }
}

export const rebuild: Bench = {
  name: 'rebuild',
  about: 'items a second of a warm pool that come back after a reboot',
  run,
};

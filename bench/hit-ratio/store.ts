/**
 * The real placement code on a trace: a Keyspace over a small pool of its own, from dist/, driven as a worker drives it.
 *
 * Time is the trace's: so many requests are a second, whatever the machine does.
 */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { removeTemporaryFolder, temporaryFolder } from '../harness/child.js';
import { rootFolder } from '../harness/paths.js';
import { KEY_BYTES, type Trace, valueBytes } from './traces.js';

const REQUESTS_A_SECOND = 100_000;
const REQUESTS_A_TURN = 256;
const BACKGROUND_US = 50;
const START_MS = 1_700_000_000_000;

interface Bytes {
  readonly u8: Uint8Array;
  readonly i32: Int32Array;
}

interface Keyspace {
  setClock(ms: number): void;
  enterBatch(): void;
  leaveBatch(): void;
  background(budgetUs: number): boolean;
  hash(db: number, bytes: Bytes, offset: number, length: number): number;
  lock(hash: number): void;
  unlock(hash: number): void;
  find(hash: number, db: number, bytes: Bytes, offset: number, length: number): boolean;
  access(): void;
  stage(hash: number, db: number, bytes: Bytes, offset: number, length: number, valueLength: number): boolean;
  commit(type: number, encoding: number, clientFlags: number, expiryMs: number): boolean;
  stats(): Stats;
}

export interface Stats {
  readonly hits: number;
  readonly capacityHits: number;
  readonly demoted: number;
  readonly reclaimKept: number;
  readonly capacityBytesWritten: number;
}

interface Modules {
  readonly open: {
    openStore(options: Readonly<Record<string, unknown>>): unknown;
  };
  readonly attach: {
    attach(handle: unknown): Keyspace;
    detach(keyspace: Keyspace): void;
  };
  readonly bytes: { readonly Bytes: { allocate(length: number): Bytes } };
  readonly invariants: { checkInvariants(keyspace: Keyspace): void };
}

async function load(file: string): Promise<unknown> {
  return import(pathToFileURL(join(rootFolder, 'dist', file)).href);
}

export async function loadModules(): Promise<Modules> {
  return {
    open: (await load('store/open.js')) as Modules['open'],
    attach: (await load('store/attach.js')) as Modules['attach'],
    bytes: (await load('layout/bytes.js')) as Modules['bytes'],
    invariants: (await load('store/invariants.js')) as Modules['invariants'],
  };
}

export interface Tiers {
  readonly dramBytes: number;
  /** 0 = no capacity tier. */
  readonly capacityBytes: number;
  readonly policy: string;
}

export interface Outcome {
  readonly misses: number;
  readonly dramHits: number;
  readonly capacityHits: number;
  /** Written to the capacity tier; what writing each stored item there once would have taken. */
  readonly writtenBytes: number;
  readonly insertedBytes: number;
}

/** As src/layout has it: a header of 24 bytes, units of 16. */
function unitBytes(key: number): number {
  return (24 + KEY_BYTES + valueBytes(key) + 15) & ~15;
}

/** Of the requests from `warm` on. */
export function runStore(modules: Modules, trace: Trace, tiers: Tiers): Outcome {
  const { open, attach, bytes, invariants } = modules;
  const pool = temporaryFolder('hit-ratio');
  const keyspace = attach.attach(open.openStore({ pool, ...tiers, shards: 64 }));
  const key = bytes.Bytes.allocate(KEY_BYTES);
  let before = keyspace.stats();
  let misses = 0;
  let insertedBytes = 0;
  keyspace.enterBatch();
  for (let i = 0; i < trace.keys.length; i++) {
    if (i % REQUESTS_A_TURN === 0) {
      keyspace.setClock(START_MS + (i / REQUESTS_A_SECOND) * 1000);
      keyspace.background(BACKGROUND_US);
    }
    if (i === trace.warm) {
      before = keyspace.stats();
      misses = 0;
      insertedBytes = 0;
    }
    key.i32[0] = trace.keys[i];
    const hash = keyspace.hash(0, key, 0, KEY_BYTES);
    keyspace.lock(hash);
    const isHit = keyspace.find(hash, 0, key, 0, KEY_BYTES);
    if (isHit) keyspace.access();
    keyspace.unlock(hash);
    if (isHit) continue;
    misses++;
    insertedBytes += unitBytes(trace.keys[i]);
    if (!keyspace.stage(hash, 0, key, 0, KEY_BYTES, valueBytes(trace.keys[i])))
      throw new Error('no room under the policy');
    keyspace.lock(hash);
    keyspace.commit(1, 0, 0, 0);
    keyspace.unlock(hash);
  }
  const after = keyspace.stats();
  invariants.checkInvariants(keyspace);
  keyspace.leaveBatch();
  attach.detach(keyspace);
  removeTemporaryFolder(pool);
  const capacityHits = after.capacityHits - before.capacityHits;
  return {
    misses,
    dramHits: after.hits - before.hits - capacityHits,
    capacityHits,
    writtenBytes: after.capacityBytesWritten - before.capacityBytesWritten,
    insertedBytes,
  };
}

/**
 * The writes of the real store while it stores 100-byte entries, participant by participant: what the Tair table is made of.
 *
 * Each participant has its seat, page and magazines in one pool, as threads would; they take turns. An entry is staged, then linked under
 * its shard's lock: the store's own way for values that arrive by parts, and copy-on-write for what is there already. Invariant: a
 * participant's events are in program order, each lock's release behind its taking.
 */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Bytes } from '../layout/bytes.js';
import { ItemType } from '../layout/item.js';
import { Page } from '../layout/location.js';
import { attach, detach } from '../store/attach.js';
import type { Keyspace } from '../store/keyspace.js';
import { openStore } from '../store/open.js';
import { removeStore } from '../store/remove.js';
import { type Put, PutEvent, type PutTrace } from './put-trace.js';
import type { WriteListener } from './recording.js';
import { addressOf, StructureMap } from './structures.js';

export interface PutOptions {
  readonly participants: number;
  /** Puts of each that are recorded. */
  readonly puts: number;
  readonly valueBytes: number;
}

const KEY_BYTES = 16;
/** Keys for each recorded put: most are written once in the trace, all of them are there before. */
const KEYS_PER_PUT = 2;
const MIB = 2 ** 20;
const SHARDS = 256;

class Recorder {
  kinds: PutEvent[] = [];
  addresses: number[] = [];
  bytes: number[] = [];
  structures: number[] = [];
  #map: StructureMap | undefined;
  readonly #arenas = new Map<number, number>();
  #isOn = false;

  watch(keyspace: Keyspace): StructureMap {
    for (const [index, { arena }] of keyspace.memory.arenas.entries()) this.#arenas.set(arena, index);
    this.#map = new StructureMap(keyspace.memory);
    return this.#map;
  }

  start(): void {
    this.#isOn = true;
  }

  take(): Put {
    this.#isOn = false;
    const { kinds, addresses, bytes, structures } = this;
    this.kinds = [];
    this.addresses = [];
    this.bytes = [];
    this.structures = [];
    return { kinds, addresses, bytes, structures };
  }

  readonly listener: WriteListener = (arena, offset, bytes, isZero) => {
    const index = this.#arenas.get(arena);
    if (!this.#isOn || index === undefined || this.#map === undefined) return;
    const address = addressOf(index, offset);
    const isLock = this.#map.isLock(address);
    this.kinds.push(isLock ? (isZero ? PutEvent.UNLOCK : PutEvent.LOCK) : PutEvent.WRITE);
    this.addresses.push(address);
    this.bytes.push(bytes);
    this.structures.push(this.#map.at(address));
  };
}

/** xorshift32. */
function numbers(limit: number): () => number {
  let state = 2_463_534_242;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % limit;
  };
}

function put(keyspace: Keyspace, key: Bytes, value: Bytes): void {
  const hash = keyspace.hash(0, key, 0, KEY_BYTES);
  if (!keyspace.stage(hash, 0, key, 0, KEY_BYTES, value.length)) throw new Error('the pool of the trace is full');
  keyspace.staged.u8.set(value.u8, keyspace.stagedOffset);
  keyspace.lock(hash);
  keyspace.commit(ItemType.STRING, 0, 0, 0);
  keyspace.unlock(hash);
}

/** `listen` gets the listener that the thread's traced flavour has to call. */
export function recordPuts(options: PutOptions, listen: (listener: WriteListener) => void): PutTrace {
  const { participants, puts, valueBytes } = options;
  const pool = mkdtempSync(join(tmpdir(), 'entresol-puts-'));
  const keyCount = participants * puts * KEYS_PER_PUT;
  const recorder = new Recorder();
  listen(recorder.listener);
  // A page for each participant, and room for everything twice.
  const dramBytes = (32 + 2 * participants) * MIB + keyCount * 4 * (valueBytes + 128);
  const keyspaces: Keyspace[] = [];
  try {
    const handle = openStore({ pool, dramBytes, capacityBytes: 0, tier: 'none', policy: 'noeviction', shards: SHARDS });
    for (let i = 0; i < participants; i++) keyspaces.push(attach(handle));
    const [first] = keyspaces;
    const map = recorder.watch(first);
    const key = Bytes.allocate(KEY_BYTES);
    const value = Bytes.allocate(valueBytes);
    const write = (keyspace: Keyspace, number: number): void => {
      key.u8.set(Buffer.from(`entry:${String(number).padStart(KEY_BYTES - 6, '0')}`));
      put(keyspace, key, value);
    };
    for (const keyspace of keyspaces) keyspace.enterBatch();
    for (let i = 0; i < keyCount; i++) write(keyspaces[i % participants], i);
    const next = numbers(keyCount);
    const recorded: Put[][] = keyspaces.map(() => []);
    for (let i = 0; i < puts; i++) {
      for (const [p, keyspace] of keyspaces.entries()) {
        recorder.start();
        write(keyspace, next());
        recorded[p].push(recorder.take());
      }
    }
    for (const keyspace of keyspaces) keyspace.leaveBatch();
    const poolBytes = first.memory.dramPages * Page.BYTES;
    return { puts: recorded, poolBytes, shards: SHARDS, isShardLock: (address) => map.isShardLock(address) };
  } finally {
    for (const keyspace of keyspaces) detach(keyspace);
    removeStore(pool);
  }
}

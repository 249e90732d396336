/**
 * Carries out what the effect log tells, on a pool that nobody else uses.
 *
 * Why the result is right although a checkpoint is no moment of the store: each effect tells of one key, and versions of a key rise. A state or a deletion
 * makes its key what it was then, whatever it has been before; from there on every effect on the key follows. A command or an expiry belongs on what
 * its key was just before: it is carried out if the key's version is below its own (an expiry: or the same, since it changes none), and else is in
 * what the checkpoint holds already. A key that the checkpoint does not have was not there when its bucket was read: until then what is made
 * of its commands may be anything, and the deletion that had removed it then ends that. So errors count only behind the number at which
 * the checkpoint ended. The clock is that of each record, so what had expired then has expired, and nothing else.
 *
 * What is evicted for want of room meanwhile is gone, as it would be on a running server: effects on it are left out until the next state.
 */
import { Users } from '../../commands/acl/users.js';
import { Client } from '../../commands/clients/client.js';
import type { Environment } from '../../commands/environment.js';
import { Executor } from '../../commands/executor.js';
import { createCommandTable } from '../../commands/families.js';
import { LoadSink } from '../../commands/persistence/load-sink.js';
import type { Settings } from '../../config/index.js';
import { Bytes } from '../../layout/bytes.js';
import { CounterRow, CounterTotals, createCounterBaseline, createCounterBlock } from '../../layout/counters.js';
import { ALL_DATABASES, EffectKind, PLAIN_STRING } from '../../layout/effects.js';
import { ItemType } from '../../layout/item.js';
import { Shard } from '../../layout/superblock.js';
import { Send } from '../../native/addon.js';
import { copyBytes } from '../../native/copy.js';
import { Output } from '../../protocol/output.js';
import { Reply } from '../../protocol/resp/reply.js';
import { RdbReader, StringSlot } from '../../rdb/reader.js';
import { ValueReader } from '../../rdb/value-reader.js';
import { Notify } from '../../store/change-feed.js';
import type { Keyspace } from '../../store/keyspace.js';
import type { RecordSink } from './log-reader.js';

const TWO_32 = 0x1_0000_0000;
const OUTPUT_BYTES = 64 * 1024;

export class Replay implements RecordSink {
  records = 0;
  /** Commands that failed; the first of those that may not. */
  failure = '';
  /** Errors of commands do not count before the record of this number; null = they do not count at all. */
  strictFrom: number | null = null;

  readonly #keyspace: Keyspace;
  readonly #executor: Executor;
  readonly #client: Client;
  readonly #output: Output;
  readonly #reply: Reply;
  readonly #sink: LoadSink;
  readonly #reader = new RdbReader();
  readonly #values = new ValueReader(this.#reader);
  readonly #key = new StringSlot();
  /** 'db/key' of what was evicted. */
  readonly #evicted = new Set<string>();
  #args = new Int32Array(64);
  #latest = 0;

  constructor(keyspace: Keyspace, settings: Readonly<Settings>) {
    this.#keyspace = keyspace;
    const table = createCommandTable();
    const sends = new Int32Array(4 * Send.WORDS);
    this.#output = new Output(Bytes.allocate(OUTPUT_BYTES), sends, () => undefined, false);
    this.#reply = new Reply(this.#output);
    const block = createCounterBlock(1);
    const environment: Environment = {
      keyspace,
      users: new Users(table),
      settings: { ...settings, notifyKeyspaceEvents: 0 },
      counters: new CounterRow(block, 0),
      totals: new CounterTotals(block, createCounterBaseline()),
      control: null,
      reportFault: (error) => {
        throw error;
      },
    };
    this.#executor = new Executor(environment, table, this.#reply);
    this.#client = new Client(1, 0, '', environment.users.default);
    this.#client.authenticated = true;
    this.#client.unrestrictedAt = environment.users.epoch;
    this.#sink = new LoadSink(keyspace, settings, true);
    const { feed } = keyspace;
    feed.notifies |= Notify.EVICTED;
    feed.onEvent = (kind, physical, bytes, offset, length) => {
      if ((kind & Notify.EVICTED) !== 0)
        this.#evicted.add(this.#nameOf(this.#logicalOf(physical), bytes, offset, length));
    };
  }

  record(bytes: Bytes, offset: number, length: number, timeMs: number, number: number): void {
    this.records++;
    this.#keyspace.setClock(timeMs);
    const isStrict = this.strictFrom !== null && ((number - this.strictFrom) | 0) >= 0;
    for (let at = offset; at < offset + length; ) at = this.#effect(bytes, at, isStrict);
  }

  /** Returns where the next one begins. */
  #effect(bytes: Bytes, at: number, isStrict: boolean): number {
    const { u8, view } = bytes;
    const db = u8[at + 1];
    switch (u8[at]) {
      case EffectKind.FLUSH:
        return this.#alone(at, () => (db === ALL_DATABASES ? this.#keyspace.flushAll() : this.#keyspace.flush(db)));
      case EffectKind.SWAP:
        return this.#alone(at, () => this.#keyspace.swapDatabases(db, u8[at + 2]));
      case EffectKind.COMMAND:
        return this.#command(bytes, at, db, isStrict);
    }
    const version = readVersion(view, at + 4);
    this.#latest = Math.max(this.#latest, version);
    const length = view.getUint16(at + 12, true);
    const key = this.#key;
    key.bytes = bytes;
    key.offset = at + KEY_BYTE;
    key.length = length;
    const next = at + KEY_BYTE + length;
    switch (u8[at]) {
      case EffectKind.DELETION:
        this.#delete(db);
        return next;
      case EffectKind.EXPIRY:
        this.#expire(db, version, readNumber(view, next));
        return next + 8;
      case EffectKind.STATE: {
        const valueLength = view.getUint32(next + 12, true);
        this.#state(db, version, u8[at + 2], u8[at + 3], bytes, next, valueLength);
        return next + 16 + valueLength;
      }
      default:
        throw new Error(`an effect of unknown kind ${u8[at]}`);
    }
  }

  #alone(at: number, work: () => void): number {
    this.#keyspace.closeGate();
    work();
    this.#keyspace.openGate();
    return at + 4;
  }

  // ---- of one key

  #lock(db: number): number {
    const { bytes, offset, length } = this.#key;
    const hash = this.#keyspace.hash(db, bytes, offset, length);
    this.#keyspace.lock(hash);
    return hash;
  }

  #find(hash: number, db: number): boolean {
    return this.#keyspace.find(hash, db, this.#key.bytes, this.#key.offset, this.#key.length);
  }

  #delete(db: number): void {
    const hash = this.#lock(db);
    if (this.#find(hash, db)) this.#keyspace.remove();
    this.#keyspace.unlock(hash);
    this.#comesBack(db);
  }

  #expire(db: number, version: number, expiryMs: number): void {
    const hash = this.#lock(db);
    if (this.#find(hash, db) && this.#keyspace.version <= version) this.#keyspace.setExpiry(expiryMs);
    this.#keyspace.unlock(hash);
  }

  #state(
    db: number,
    version: number,
    encoding: number,
    type: number,
    bytes: Bytes,
    at: number,
    valueLength: number,
  ): void {
    const flags = bytes.view.getInt32(at, true);
    const expiryMs = readNumber(bytes.view, at + 4);
    if (type === PLAIN_STRING) this.#string(db, encoding, flags, expiryMs, bytes, at + 16, valueLength);
    else this.#collection(db, type, expiryMs, bytes, at + 16, valueLength);
    this.#comesBack(db);
    this.#setVersion(db, version);
  }

  #string(
    db: number,
    encoding: number,
    flags: number,
    expiryMs: number,
    bytes: Bytes,
    at: number,
    length: number,
  ): void {
    const keyspace = this.#keyspace;
    const hash = this.#lock(db);
    const { bytes: keyBytes, offset, length: keyLength } = this.#key;
    let isStored = keyspace.stage(hash, db, keyBytes, offset, keyLength, length);
    if (isStored) {
      copyBytes(keyspace.staged, keyspace.stagedOffset, bytes, at, length);
      isStored = keyspace.commit(ItemType.STRING, encoding, flags, expiryMs);
    }
    keyspace.unlock(hash);
    if (!isStored) throw new Error(NO_ROOM);
  }

  #collection(db: number, type: number, expiryMs: number, bytes: Bytes, at: number, length: number): void {
    this.#sink.select(db);
    const sink = this.#sink.key(this.#key, expiryMs, -1, -1);
    this.#reader.openMemory(bytes, at, length);
    this.#values.read(type, sink);
    this.#sink.loaded();
  }

  /** A key whose state is known again. */
  #comesBack(db: number): void {
    if (this.#evicted.size === 0) return;
    const { bytes, offset, length } = this.#key;
    this.#evicted.delete(this.#nameOf(db, bytes, offset, length));
  }

  /** The key, if it is there, has the version that it had. */
  #setVersion(db: number, version: number): void {
    const keyspace = this.#keyspace;
    const hash = this.#lock(db);
    if (this.#find(hash, db) && !keyspace.setVersion(version)) {
      if (!keyspace.rewrite(keyspace.encoding) || !keyspace.setVersion(version)) throw new Error(NO_ROOM);
    }
    keyspace.unlock(hash);
  }

  // ---- commands

  #command(bytes: Bytes, at: number, db: number, isStrict: boolean): number {
    const { view } = bytes;
    const words = view.getUint16(at + 2, true);
    const version = readVersion(view, at + 4);
    this.#latest = Math.max(this.#latest, version);
    if (words * 2 > this.#args.length) this.#args = new Int32Array(words * 4);
    let next = at + 12;
    for (let i = 0; i < words; i++) {
      const length = view.getUint32(next, true);
      this.#args[i * 2] = next + 4;
      this.#args[i * 2 + 1] = length;
      next += 4 + length;
    }
    const key = this.#key;
    key.bytes = bytes;
    key.offset = this.#args[2];
    key.length = this.#args[3];
    if (!this.#isBelow(db, version) || this.#isEvicted(db)) return next;
    this.#execute(bytes, words, db, isStrict);
    this.#setVersion(db, version);
    return next;
  }

  #isBelow(db: number, version: number): boolean {
    const hash = this.#lock(db);
    const isBelow = !this.#find(hash, db) || this.#keyspace.version < version;
    this.#keyspace.unlock(hash);
    return isBelow;
  }

  #isEvicted(db: number): boolean {
    const { bytes, offset, length } = this.#key;
    return this.#evicted.size > 0 && this.#evicted.has(this.#nameOf(db, bytes, offset, length));
  }

  #execute(bytes: Bytes, words: number, db: number, isStrict: boolean): void {
    const { context } = this.#executor;
    const output = this.#output;
    const errors = this.#reply.errorCount;
    this.#client.db = db;
    output.begin(0);
    context.bind(this.#client, bytes, this.#args, 0, words);
    do this.#executor.execute(this.#executor.lookup(), false);
    while (this.#client.work !== null);
    if (this.#reply.errorCount !== errors && isStrict && this.failure === '') {
      const text = Buffer.from(output.u8.subarray(0, Math.min(200, output.position))).toString('latin1');
      this.failure = `${context.argString(0)}: ${text.trim()}`;
    }
    output.end();
    output.restart();
  }

  #nameOf(db: number, bytes: Bytes, offset: number, length: number): string {
    return `${db}/${Buffer.from(bytes.u8.slice(offset, offset + length)).toString('latin1')}`;
  }

  #logicalOf(physical: number): number {
    for (let db = 0; db < 16; db++) if (this.#keyspace.physical(db) === physical) return db;
    return -1;
  }

  /** No version that there ever was is given again. */
  end(): void {
    const keyspace = this.#keyspace;
    keyspace.feed.onEvent = null;
    const { ctl, shardTable, shardCount } = keyspace.memory;
    for (let shard = 0; shard < shardCount; shard++) {
      const at = shardTable + shard * Shard.WORDS;
      const own = ctl[at + Shard.VERSION_HIGH_WORD] * TWO_32 + (ctl[at + Shard.VERSION_LOW_WORD] >>> 0);
      if (own >= this.#latest) continue;
      ctl[at + Shard.VERSION_LOW_WORD] = this.#latest | 0;
      ctl[at + Shard.VERSION_HIGH_WORD] = Math.floor(this.#latest / TWO_32);
    }
    keyspace.refreshClock();
  }
}

const KEY_BYTE = 14;
const NO_ROOM = 'the memory tiers have no room for what the log holds';

function readVersion(view: DataView, at: number): number {
  return readNumber(view, at);
}

function readNumber(view: DataView, at: number): number {
  return view.getInt32(at + 4, true) * TWO_32 + view.getUint32(at, true);
}

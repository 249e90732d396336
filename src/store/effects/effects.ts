/**
 * What a participant writes down of its changes, in a pool of durability `durable`.
 *
 * The store says which keys change (`note`, from the same places that clients' caches are invalidated from). Before their locks are released,
 * `emit` turns them into one record: the key's state, its deletion, its new expiry; or, where the executor says that the command is
 * the whole difference (`begin`, `end`), the command. So nothing that changes data can be forgotten, whoever does it, and a transaction or a
 * script, which holds its locks to the end, is one record. What is evicted or expires while a command works is a record of its own, at once:
 * its lock may be released before the command's are.
 *
 * Invariant: an effect tells of one key only, and what it makes of it follows from that key, the effect and its time alone (recovery).
 */
import { type Bytes, bytesEqual } from '../../layout/bytes.js';
import { ALL_DATABASES, Doubt, EffectKind, PLAIN_STRING } from '../../layout/effects.js';
import { Item, ItemType } from '../../layout/item.js';
import { Database, Participant, Shard, Super } from '../../layout/superblock.js';
import { addon } from '../../native/addon.js';
import { copyBytes } from '../../native/copy.js';
import type { Keyspace } from '../keyspace.js';
import { ChangedKeys, Mark } from './changed-keys.js';
import { RecordBuffer } from './record-buffer.js';
import { EffectRing } from './ring.js';

/** Writes the value of a collection as bytes: see rdb/value-encoder. */
export interface ValueEncoder {
  readonly bytes: Bytes;
  readonly length: number;
  /** Of the item that the cursor stands on; its type in RDB, -1 = there is nothing of it. */
  encode(keyspace: Keyspace): number;
}

export class Effects {
  /** Absent where no collection is ever changed but in the background (the embedded library): then the log is in doubt. */
  encoder: ValueEncoder | null = null;
  /** A record has been appended: called before the locks are released. */
  onRecord: (() => void) | null = null;

  /** A blocked client of this participant gets what it waits for: called without locks, before it is answered. */
  onServed: ((conn: number, hashes: Int32Array) => void) | null = null;

  readonly #keyspace: Keyspace;
  readonly #ctl: Int32Array;
  readonly #ring: EffectRing;
  readonly #changed = new ChangedKeys();
  /** Commands and flushes of the record in hand, in their order; then states. */
  readonly #commands = new RecordBuffer();
  readonly #states = new RecordBuffer();
  /** Of a record of its own: see noteRemoval. */
  readonly #single = new RecordBuffer();

  /** The key of the command in hand, while that may be the whole difference; and whether it has changed it. */
  #isCommand = false;
  #commandHash = 0;
  #commandDatabase = 0;
  #hasChanged = false;
  /** The record in hand holds a flush or a swap. */
  #hasFlushed = false;

  constructor(keyspace: Keyspace) {
    const { memory } = keyspace;
    this.#keyspace = keyspace;
    this.#ctl = memory.ctl;
    const page = memory.ctl[memory.participantWord(memory.self) + Participant.RING_WORD];
    this.#ring = new EffectRing(memory, page);
  }

  /** The log cannot be written: an errno, 0 = it can. */
  get refusal(): number {
    return this.#ctl[Super.EFFECTS_REFUSED_WORD];
  }

  /** Something has been done that no record tells of: a checkpoint will. */
  get isInDoubt(): boolean {
    return this.#ctl[Super.EFFECTS_DOUBT_WORD] !== Doubt.NO;
  }

  /** Number that the next record of any participant gets. */
  get nextNumber(): number {
    return Atomics.load(this.#ctl, Super.EFFECTS_NUMBER_WORD);
  }

  /** Records below this number are persistent. */
  get persistentNumber(): number {
    return Atomics.load(this.#ctl, Super.EFFECTS_PERSISTENT_WORD);
  }

  /** Lets the writer of the log begin now, and wake this participant when it is done. */
  hurry(): void {
    this.#ring.askForWake();
    this.#ring.wakeWriter();
  }

  /** Waits until all records below a number are persistent, for a while at most. */
  waitUntil(number: number, limitMs: number): void {
    const endMs = addon.monotonicMs() + limitMs;
    for (;;) {
      const persistent = this.persistentNumber;
      if (((persistent - number) | 0) >= 0 || addon.monotonicMs() >= endMs) return;
      this.#ring.wakeWriter();
      const { arena } = this.#keyspace.memory.arenas[0];
      addon.futexWait(arena, Super.EFFECTS_PERSISTENT_WORD << 2, persistent, WAIT_STEP_MS);
    }
  }

  // ---- what changes

  /** A key's value (or its expiry alone) has changed. `database` is the physical one. */
  note(hash: number, database: number, bytes: Bytes, offset: number, length: number, mark: Mark): void {
    if (database === Database.DRAFTS) return;
    this.#changed.add(hash, database, bytes, offset, length, this.#markOf(hash, database, mark));
  }

  #markOf(hash: number, database: number, mark: Mark): Mark {
    if (!this.#isCommand || hash !== this.#commandHash || database !== this.#commandDatabase) return mark;
    this.#hasChanged = true;
    return Mark.COMMAND;
  }

  /** A key is being removed, by a command or (`isAlone`) because it has expired or is evicted. */
  noteRemoval(hash: number, database: number, bytes: Bytes, offset: number, length: number, isAlone: boolean): void {
    if (database === Database.DRAFTS) return;
    if (!isAlone) return this.note(hash, database, bytes, offset, length, Mark.STATE);
    const isOurs = this.#changed.marksOf(hash, database, bytes, offset, length) !== 0;
    if (isOurs || this.#hasFlushed) return this.#removeWithin(hash, database, bytes, offset, length);
    const logical = this.#logicalOf(database);
    if (logical < 0) return;
    const buffer = this.#single;
    buffer.clear();
    this.#deletion(buffer, hash, logical, bytes, offset, length);
    this.#ring.append(buffer, null, this.#keyspace.nowMs);
    this.onRecord?.();
  }

  /**
   * What the command itself has changed goes while it works: it holds that key's lock to the end, and its record tells what has become of the key.
   * In front of the record the removal would come before what the command has done to it.
   */
  #removeWithin(hash: number, database: number, bytes: Bytes, offset: number, length: number): void {
    this.#changed.add(hash, database, bytes, offset, length, Mark.STATE);
    // By another number the key may have other commands.
    if (!this.#hasFlushed) dropCommands(this.#commands, this.#logicalOf(database), bytes, offset, length);
  }

  noteFlush(db: number): void {
    this.#hasFlushed = true;
    this.#commands.byte(EffectKind.FLUSH);
    this.#commands.byte(db);
    this.#commands.int16(0);
  }

  noteFlushAll(): void {
    this.noteFlush(ALL_DATABASES);
  }

  noteSwap(a: number, b: number): void {
    this.#hasFlushed = true;
    this.#commands.byte(EffectKind.SWAP);
    this.#commands.byte(a);
    this.#commands.byte(b);
    this.#commands.byte(0);
  }

  // ---- commands that are the whole difference

  /** A command begins whose effect follows from its words, its one key and the time. */
  begin(hash: number, db: number): void {
    this.#isCommand = true;
    this.#hasChanged = false;
    this.#commandHash = hash;
    this.#commandDatabase = this.#ctl[this.#keyspace.memory.databaseTable + db];
  }

  /** It has ended: `args` are (offset, length) pairs from `first` on, the key is word 1. */
  end(db: number, input: Bytes, args: Int32Array, first: number, argc: number): void {
    if (!this.#isCommand) return;
    this.#isCommand = false;
    if (!this.#hasChanged) return;
    const keyOffset = args[first + 2];
    const keyLength = args[first + 3];
    const marks = this.#changed.marksOf(this.#commandHash, this.#commandDatabase, input, keyOffset, keyLength);
    // Its state is written down anyway.
    if ((marks & Mark.STATE) !== 0) return;
    const buffer = this.#commands;
    buffer.byte(EffectKind.COMMAND);
    buffer.byte(db);
    if (argc > MAX_WORDS) {
      buffer.length -= 2;
      this.#changed.add(this.#commandHash, this.#commandDatabase, input, keyOffset, keyLength, Mark.STATE);
      return;
    }
    buffer.int16(argc);
    this.#version(buffer, this.#commandHash);
    for (let i = 0; i < argc; i++) {
      const length = args[first + i * 2 + 1];
      buffer.int32(length);
      buffer.raw(input, args[first + i * 2], length);
    }
  }

  // ---- the record

  /** Writes down what has changed, if anything has. The locks are held. */
  emitPending(): void {
    if (this.#changed.count === 1 && this.#commands.length === 0 && this.#emitString()) return;
    if (this.#changed.count !== 0 || this.#commands.length !== 0) this.#emit();
  }

  /** Most records: the state of one string. It is written where it will lie; false = it is none, or there is no room for that. */
  #emitString(): boolean {
    const keyspace = this.#keyspace;
    const changed = this.#changed;
    const db = this.#logicalOf(changed.database(0));
    if ((changed.marks(0) & Mark.STATE) === 0 || db < 0) return false;
    if (!keyspace.findAgain(changed.hash(0), db, changed.names.bytes, changed.offset(0), changed.length(0)))
      return false;
    if (keyspace.type !== ItemType.STRING) return false;
    const window = this.#ring.open(KEY_BYTES + keyspace.keyLength + VALUE_BYTES + keyspace.valueLength);
    if (window === null) return false;
    this.#state(window, db);
    this.#ring.close(keyspace.nowMs);
    this.onRecord?.();
    changed.clear();
    return true;
  }

  #emit(): void {
    const changed = this.#changed;
    const states = this.#states;
    states.clear();
    for (let i = 0; i < changed.count; i++) this.#writeKey(i);
    // A key that is gone by now is that, whatever its commands were.
    const isGone = changed.count === 1 && states.length > 0 && states.bytes.u8[0] === EffectKind.DELETION;
    if (isGone && !this.#hasFlushed) this.#commands.clear();
    if (states.length + this.#commands.length > 0) {
      this.#ring.append(this.#commands, states, this.#keyspace.nowMs);
      this.onRecord?.();
    }
    this.#commands.clear();
    this.#hasFlushed = false;
    changed.clear();
  }

  #writeKey(i: number): void {
    const keyspace = this.#keyspace;
    const changed = this.#changed;
    const database = changed.database(i);
    const db = this.#logicalOf(database);
    // Of a database that has been flushed since.
    if (db < 0) return;
    const { bytes } = changed.names;
    const hash = changed.hash(i);
    const offset = changed.offset(i);
    const length = changed.length(i);
    const marks = changed.marks(i);
    if (!keyspace.find(hash, db, bytes, offset, length)) {
      this.#deletion(this.#states, hash, db, bytes, offset, length);
    } else if ((marks & Mark.STATE) !== 0) {
      this.#state(this.#states, db);
    } else if ((marks & Mark.EXPIRY) !== 0) {
      this.#expiry(this.#states, db);
    }
  }

  /** The state of the item that the cursor stands on. */
  #state(buffer: RecordBuffer, db: number): void {
    if (!writeState(this.#keyspace, this.encoder, buffer, db))
      Atomics.store(this.#ctl, Super.EFFECTS_DOUBT_WORD, Doubt.YES);
  }

  #deletion(buffer: RecordBuffer, hash: number, db: number, bytes: Bytes, offset: number, length: number): void {
    buffer.byte(EffectKind.DELETION);
    buffer.byte(db);
    buffer.int16(0);
    this.#version(buffer, hash);
    buffer.int16(length);
    buffer.raw(bytes, offset, length);
  }

  #expiry(buffer: RecordBuffer, db: number): void {
    writeKey(this.#keyspace, buffer, EffectKind.EXPIRY, db, 0, 0);
    buffer.int64(this.#keyspace.expiryMs);
  }

  /** The version that the last change in the hash's shard was given. */
  #version(buffer: RecordBuffer, hash: number): void {
    const shard = this.#keyspace.index.shardWord(hash);
    buffer.int32(this.#ctl[shard + Shard.VERSION_LOW_WORD]);
    buffer.int32(this.#ctl[shard + Shard.VERSION_HIGH_WORD]);
  }

  #logicalOf(physical: number): number {
    const { databaseTable } = this.#keyspace.memory;
    for (let db = 0; db < Database.LOGICAL; db++) if (this.#ctl[databaseTable + db] === physical) return db;
    return -1;
  }
}

const WAIT_STEP_MS = 2;
const MAX_WORDS = 0xffff;
const TWO_32 = 0x1_0000_0000;
const head = new RecordBuffer();

/** Begins an effect on the item that the cursor stands on. `a`, `b`: see layout/effects. */
function writeKey(keyspace: Keyspace, buffer: RecordBuffer, kind: EffectKind, db: number, a: number, b: number): void {
  const { keyLength } = keyspace;
  const { i32 } = keyspace.keyBytes;
  const header = keyspace.itemOffset >>> 2;
  buffer.reserve(KEY_BYTES + keyLength);
  const { view } = buffer.bytes;
  const at = buffer.length;
  view.setInt32(at, kind | (db << 8) | (a << 16) | (b << 24), true);
  view.setInt32(at + 4, i32[header + Item.VERSION_LOW_WORD], true);
  view.setInt32(at + 8, i32[header + Item.VERSION_HIGH_WORD], true);
  view.setUint16(at + 12, keyLength, true);
  copyBytes(buffer.bytes, at + KEY_BYTES, keyspace.keyBytes, keyspace.keyOffset, keyLength);
  buffer.length = at + KEY_BYTES + keyLength;
}

/** Writes the state of the item that the cursor stands on; of a hash none of whose fields are left, its deletion. False = it cannot. */
export function writeState(
  keyspace: Keyspace,
  encoder: ValueEncoder | null,
  buffer: RecordBuffer,
  db: number,
): boolean {
  const { clientFlags, expiryMs } = keyspace;
  if (keyspace.type === ItemType.STRING) {
    writeKey(keyspace, buffer, EffectKind.STATE, db, keyspace.encoding, PLAIN_STRING);
    writeValue(buffer, clientFlags, expiryMs, keyspace.value, keyspace.valueOffset, keyspace.valueLength);
    return true;
  }
  if (encoder === null) return false;
  // Reading a collection may let go of the item for a while, which may then lie elsewhere: its key is kept first.
  head.clear();
  writeKey(keyspace, head, EffectKind.STATE, db, 0, 0);
  const type = encoder.encode(keyspace);
  head.bytes.u8[KIND_BYTE] = type < 0 ? EffectKind.DELETION : EffectKind.STATE;
  head.bytes.u8[TYPE_BYTE] = Math.max(0, type);
  buffer.raw(head.bytes, 0, head.length);
  if (type >= 0) writeValue(buffer, clientFlags, expiryMs, encoder.bytes, 0, encoder.length);
  return true;
}

function writeValue(
  buffer: RecordBuffer,
  clientFlags: number,
  expiryMs: number,
  value: Bytes,
  offset: number,
  length: number,
): void {
  buffer.reserve(VALUE_BYTES + length);
  const { view } = buffer.bytes;
  const at = buffer.length;
  view.setInt32(at, clientFlags, true);
  view.setInt32(at + 4, expiryMs | 0, true);
  view.setInt32(at + 8, expiryMs === 0 ? 0 : Math.floor(expiryMs / TWO_32), true);
  view.setInt32(at + 12, length, true);
  copyBytes(buffer.bytes, at + VALUE_BYTES, value, offset, length);
  buffer.length = at + VALUE_BYTES + length;
}

/** Takes the commands on a key out of what is to be written. */
function dropCommands(commands: RecordBuffer, db: number, key: Bytes, offset: number, length: number): void {
  const { bytes } = commands;
  let kept = 0;
  for (let at = 0; at < commands.length; ) {
    const { u8, view } = bytes;
    const isCommand = u8[at] === EffectKind.COMMAND;
    let next = at + (isCommand ? COMMAND_BYTES : FLUSH_BYTES);
    let isOfKey = false;
    for (let word = 0, words = isCommand ? view.getUint16(at + 2, true) : 0; word < words; word++) {
      const wordLength = view.getUint32(next, true);
      if (word === 1) {
        isOfKey = u8[at + 1] === db && wordLength === length && bytesEqual(bytes, next + 4, key, offset, length);
      }
      next += 4 + wordLength;
    }
    if (!isOfKey) {
      u8.copyWithin(kept, at, next);
      kept += next - at;
    }
    at = next;
  }
  commands.length = kept;
}

const KIND_BYTE = 0;
const TYPE_BYTE = 3;
/** What stands in front of a key, and of a value. */
const KEY_BYTES = 14;
const VALUE_BYTES = 16;
/** Of a command, its words apart; of a flush or a swap. */
const COMMAND_BYTES = 12;
const FLUSH_BYTES = 4;

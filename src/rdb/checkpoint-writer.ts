/**
 * Checkpoints of large collections in a warm pool: the collection as DUMP writes it, in parts in the capacity log (layout/checkpoint).
 *
 * The collection is read in slices, between which its lock is released: one that changes meanwhile gets its checkpoint another time. Owns the
 * payload in hand. Invariant: what is attached to the collection's item as its copy is all parts, of what the item is at that moment.
 */
import { Bytes } from '../layout/bytes.js';
import { Checkpoint } from '../layout/checkpoint.js';
import { Item, ItemType, shapeWord } from '../layout/item.js';
import { unitsOf } from '../layout/location.js';
import { copyBytes } from '../native/copy.js';
import type { Keyspace } from '../store/keyspace.js';
import { Stat } from '../store/statistics.js';
import type { CheckpointTaker } from '../store/write-behind.js';
import { Version } from './format.js';
import { ValueWriter } from './value-writer.js';
import { RdbWriter } from './writer.js';

/** The collection's lock is held for so long at once. */
const SLICE_MS = 1;
/** Collections too large for a checkpoint that are remembered, not to be read again in each round. */
const REFUSED_MAX = 1000;

/** It has changed, or it is too large. */
class GivenUp extends Error {
  override readonly name = 'GivenUp';
}

interface Part {
  readonly page: number;
  readonly unit: number;
  readonly check: number;
  readonly units: number;
}

export class CheckpointWriter implements CheckpointTaker {
  readonly #keyspace: Keyspace;
  readonly #writer = new RdbWriter();
  readonly #values: ValueWriter;
  readonly #header = new Int32Array(Item.HEADER_WORDS);
  /** Versions of collections that have turned out too large. */
  readonly #refused = new Set<number>();
  /** Item of a part: header, key, value. */
  #image = Bytes.allocate(Item.HEADER_BYTES + Checkpoint.HEADER_BYTES + Checkpoint.PART_BYTES);
  #hash = 0;
  #page = 0;
  #unit = 0;
  #version = 0;
  #sliceEndMs = 0;

  constructor(keyspace: Keyspace) {
    this.#keyspace = keyspace;
    this.#values = new ValueWriter(this.#writer);
    this.#values.onPause = () => this.#pause();
    // Time is dearer here than room.
    this.#writer.compresses = false;
  }

  /** Writes the collection whose root item lies there, if it may. Returns what it has taken of the log. Inside a batch, without locks. */
  take(hash: number, page: number, unit: number): number {
    const keyspace = this.#keyspace;
    this.#hash = hash;
    this.#page = page;
    this.#unit = unit;
    this.#version = 0;
    this.#writer.clear();
    this.#lock();
    try {
      if (!this.#find() || this.#refused.has(keyspace.version)) return 0;
      this.#version = keyspace.version;
      const type = this.#values.plan(keyspace, Version.REDIS_7_4);
      if (type < 0) return 0;
      this.#writer.byte(type);
      this.#values.write();
      this.#fits();
      this.#fillHeader();
    } catch (error) {
      if (!(error instanceof GivenUp)) throw error;
      return 0;
    } finally {
      this.#unlock();
    }
    const parts = this.#append();
    const bytes = parts.reduce((sum, { units }) => sum + units * 16, 0);
    if (this.#writer.length > parts.length * Checkpoint.PART_BYTES) this.#drop(parts);
    else this.#attach(parts, bytes);
    this.#writer.clear();
    return bytes;
  }

  #lock(): void {
    this.#keyspace.lock(this.#hash);
    this.#sliceEndMs = performance.now() + SLICE_MS;
  }

  #unlock(): void {
    this.#keyspace.unlock(this.#hash);
  }

  /** Puts the cursor on the item. */
  #find(): boolean {
    const keyspace = this.#keyspace;
    if (!keyspace.index.findLocation(this.#hash, this.#page, this.#unit)) return false;
    keyspace.openEntry();
    return this.#version === 0 || keyspace.version === this.#version;
  }

  #pause(): void {
    this.#fits();
    if (performance.now() < this.#sliceEndMs) return;
    this.#unlock();
    this.#keyspace.leaveBatch();
    this.#keyspace.enterBatch();
    this.#lock();
    if (!this.#find()) throw new GivenUp();
  }

  #fits(): void {
    if (this.#writer.length <= Checkpoint.PAYLOAD_BYTES_MAX) return;
    if (this.#refused.size === REFUSED_MAX) this.#refused.clear();
    this.#refused.add(this.#version);
    throw new GivenUp();
  }

  /** What all parts have in common. The cursor stands on the item. */
  #fillHeader(): void {
    const keyspace = this.#keyspace;
    if (!this.#find()) throw new GivenUp();
    const { value, itemOffset, keyLength } = keyspace;
    for (let word = 0; word < Item.HEADER_WORDS; word++) this.#header[word] = value.i32[(itemOffset >>> 2) + word];
    this.#header[Item.SHAPE_WORD] = shapeWord(keyLength, ItemType.CHECKPOINT, 0, keyspace.itemDatabase);
    const needed = Item.HEADER_BYTES + keyLength + Checkpoint.HEADER_BYTES + Checkpoint.PART_BYTES;
    if (this.#image.length < needed) this.#image = Bytes.allocate(needed);
    copyBytes(this.#image, Item.HEADER_BYTES, value, keyspace.keyOffset, keyLength);
  }

  /** All parts, or as many as the tier has room for. */
  #append(): Part[] {
    const { log, memory, statistics } = this.#keyspace;
    const { view } = this.#image;
    const keyLength = this.#header[Item.SHAPE_WORD] & Item.KEY_LENGTH_MASK;
    const value = Item.HEADER_BYTES + keyLength;
    const parts: Part[] = [];
    const payload = this.#writer.length;
    for (let from = 0; from < payload; from += Checkpoint.PART_BYTES) {
      const length = Math.min(Checkpoint.PART_BYTES, payload - from);
      const before = parts.at(-1);
      const isLast = from + length === payload;
      view.setUint32(
        value + Checkpoint.PAGE_BYTE,
        before === undefined ? 0 : before.page - memory.capacityBase + 1,
        true,
      );
      view.setUint16(value + Checkpoint.UNIT_BYTE, before?.unit ?? 0, true);
      view.setUint16(value + Checkpoint.NUMBER_BYTE, parts.length | (isLast ? Checkpoint.LAST_FLAG : 0), true);
      copyBytes(this.#image, value + Checkpoint.HEADER_BYTES, this.#writer.bytes, from, length);
      this.#header[Item.VALUE_LENGTH_WORD] = Checkpoint.HEADER_BYTES + length;
      if (!log.appendFrom(this.#image, 0, this.#header)) break;
      const units = unitsOf(value + Checkpoint.HEADER_BYTES + length);
      statistics[Stat.CAPACITY_BYTES_WRITTEN] += units * 16;
      parts.push({ page: log.page, unit: log.unit, check: log.check, units });
    }
    return parts;
  }

  #drop(parts: readonly Part[]): void {
    for (const { page, unit, units } of parts) this.#keyspace.log.drop(page, unit, units);
  }

  #attach(parts: readonly Part[], bytes: number): void {
    const keyspace = this.#keyspace;
    const { log, copies, statistics } = keyspace;
    this.#lock();
    if (this.#find() && !copies.find(this.#page, this.#unit)) {
      const last = parts[parts.length - 1];
      copies.attach(this.#page, this.#unit, last.page, last.unit);
      // After that: a record that counts has an item that knows of it.
      for (const { page, unit, check } of parts) log.confirm(page, unit, check, keyspace.expiryMs);
      statistics[Stat.WRITTEN_BEHIND]++;
      statistics[Stat.WRITTEN_BEHIND_BYTES] += bytes;
    } else this.#drop(parts);
    this.#unlock();
  }
}

/**
 * A value that has been read from a DUMP payload, before the store is touched: it may turn out to be damaged at its very end. A stream, which is
 * checked by reading it alone, is not kept: it is read once more.
 *
 * Owns: copies of its strings. Invariant: keys of hashes, members of sets and of sorted sets are there once each.
 */
import type { Bytes } from '../../layout/bytes.js';
import { ItemType } from '../../layout/item.js';
import { RdbError } from '../../rdb/format.js';
import type { ValueSink } from '../../rdb/sink.js';
import type { Keyspace } from '../../store/keyspace.js';
import { MemberTable } from '../sets/member-table.js';

const KEPT_NUMBERS_MAX = 1 << 17;

export class GatheredValue implements ValueSink {
  type: ItemType = ItemType.NONE;
  /** Elements; of a string the whole of it is the one. */
  readonly keys: MemberTable;
  /** Values of a hash. */
  readonly values: MemberTable;
  /** Scores, or expiries of fields. */
  numbers = new Float64Array(64);

  readonly #keyspace: Keyspace;

  constructor(keyspace: Keyspace, keys = new MemberTable(), values = new MemberTable()) {
    this.#keyspace = keyspace;
    this.keys = keys;
    this.values = values;
  }

  get count(): number {
    return this.type === ItemType.STREAM ? 1 : this.keys.count;
  }

  clear(): void {
    this.keys.clear();
    this.values.clear();
    if (this.numbers.length > KEPT_NUMBERS_MAX) this.numbers = new Float64Array(64);
  }

  /** Hands everything over to an object of its own, and is empty. */
  take(): GatheredValue {
    const taken = new GatheredValue(this.#keyspace, this.keys.take(), this.values.take());
    taken.type = this.type;
    taken.numbers = this.numbers;
    this.numbers = new Float64Array(64);
    this.clear();
    return taken;
  }

  begin(type: ItemType): void {
    this.clear();
    this.type = type;
  }

  text(bytes: Bytes, offset: number, length: number): void {
    this.keys.push(bytes, offset, length);
  }

  element(bytes: Bytes, offset: number, length: number): void {
    if (this.type === ItemType.LIST) this.keys.push(bytes, offset, length);
    else this.#add(bytes, offset, length);
  }

  scored(score: number, bytes: Bytes, offset: number, length: number): void {
    this.#add(bytes, offset, length);
    this.#number(score);
  }

  pair(
    bytes: Bytes,
    offset: number,
    length: number,
    value: Bytes,
    valueOffset: number,
    valueLength: number,
    expiryMs: number,
  ): void {
    // A field whose time has come is not there.
    if (expiryMs !== 0 && expiryMs <= this.#keyspace.nowMs) return;
    this.#add(bytes, offset, length);
    this.values.push(value, valueOffset, valueLength);
    this.#number(expiryMs);
  }

  entry(): void {}
  state(): void {}
  group(): void {}
  consumer(): void {}
  pending(): void {}

  #add(bytes: Bytes, offset: number, length: number): void {
    const hash = this.#keyspace.hash(0, bytes, offset, length);
    if (!this.keys.add(hash, bytes, offset, length)) throw new RdbError('an element comes twice');
  }

  #number(value: number): void {
    const at = this.keys.count - 1;
    if (at >= this.numbers.length) {
      const larger = new Float64Array(this.numbers.length * 2);
      larger.set(this.numbers);
      this.numbers = larger;
    }
    this.numbers[at] = value;
  }
}

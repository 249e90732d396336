/**
 * Copies items into the capacity log without holding the lock of their shard: media that write slowly keep nobody waiting.
 *
 * note (under the lock) -> copy (without it) -> isUnchanged and link or attach, or drop (under it again). Owns: the copy under way. Invariant: an
 * entry only ever points to a whole copy. A chunk may be changed, freed and filled anew while it is copied; the item's header was the same
 * under the lock before and after, and its version, which each change of a value in place moves on first, never comes back.
 */
import { Item, itemBytes } from '../layout/item.js';
import { locationOffset, Page, unitsOf } from '../layout/location.js';
import { Super } from '../layout/superblock.js';
import { CLASS_COUNT, CLASS_UNITS } from '../memory/slab-classes.js';
import type { Keyspace } from './keyspace.js';
import { Stat } from './statistics.js';

/** An item of the largest slab class. */
const MAX_LOG_ITEM_BYTES = CLASS_UNITS[CLASS_COUNT - 1] * Page.UNIT_BYTES;

export class Demotion {
  readonly #keyspace: Keyspace;
  /** The item's header under the lock. */
  readonly #header = new Int32Array(Item.HEADER_WORDS);
  #restored = 0;
  #page = 0;
  #unit = 0;
  #bytes = 0;
  #toPage = 0;
  #toUnit = 0;
  #toCheck = 0;
  #isCopied = false;

  constructor(keyspace: Keyspace) {
    this.#keyspace = keyspace;
  }

  /** Remembers an item that is to be copied; its shard is locked. False when it cannot be demoted. */
  note(page: number, unit: number): boolean {
    const { memory } = this.#keyspace;
    if (memory.capacityPages === 0 || memory.isCapacity(page)) return false;
    const { i32 } = memory.arenas[page >>> Page.ARENA_SHIFT];
    const header = locationOffset(page, unit) >>> 2;
    for (let i = 0; i < Item.HEADER_WORDS; i++) this.#header[i] = i32[header + i];
    const keyLength = this.#header[Item.SHAPE_WORD] & Item.KEY_LENGTH_MASK;
    this.#bytes = itemBytes(keyLength, this.#header[Item.VALUE_LENGTH_WORD]);
    this.#page = page;
    this.#unit = unit;
    this.#restored = Atomics.load(memory.ctl, Super.RESTORED_WORD);
    return this.#bytes <= MAX_LOG_ITEM_BYTES;
  }

  /** What a copy of the noted item takes in the log. */
  get bytes(): number {
    return unitsOf(this.#bytes) << Page.UNIT_SHIFT;
  }

  /** Appends the copy; false when the tier has no room. */
  copy(): boolean {
    const { log, statistics } = this.#keyspace;
    this.#isCopied = log.append(this.#page, this.#unit, this.#header);
    this.#toPage = log.page;
    this.#toUnit = log.unit;
    this.#toCheck = log.check;
    if (this.#isCopied) statistics[Stat.CAPACITY_BYTES_WRITTEN] += this.bytes;
    return this.#isCopied;
  }

  /** True when the item is what it was when it was noted, and the copy therefore whole. The shard is locked. */
  isUnchanged(): boolean {
    const { memory } = this.#keyspace;
    // A change that was rolled back meanwhile has left no trace in the item.
    if (Atomics.load(memory.ctl, Super.RESTORED_WORD) !== this.#restored) return false;
    const { i32 } = memory.arenas[this.#page >>> Page.ARENA_SHIFT];
    const header = locationOffset(this.#page, this.#unit) >>> 2;
    for (let i = 0; i < Item.HEADER_WORDS; i++) if (i32[header + i] !== this.#header[i]) return false;
    return true;
  }

  /** Lets the entry that the index stands on point to the copy. What the command has changed so far is settled. */
  link(hash: number): void {
    const keyspace = this.#keyspace;
    const { index, log } = keyspace;
    const expiryMs = index.expiryMs;
    this.#moveTo(hash, this.#toPage, this.#toUnit, this.bytes);
    // Undone by a death in between, the record must not count: nothing would tell of it when the item changes.
    keyspace.settle();
    log.confirm(this.#toPage, this.#toUnit, this.#toCheck, expiryMs);
  }

  /** The same for an item that has a copy already, which has just been found: nothing is written. */
  linkCopy(hash: number): void {
    const keyspace = this.#keyspace;
    const { copies } = keyspace;
    const bytes = copies.detach() << Page.UNIT_SHIFT;
    this.#moveTo(hash, copies.page, copies.unit, bytes);
    keyspace.statistics[Stat.DEMOTED_CLEAN]++;
  }

  #moveTo(hash: number, page: number, unit: number, bytes: number): void {
    const keyspace = this.#keyspace;
    const { index } = keyspace;
    // Only what is used from here on keeps it there: under the *-lfu policies the hand has not taken the uses away.
    if (index.frequency > 0) index.spare();
    keyspace.moveEntry(hash, page, unit);
    keyspace.statistics[Stat.DEMOTED]++;
    keyspace.statistics[Stat.DEMOTED_BYTES] += bytes;
  }

  /** The item stays where it is, and has the copy beside it. The index stands on its entry. */
  attach(): void {
    const { index, log, copies, statistics } = this.#keyspace;
    copies.attach(this.#page, this.#unit, this.#toPage, this.#toUnit);
    // Last: a record that counts has an item that knows of it.
    log.confirm(this.#toPage, this.#toUnit, this.#toCheck, index.expiryMs);
    statistics[Stat.WRITTEN_BEHIND]++;
    statistics[Stat.WRITTEN_BEHIND_BYTES] += this.bytes;
  }

  /** The copy is of no use: its units in the log are dead. */
  drop(): void {
    if (this.#isCopied) this.#keyspace.log.drop(this.#toPage, this.#toUnit, unitsOf(this.#bytes));
  }
}

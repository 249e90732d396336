/**
 * checkInvariants for collections: walks a packed leaf or the trees of an item, and the graveyard. For tests and `pool check`.
 *
 * What it checks: order, counts, levels, parents, separators, slots within their heap, elements' own chunks, the side tree of a sorted set
 * against its main tree, and that the chunks of a collection add up. It hands every chunk that it meets to `note`.
 */
import type { Bytes } from '../../layout/bytes.js';
import { Form, Order, Root, rootOffset } from '../../layout/collection.js';
import { Item, ItemType } from '../../layout/item.js';
import { locationOffset, Page } from '../../layout/location.js';
import { ElementCode, Inner, Leaf, Node } from '../../layout/node.js';
import { Database, Super } from '../../layout/superblock.js';
import { NO_PAGE } from '../../memory/page-pool.js';
import type { Keyspace } from '../keyspace.js';
import { checkStream } from '../streams/check.js';
import { Graveyard, LINK_PAGE_WORD, LINK_UNIT_WORD } from './graveyard.js';
import { chunkUnits } from './nodes.js';

/** What the walk needs of a store: also of one that is damaged, where no keyspace can be had. */
export type Walked = Pick<Keyspace, 'memory' | 'hash'>;

export type NoteChunk = (page: number, unit: number) => void;

interface Element {
  readonly prefix: Buffer;
  readonly key: Buffer;
  readonly value: Buffer;
}

function fail(message: string): never {
  throw new Error(`collection: ${message}`);
}

function ensure(condition: boolean, message: string): void {
  if (!condition) fail(message);
}

/** Checks the item at a location, if it is a collection, and notes its chunks (the item's own excepted). */
export function checkCollection(keyspace: Walked, page: number, unit: number, note: NoteChunk): void {
  const { memory } = keyspace;
  const item = memory.arenas[page >>> Page.ARENA_SHIFT];
  const offset = locationOffset(page, unit);
  const shape = item.i32[(offset >>> 2) + Item.SHAPE_WORD];
  const type = (shape >>> Item.TYPE_SHIFT) & Item.TYPE_MASK;
  if (type <= ItemType.STRING) return;
  const valueOffset = offset + Item.HEADER_BYTES + (shape & Item.KEY_LENGTH_MASK);
  const root = rootOffset(valueOffset);
  const head = item.i32[root >>> 2];
  const order: Order = (head >>> Root.ORDER_SHIFT) & Root.ORDER_MASK;
  const valued = ((head >>> Root.VALUED_SHIFT) & 1) === 1;
  const body = root + 4 * (1 + ((head >>> Root.META_SHIFT) & Root.META_MASK));
  const form = head & Root.FORM_MASK;
  const isStream = type === ItemType.STREAM;
  if (form === Form.PACKED) {
    const capacity = valueOffset + item.i32[(offset >>> 2) + Item.VALUE_LENGTH_WORD] - body;
    const walk = new Walk(keyspace, order, valued, order === Order.SCORE ? 8 : 0, () => {});
    walk.leaf(item, body, capacity, page, unit);
    if (order === Order.SCORE || order === Order.BYTES) walk.checkOrder();
    if (isStream) checkStream(item.i32.subarray((root >>> 2) + 1, body >>> 2), walk.elements, []);
    return;
  }
  ensure(form === Form.TREE, `item of form ${form} is linked`);
  const words = body >>> 2;
  let units = 0;
  const count: NoteChunk = (p, u) => {
    units += chunkUnits(keyspace, p);
    note(p, u);
  };
  const hash = item.i32[(offset >>> 2) + Item.HASH_WORD];
  const prefix = order === Order.SCORE ? 8 : order === Order.HASH ? 4 : 0;
  const main = new Walk(keyspace, order, valued, prefix, count);
  main.tree(item.i32, words + Root.MAIN_WORD, hash, false);
  const isScored = type === ItemType.ZSET;
  const side = new Walk(keyspace, Order.BYTES, isStream, 0, count);
  side.tree(item.i32, words + Root.SIDE_WORD, hash, true);
  const counted = item.i32[words + Root.UNITS_WORD];
  ensure(units === counted, `its chunks take ${units} units, counted ${counted}`);
  // A draft that somebody has left may have its members in one tree only.
  if (isScored && shape >>> Item.DB_SHIFT !== Database.DRAFTS) checkMembers(keyspace, main.elements, side.elements);
  if (isStream) checkStream(item.i32.subarray((root >>> 2) + 1, words), main.elements, side.elements);
}

function checkMembers(keyspace: Walked, members: readonly Element[], side: readonly Element[]): void {
  const wanted = members.map(({ prefix, key }) => {
    const expected = Buffer.alloc(12);
    expected.writeUInt32BE(hashOf(keyspace, key), 0);
    expected.writeDoubleBE(prefix.readDoubleLE(0) + 0, 4);
    return expected;
  });
  wanted.sort(Buffer.compare);
  ensure(wanted.length === side.length, `${members.length} members, ${side.length} in the side tree`);
  for (let i = 0; i < wanted.length; i++) ensure(wanted[i].equals(side[i].key), 'the side tree has other members');
}

function hashOf(keyspace: Walked, key: Buffer): number {
  const copy = new Uint8Array(key.length + 4);
  copy.set(key);
  const bytes = { u8: copy, view: new DataView(copy.buffer), i32: new Int32Array(0), arena: -1, length: copy.length };
  return keyspace.hash(0, bytes as unknown as Bytes, 0, key.length) >>> 0;
}

class Walk {
  readonly elements: Element[] = [];

  constructor(
    readonly keyspace: Walked,
    readonly order: Order,
    readonly valued: boolean,
    readonly prefixBytes: number,
    readonly note: NoteChunk,
  ) {}

  tree(i32: Int32Array, word: number, hash: number, isSide: boolean): void {
    const page = i32[word + Root.PAGE_WORD];
    const top = i32[word + Root.TOP_WORD];
    const levels = top >>> Root.LEVELS_SHIFT;
    ensure((page === NO_PAGE) === (levels === 0), `a tree of ${levels} levels with its top in page ${page}`);
    if (page !== NO_PAGE) {
      const unit = top & 0xffff;
      const own = this.#words(page)[(locationOffset(page, unit) >>> 2) + Item.HASH_WORD];
      ensure(own === hash, `the top node says hash ${own}, its key has ${hash}`);
      this.#node(page, unit, levels - 1, 0, 0, isSide);
    }
    const counted = i32[word + Root.COUNT_WORD];
    ensure(this.elements.length === counted, `${this.elements.length} elements, counted ${counted}`);
    if (this.order !== Order.POSITION) this.checkOrder();
  }

  #words(page: number): Int32Array {
    return this.keyspace.memory.arenas[page >>> Page.ARENA_SHIFT].i32;
  }

  #node(page: number, unit: number, level: number, parentPage: number, parentUnit: number, isSide: boolean): void {
    ensure(this.keyspace.memory.isPage(page), `a node in page ${page}, which is none`);
    this.note(page, unit);
    const i32 = this.#words(page);
    const header = locationOffset(page, unit) >>> 2;
    const shape = i32[header + Item.SHAPE_WORD];
    const where = `node at page ${page} unit ${unit}`;
    ensure(((shape >>> Item.TYPE_SHIFT) & Item.TYPE_MASK) === ItemType.NODE, `${where} is none`);
    ensure(((shape >>> Item.ENCODING_SHIFT) & Item.ENCODING_MASK) === level, `${where} is not of level ${level}`);
    ensure(shape >>> Item.DB_SHIFT === (isSide ? 1 : 0), `${where} is of the other tree`);
    ensure(
      i32[header + Node.PARENT_PAGE_WORD] === parentPage &&
        (parentPage === NO_PAGE || i32[header + Node.PARENT_UNIT_WORD] === parentUnit),
      `${where} names another parent`,
    );
    const body = header + Node.HEADER_WORDS;
    if (level === 0) {
      const before = this.elements.length;
      const bytes = this.keyspace.memory.arenas[page >>> Page.ARENA_SHIFT];
      this.leaf(bytes, body << 2, i32[header + Item.VALUE_LENGTH_WORD], page, unit);
      ensure(this.elements.length > before, `${where} is an empty leaf`);
      return;
    }
    const children = i32[body + Inner.COUNT_WORD];
    ensure(children > (parentPage === NO_PAGE ? 1 : 0), `${where} has ${children} children`);
    for (let child = 0; child < children; child++) {
      const entry = body + Inner.FIRST_WORD + child * Inner.ENTRY_WORDS;
      const before = this.elements.length;
      this.#node(i32[entry], i32[entry + Inner.UNIT_WORD], level - 1, page, unit, isSide);
      const found = this.elements.length - before;
      const counted = i32[entry + Inner.ELEMENTS_WORD];
      ensure(found === counted, `${where}: child ${child} holds ${found} elements, counted ${counted}`);
      if (child > 0 && this.order !== Order.POSITION) {
        const separator = (i32[entry + Inner.HIGH_WORD] >>> 0) * 2 ** 32 + (i32[entry + Inner.LOW_WORD] >>> 0);
        const last = separatorNumber(this.order, this.elements[before - 1]);
        const first = separatorNumber(this.order, this.elements[before]);
        ensure(last <= separator && separator <= first, `${where}: child ${child} is behind its separator`);
      }
    }
  }

  leaf(bytes: Bytes, base: number, capacity: number, page: number, unit: number): void {
    const { u8, view, i32 } = bytes;
    const head = i32[base >>> 2];
    const count = head & Leaf.COUNT_MASK;
    const heap = head >>> Leaf.HEAP_SHIFT;
    const where = `leaf at page ${page} unit ${unit}`;
    ensure(Leaf.HEADER_BYTES + count * Leaf.SLOT_BYTES <= heap && heap <= capacity, `${where}: slots reach the heap`);
    let live = 0;
    for (let slot = 0; slot < count; slot++) {
      const start = view.getUint16(base + Leaf.HEADER_BYTES + slot * Leaf.SLOT_BYTES, true);
      ensure(start >= heap && start < capacity, `${where}: slot ${slot} is outside the heap`);
      let at = base + start + this.prefixBytes;
      if (u8[at] === ElementCode.EXPIRES) at += 1 + ElementCode.EXPIRY_BYTES;
      const prefix = Buffer.from(u8.slice(base + start, base + start + this.prefixBytes));
      if (u8[at] === ElementCode.BLOB) {
        ensure((i32[(base >>> 2) + Leaf.DEAD_WORD] & Leaf.BLOBS_FLAG) !== 0, `${where} does not know of its blobs`);
        this.elements.push({ prefix, ...this.#blob(view, at, page, unit) });
        live += at + ElementCode.STUB_BYTES - base - start;
        continue;
      }
      const [keyLength, keyAt] = readLength(u8, at);
      const [valueLength, from] = this.valued ? readLength(u8, keyAt) : [0, keyAt];
      const valueAt = from + keyLength;
      const value = Buffer.from(u8.slice(valueAt, valueAt + valueLength));
      this.elements.push({ prefix, key: Buffer.from(u8.slice(from, valueAt)), value });
      live += valueAt + valueLength - base - start;
    }
    const dead = i32[(base >>> 2) + Leaf.DEAD_WORD] & Leaf.DEAD_MASK;
    ensure(live + dead === capacity - heap, `${where}: ${live} live and ${dead} dead bytes of ${capacity - heap}`);
  }

  #blob(view: DataView, at: number, leafPage: number, leafUnit: number): Pick<Element, 'key' | 'value'> {
    const page = view.getUint32(at + 1, true);
    const unit = view.getUint16(at + 5, true);
    const keyLength = view.getUint32(at + 7, true);
    const valueLength = view.getUint32(at + 11, true);
    this.note(page, unit);
    const { i32, u8 } = this.keyspace.memory.arenas[page >>> Page.ARENA_SHIFT];
    const offset = locationOffset(page, unit);
    const header = offset >>> 2;
    const type = (i32[header + Item.SHAPE_WORD] >>> Item.TYPE_SHIFT) & Item.TYPE_MASK;
    ensure(type === ItemType.BLOB, `the element at page ${page} unit ${unit} is of type ${type}`);
    ensure(i32[header + Item.VALUE_LENGTH_WORD] === keyLength + valueLength, 'an element has another length');
    ensure(
      i32[header + Node.PARENT_PAGE_WORD] === leafPage && i32[header + Node.PARENT_UNIT_WORD] === leafUnit,
      `the element at page ${page} unit ${unit} names another leaf`,
    );
    const keyAt = offset + Node.HEADER_BYTES;
    const valueAt = keyAt + keyLength;
    return {
      key: Buffer.from(u8.slice(keyAt, valueAt)),
      value: Buffer.from(u8.slice(valueAt, valueAt + valueLength)),
    };
  }

  checkOrder(): void {
    for (let i = 1; i < this.elements.length; i++) {
      const order = compareElements(this.order, this.elements[i - 1], this.elements[i]);
      // Two members of a sorted set may share hash and score: their side elements are equal.
      ensure(this.order === Order.BYTES ? order <= 0 : order < 0, `element ${i} stands before the one in front of it`);
    }
    if (this.order !== Order.HASH || this.prefixBytes === 0) return;
    for (const { prefix, key } of this.elements) {
      ensure(prefix.readUInt32LE(0) === hashOf(this.keyspace, key), 'an element has the hash of another');
    }
  }
}

function compareElements(order: Order, a: Element, b: Element): number {
  if (order === Order.HASH) {
    const difference = a.prefix.readUInt32LE(0) - b.prefix.readUInt32LE(0);
    if (difference !== 0) return difference;
  } else if (order === Order.SCORE) {
    const [x, y] = [a.prefix.readDoubleLE(0), b.prefix.readDoubleLE(0)];
    if (x !== y) return x < y ? -1 : 1;
  }
  return Buffer.compare(a.key, b.key);
}

/** The separator of an element as one number: the low 11 bits do not fit, so it is a bound on either side of a comparison. */
function separatorNumber(order: Order, { prefix, key }: Element): number {
  const eight = Buffer.alloc(8);
  if (order === Order.HASH) eight.writeUInt32BE(prefix.readUInt32LE(0), 0);
  else if (order === Order.BYTES) key.copy(eight, 0, 0, 8);
  else {
    eight.writeDoubleBE(prefix.readDoubleLE(0) + 0, 0);
    const isNegative = eight[0] >= 0x80;
    for (let i = 0; i < 8; i++) eight[i] = isNegative ? ~eight[i] : i === 0 ? eight[0] ^ 0x80 : eight[i];
  }
  return eight.readUInt32BE(0) * 2 ** 32 + eight.readUInt32BE(4);
}

function readLength(u8: Uint8Array, at: number): [length: number, next: number] {
  if (u8[at] < ElementCode.LONG) return [u8[at], at + 1];
  return [ElementCode.LONG + ((u8[at] - ElementCode.LONG) << 8) + u8[at + 1], at + 2];
}

/** Notes every chunk of the graveyard, its root items included. */
export function checkGraveyard(keyspace: Keyspace, note: NoteChunk): void {
  const { memory } = keyspace;
  let page = memory.ctl[Super.GRAVE_PAGE_WORD];
  let unit = memory.ctl[Super.GRAVE_UNIT_WORD];
  let trees = 0;
  while (page !== NO_PAGE) {
    ensure(Graveyard.isRoot(memory, page, unit), `page ${page} unit ${unit} in the graveyard is no tree`);
    note(page, unit);
    trees++;
    const { i32 } = memory.arenas[page >>> Page.ARENA_SHIFT];
    const header = locationOffset(page, unit) >>> 2;
    const root = rootOffset((header << 2) + Item.HEADER_BYTES + (i32[header + Item.SHAPE_WORD] & 0xffff)) >>> 2;
    const words = root + 1 + ((i32[root] >>> Root.META_SHIFT) & Root.META_MASK);
    const order = (i32[root] >>> Root.ORDER_SHIFT) & Root.ORDER_MASK;
    for (const [word, prefix] of [
      [words + Root.MAIN_WORD, order === Order.SCORE ? 8 : order === Order.HASH ? 4 : 0],
      [words + Root.SIDE_WORD, 0],
    ]) {
      if (i32[word] !== NO_PAGE) noteDead(keyspace, i32[word], i32[word + Root.TOP_WORD] & 0xffff, prefix, note);
    }
    page = i32[header + LINK_PAGE_WORD];
    unit = i32[header + LINK_UNIT_WORD];
  }
  ensure(trees === memory.ctl[Super.GRAVE_COUNT_WORD], `${trees} trees in the graveyard`);
  ensure(memory.ctl[Super.GRAVE_LOCK_WORD] === 0, 'the graveyard is locked');
}

function noteDead(keyspace: Keyspace, page: number, unit: number, prefix: number, note: NoteChunk): void {
  note(page, unit);
  const bytes = keyspace.memory.arenas[page >>> Page.ARENA_SHIFT];
  const { i32, u8, view } = bytes;
  const header = locationOffset(page, unit) >>> 2;
  const body = header + Node.HEADER_WORDS;
  if (((i32[header + Item.SHAPE_WORD] >>> Item.ENCODING_SHIFT) & Item.ENCODING_MASK) > 0) {
    for (let child = 0; child < i32[body + Inner.COUNT_WORD]; child++) {
      const entry = body + Inner.FIRST_WORD + child * Inner.ENTRY_WORDS;
      noteDead(keyspace, i32[entry], i32[entry + Inner.UNIT_WORD], prefix, note);
    }
    return;
  }
  const base = body << 2;
  for (let slot = 0; slot < (i32[body] & Leaf.COUNT_MASK); slot++) {
    let at = base + view.getUint16(base + Leaf.HEADER_BYTES + slot * Leaf.SLOT_BYTES, true) + prefix;
    if (u8[at] === ElementCode.EXPIRES) at += 1 + ElementCode.EXPIRY_BYTES;
    if (u8[at] === ElementCode.BLOB) note(view.getUint32(at + 1, true), view.getUint16(at + 5, true));
  }
}

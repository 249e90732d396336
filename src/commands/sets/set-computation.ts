/**
 * Intersections, unions and differences of sets, worked on a stretch at a time.
 *
 * Owns: a table, and how far the computation has come: which source, which element of it or member of the table. Between two stretches the
 * sources may be opened anew, but must not change. Invariant: when `step` is true, the table holds the result.
 */
import type { Collection } from '../../store/collections/collection.js';
import type { Context } from '../context.js';
import { MemberTable } from './member-table.js';
import { openSet } from './set-members.js';

export const enum Operation {
  INTERSECTION = 0,
  UNION = 1,
  DIFFERENCE = 2,
}

/** What is done with a source. */
const enum Way {
  GATHER = 0,
  /** Members of the table that the source has not, or has, are dropped. */
  KEEP = 1,
  SIFT = 2,
  /** Its members are dropped from the table. */
  DROP = 3,
}

export class SetAlgebra {
  readonly table: MemberTable;
  /** Members of the smallest source. */
  smallestSize = 0;

  #operation = Operation.UNION;
  #limit = Number.POSITIVE_INFINITY;
  /** Members of the sources, in the order of the command's keys; it grows with the longest command. */
  #sizes = new Float64Array(64);
  #bytes = 0;
  #elements = 0;
  #first = 0;
  #end = 0;
  #smallest = 0;
  /** The source in hand, what is done with it, and how far. */
  #k = 0;
  #way = Way.GATHER;
  #at = 0;
  #kept = 0;

  constructor(table: MemberTable) {
    this.table = table;
  }

  /** Looks at all sources, keys `first` on of the command; false after a WRONGTYPE reply. */
  measure(context: Context, operation: Operation, first: number, limit: number): boolean {
    const { keyCount, keyHashes, keyArguments } = context;
    if (this.#sizes.length < keyCount) this.#sizes = new Float64Array(keyCount * 2);
    this.#operation = operation;
    this.#limit = limit;
    this.#first = first;
    this.#end = keyCount;
    this.#smallest = first;
    this.#bytes = 0;
    this.#elements = 0;
    const sizes = this.#sizes;
    for (let k = first; k < keyCount; k++) {
      const set = openSet(context, 0, keyHashes[k], keyArguments[k]);
      if (set === null) return false;
      if (set.exists) context.hit();
      else context.miss();
      sizes[k] = set.count;
      this.#elements += set.count;
      // What is gathered: all sources of a union, the first of a difference, some one of an intersection.
      if (operation === Operation.UNION) this.#bytes += set.chunkBytes;
      else if (operation === Operation.INTERSECTION || k === first) this.#bytes = Math.max(this.#bytes, set.chunkBytes);
      if (sizes[k] < sizes[this.#smallest]) this.#smallest = k;
    }
    this.smallestSize = sizes[this.#smallest];
    this.#begin(operation === Operation.INTERSECTION ? this.#smallest : first, Way.GATHER);
    return true;
  }

  /** About how many elements have to be looked at. */
  get cost(): number {
    if (this.#operation === Operation.INTERSECTION) return this.smallestSize * (this.#end - this.#first);
    return this.#elements;
  }

  /** The same computation, at its beginning, with a table of its own. */
  copy(): SetAlgebra {
    const copy = new SetAlgebra(new MemberTable());
    copy.smallestSize = this.smallestSize;
    copy.#operation = this.#operation;
    copy.#limit = this.#limit;
    copy.#sizes = this.#sizes.slice();
    copy.#first = this.#first;
    copy.#end = this.#end;
    copy.#smallest = this.#smallest;
    copy.#k = this.#k;
    const gathered = this.#operation === Operation.UNION ? this.#elements : this.#sizes[this.#k];
    copy.table.expect(gathered, this.#bytes);
    return copy;
  }

  #begin(k: number, way: Way): void {
    this.#k = k;
    this.#way = way;
    this.#at = 0;
    this.#kept = 0;
  }

  /** Looks at up to `count` elements of a source, or members of the table; true = the computation is over. */
  step(context: Context, count: number): boolean {
    let left = count;
    while (left > 0) {
      if (this.#k === this.#end) return true;
      // A source that `measure` has seen.
      const set = openSet(context, 0, context.keyHashes[this.#k], context.keyArguments[this.#k]) as Collection;
      const before = this.#at;
      const isOver =
        this.#way === Way.KEEP || this.#way === Way.SIFT ? this.#sift(set, left) : this.#walk(context, set, left);
      left -= this.#at - before;
      if (isOver) this.#next();
    }
    return this.#k === this.#end;
  }

  /** Turns to the next source. */
  #next(): void {
    const { table } = this;
    let k = this.#k + 1;
    if (this.#operation === Operation.INTERSECTION) {
      // Behind the smallest, which comes first, all the others from the beginning.
      if (this.#way === Way.GATHER) k = this.#first;
      if (k === this.#smallest) k++;
      return this.#begin(table.size === 0 ? this.#end : k, Way.KEEP);
    }
    if (this.#operation === Operation.UNION) return this.#begin(k, Way.GATHER);
    const way = this.#sizes[k] >= table.size ? Way.SIFT : Way.DROP;
    this.#begin(table.size === 0 ? this.#end : k, way);
  }

  /** Walks a source from where it was; true = to its end. */
  #walk(context: Context, set: Collection, count: number): boolean {
    const { keyspace } = context;
    const { table } = this;
    const isGathered = this.#way === Way.GATHER;
    let left = count;
    for (let more = set.seekRank(this.#at); more; more = set.next()) {
      if (left-- === 0) return false;
      set.load();
      const hash = keyspace.hash(0, set.key, set.keyOffset, set.keyLength);
      if (isGathered) table.add(hash, set.key, set.keyOffset, set.keyLength);
      else table.dropEqual(hash, set.key, set.keyOffset, set.keyLength);
      this.#at++;
    }
    return true;
  }

  /** Looks members of the table up in a source, from where it was; true = all of them, or as many that stay as the limit asks for. */
  #sift(set: Collection, count: number): boolean {
    const { table } = this;
    const isKept = this.#way === Way.KEEP;
    const limit = this.#isLast ? this.#limit : Number.POSITIVE_INFINITY;
    for (let left = count; left > 0; left--) {
      const i = this.#at;
      if (i === table.count || this.#kept >= limit) return true;
      this.#at++;
      if (!table.has(i)) continue;
      if (set.seekKey(table.bytes, table.offsets[i], table.lengths[i]) === isKept) this.#kept++;
      else table.drop(i);
    }
    return this.#at === table.count || this.#kept >= limit;
  }

  /** Of the last source no more is asked than the limit. */
  get #isLast(): boolean {
    return this.#k === this.#end - 1 || (this.#k === this.#end - 2 && this.#smallest === this.#end - 1);
  }
}

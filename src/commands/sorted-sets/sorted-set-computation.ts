/**
 * Unions, intersections and differences of sorted sets, and of sets, whose members count as 1, worked on a stretch at a time.
 *
 * Owns: the gathered members with their scores, what has been asked for, and how far the computation has come. Between two stretches the
 * sources may be opened anew, but must not change. Invariant: when `step` is true, the result is there.
 */
import { Order } from '../../layout/collection.js';
import { type Collection, Opened, SETS, SORTED_SETS } from '../../store/collections/collection.js';
import type { Context } from '../context.js';
import { MemberTable } from '../sets/member-table.js';
import { ScoredMembers } from './sorted-set-result.js';

export const enum Operation {
  UNION = 0,
  INTERSECTION = 1,
  DIFFERENCE = 2,
}

export const enum Aggregate {
  SUM = 0,
  MIN = 1,
  MAX = 2,
}

export class SortedSetAlgebra {
  readonly members: ScoredMembers;
  aggregate = Aggregate.SUM;
  withScores = false;
  /** Of the result no more is asked than that; 0 = all. */
  limit = 0;
  /** Per source, in the order of the command's keys; they grow with the longest command. */
  weights = new Float64Array(64);
  /** Elements of all sources. */
  elements = 0;

  #operation = Operation.UNION;
  #keys = 0;
  /** The first source among the command's keys. */
  #first = 0;
  #sizes = new Float64Array(64);
  #bytes = 0;
  /** The sources in the order in which they are looked at; the one in hand, how far, and how many members that stay it has met. */
  #order = new Int32Array(64);
  #n = 0;
  #at = 0;
  #kept = 0;

  constructor(members: ScoredMembers) {
    this.members = members;
  }

  /** Looks at all `keys` sources, the first of which is key `first` of the command; false = one is neither a sorted set nor a set. */
  measure(context: Context, operation: Operation, keys: number, first: number): boolean {
    if (this.#sizes.length < keys) {
      this.#sizes = new Float64Array(keys * 2);
      this.weights = new Float64Array(keys * 2);
      this.#order = new Int32Array(keys * 2);
    }
    this.#operation = operation;
    this.#keys = keys;
    this.#first = first;
    this.aggregate = Aggregate.SUM;
    this.withScores = false;
    this.limit = 0;
    this.weights.fill(1, 0, keys);
    this.elements = 0;
    this.#bytes = 0;
    for (let n = 0; n < keys; n++) {
      const source = this.#openSource(context, n);
      if (source === null) return false;
      if (source.exists) context.hit();
      else context.miss();
      this.#sizes[n] = source.count;
      this.#order[n] = n;
      this.elements += source.count;
      this.#bytes += source.chunkBytes;
    }
    return true;
  }

  /** All that has been asked for is known. */
  begin(): void {
    const sizes = this.#sizes;
    if (this.#operation !== Operation.DIFFERENCE) {
      this.#order.subarray(0, this.#keys).sort((a, b) => sizes[a] - sizes[b]);
    }
    this.#n = 0;
    this.#at = 0;
  }

  /** About how many elements have to be looked at. */
  get cost(): number {
    if (this.#operation === Operation.INTERSECTION) return this.#sizes[this.#order[0]] * this.#keys;
    return this.#operation === Operation.UNION ? this.elements : this.#sizes[0] * this.#keys;
  }

  /** The same computation with members of its own. */
  copy(): SortedSetAlgebra {
    const copy = new SortedSetAlgebra(new ScoredMembers(new MemberTable()));
    copy.aggregate = this.aggregate;
    copy.withScores = this.withScores;
    copy.limit = this.limit;
    copy.weights = this.weights.slice();
    copy.#operation = this.#operation;
    copy.#keys = this.#keys;
    copy.#first = this.#first;
    copy.#sizes = this.#sizes.slice();
    copy.#order = this.#order.slice();
    copy.members.expect(this.#operation === Operation.UNION ? this.elements : this.#sizes[this.#order[0]], this.#bytes);
    return copy;
  }

  /** Opens source `n`; null = it is neither a sorted set nor a set. */
  #openSource(context: Context, n: number): Collection | null {
    const { keyspace, keyHashes, keyArguments, input, db } = context;
    const [collection] = keyspace.collections;
    const h = keyHashes[this.#first + n];
    const i = keyArguments[this.#first + n];
    const offset = context.argOffset(i);
    const length = context.argLength(i);
    if (collection.open(SORTED_SETS, h, db, input, offset, length) !== Opened.WRONG_TYPE) return collection;
    return collection.open(SETS, h, db, input, offset, length) === Opened.WRONG_TYPE ? null : collection;
  }

  /** Looks at up to `count` elements of a source, or members of the result; true = the computation is over. */
  step(context: Context, count: number): boolean {
    let left = count;
    while (left > 0) {
      if (this.#n === this.#keys) return true;
      const n = this.#order[this.#n];
      // A source that `measure` has seen.
      const source = this.#openSource(context, n) as Collection;
      const before = this.#at;
      const isGathered = this.#n === 0 || this.#operation === Operation.UNION;
      const isOver = isGathered
        ? this.#gather(context, source, this.weights[n], left)
        : this.#sift(source, this.weights[n], left);
      left -= this.#at - before;
      if (isOver) this.#next();
    }
    return this.#n === this.#keys;
  }

  #next(): void {
    this.#n++;
    this.#at = 0;
    this.#kept = 0;
    if (this.#operation !== Operation.UNION && this.members.table.size === 0) this.#n = this.#keys;
  }

  /** Gathers members of a source from where it was; those that are there already are combined. True = to its end. */
  #gather(context: Context, source: Collection, weight: number, count: number): boolean {
    const { keyspace } = context;
    const { members } = this;
    const { table } = members;
    let left = count;
    for (let more = source.seekRank(this.#at); more; more = source.next()) {
      if (left-- === 0) return false;
      source.load();
      this.#at++;
      const { key, keyOffset, keyLength } = source;
      const hash = keyspace.hash(0, key, keyOffset, keyLength);
      // 0 * inf
      const weighted = scoreOf(source) * weight;
      const score = Number.isNaN(weighted) ? 0 : weighted;
      if (table.add(hash, key, keyOffset, keyLength)) {
        members.keepScore(score);
      } else {
        const member = table.indexOf(hash, key, keyOffset, keyLength);
        members.scores[member] = this.#combine(members.scores[member], score);
      }
    }
    return true;
  }

  /**
   * Keeps the members that a source has, or has not, from where it was; true = all have been looked at, or as many that stay as are asked for
   * of the last source.
   */
  #sift(source: Collection, weight: number, count: number): boolean {
    const { table, scores } = this.members;
    const isKept = this.#operation === Operation.INTERSECTION;
    const isLast = this.#n === this.#keys - 1;
    const limit = this.limit > 0 && (isLast || !isKept) ? this.limit : Number.POSITIVE_INFINITY;
    for (let left = count; left > 0; left--) {
      const i = this.#at;
      if (i === table.count || this.#kept >= limit) return true;
      this.#at++;
      if (!table.has(i)) continue;
      const found = source.seekKey(table.bytes, table.offsets[i], table.lengths[i]);
      if (found !== isKept) {
        table.drop(i);
        continue;
      }
      this.#kept++;
      if (!found) continue;
      source.load();
      scores[i] = this.#combine(scores[i], scoreOf(source) * weight);
    }
    return this.#at === table.count || this.#kept >= limit;
  }

  #combine(before: number, score: number): number {
    if (this.aggregate === Aggregate.SUM) {
      // inf - inf
      const sum = before + score;
      return Number.isNaN(sum) ? 0 : sum;
    }
    // 0 * inf is neither less nor greater, and changes nothing: no Math.min here.
    const isBetter = this.aggregate === Aggregate.MIN ? score < before : score > before;
    return isBetter ? score : before;
  }
}

/** The score of the loaded element. */
function scoreOf(source: Collection): number {
  return source.order === Order.SCORE ? source.score : 1;
}

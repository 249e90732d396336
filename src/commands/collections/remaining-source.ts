/**
 * What is left of a collection without the elements of some ranks, for building a tree of it: LREM, SPOP of many.
 *
 * Owns: nothing. Invariant: the collection does not change while it is in use; it is opened anew in each turn.
 */
import type { Bytes } from '../../layout/bytes.js';
import { Order } from '../../layout/collection.js';
import type { Collection, ElementSource } from '../../store/collections/collection.js';
import type { Context } from '../context.js';

export class RemainingSource implements ElementSource {
  key!: Bytes;
  keyOffset = 0;
  keyLength = 0;
  value!: Bytes;
  valueOffset = 0;
  valueLength = 0;
  expiryMs = 0;
  score = 0;
  hash = 0;

  readonly #context: Context;
  readonly #collection: Collection;
  readonly #open: (context: Context) => Collection;
  readonly #gone: Uint32Array;
  /** How many of them stand before the element that was loaded last, its number, and its rank, -1 = the collection has been closed since. */
  #before = 0;
  #index = 0;
  #rank = -1;

  /** `collection`: what `open` opens. `gone`: the ranks, rising. */
  constructor(context: Context, collection: Collection, open: (context: Context) => Collection, gone: Uint32Array) {
    this.#context = context;
    this.#collection = collection;
    this.#open = open;
    this.#gone = gone;
  }

  loadInOrder(index: number): void {
    const rank = this.#rankOf(index);
    const from = this.#collection;
    if (!from.exists) {
      this.#open(this.#context);
      this.#rank = -1;
    }
    if (rank === this.#rank + 1 && this.#rank >= 0) from.next();
    else if (rank !== this.#rank) from.seekRank(rank);
    this.#rank = rank;
    from.load();
    this.key = from.key;
    this.keyOffset = from.keyOffset;
    this.keyLength = from.keyLength;
    this.value = from.value;
    this.valueOffset = from.valueOffset;
    this.valueLength = from.valueLength;
    this.expiryMs = from.expiryMs;
    this.score = from.score;
    if (from.order === Order.HASH) this.hash = from.elementHash;
  }

  #rankOf(index: number): number {
    const gone = this.#gone;
    let before = this.#before;
    // The elements of a leaf are loaded twice, in order: to measure and to write them.
    if (index < this.#index) while (before > 0 && gone[before - 1] - before >= index) before--;
    while (before < gone.length && gone[before] - before <= index) before++;
    this.#before = before;
    this.#index = index;
    return index + before;
  }
}

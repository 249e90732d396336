/**
 * COPY of a large hash, list, set or sorted set over several turns: leaf by leaf, in the order of its tree.
 *
 * Invariant: the source does not change meanwhile (long-steps), and what the other key had stays until the copy is whole.
 */
import type { Bytes } from '../../layout/bytes.js';
import { Order } from '../../layout/collection.js';
import type { Collection, ElementSource, Shape } from '../../store/collections/collection.js';
import { type SideMembers, storeInSteps } from '../collections/long-store.js';
import type { Context } from '../context.js';
import { STEP_ELEMENTS } from '../long-steps.js';
import { isSliceOver, type LongWork, type Steps } from '../long-work.js';

/** Of the collections that a command may have open: number 0 is the draft. */
const SOURCE = 1;
const HASH_BYTES = 4;

/** Elements of the command's first key by rank; its collection is opened anew in each turn. */
class KeySource implements ElementSource {
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
  readonly #shape: Shape;

  constructor(context: Context, shape: Shape) {
    this.#context = context;
    this.#shape = shape;
  }

  open(): Collection {
    const { keyspace } = this.#context;
    const from = keyspace.collections[SOURCE];
    if (from.exists) return from;
    this.#context.open(SOURCE, this.#shape, this.#context.keyHashes[0], 1);
    return from;
  }

  loadInOrder(index: number): void {
    const from = this.open();
    const { rank } = from;
    if (rank === index - 1) from.next();
    else if (rank !== index) from.seekRank(index);
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
}

/** Copies the first key's collection, which is a tree, to the second key, of database `db`; then `end` says so. */
export function* copyInTurns(
  context: Context,
  work: LongWork,
  shape: Shape,
  db: number,
  end: (context: Context) => void,
): Steps {
  // A transaction's command before may have left another one open.
  context.keyspace.collections[SOURCE].close();
  const source = new KeySource(context, shape);
  const from = source.open();
  const { count, marks } = from;
  from.standOnItem();
  const { expiryMs } = context.keyspace;
  const side = shape.order === Order.SCORE ? yield* sideMembers(source) : undefined;
  const result = { shape, count, source, marks, expiryMs, db, ...(side === undefined ? {} : { side }) };
  if (yield* storeInSteps(context, work, 1, result)) end(context);
}

/** They stand in the order of the side tree. */
function* sideMembers(source: KeySource): Steps<SideMembers> {
  const { count } = source.open();
  const hashes = new Uint32Array(count);
  const scores = new Float64Array(count);
  const order = new Uint32Array(count);
  for (let i = 0; i < count; ) {
    const { side } = source.open();
    side.seekRank(i);
    for (const end = Math.min(i + STEP_ELEMENTS, count); i < end; i++, side.next()) {
      side.load();
      hashes[i] = side.key.view.getUint32(side.keyOffset, false);
      scores[i] = side.key.view.getFloat64(side.keyOffset + HASH_BYTES, false);
      order[i] = i;
    }
    if (isSliceOver()) yield;
  }
  return { hashes, scores, order };
}

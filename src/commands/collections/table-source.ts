/**
 * The members of a table in an order, for building a tree of them.
 *
 * Owns: nothing. Invariant: neither the table nor what stands beside it changes while it is in use.
 */
import type { Bytes } from '../../layout/bytes.js';
import type { ElementSource } from '../../store/collections/collection.js';
import type { MemberTable } from '../sets/member-table.js';

/** What may stand beside the members, by their numbers. */
export interface TableColumns {
  readonly scores?: Float64Array;
  /** Hashes of fields and their expiries. */
  readonly values?: MemberTable;
  readonly expiriesMs?: Float64Array;
}

export class TableSource implements ElementSource {
  key: Bytes;
  keyOffset = 0;
  keyLength = 0;
  value: Bytes;
  valueOffset = 0;
  valueLength = 0;
  expiryMs = 0;
  score = 0;
  hash = 0;

  readonly #table: MemberTable;
  readonly #order: Uint32Array;
  readonly #columns: TableColumns;

  constructor(table: MemberTable, order: Uint32Array, columns: TableColumns = {}) {
    this.#table = table;
    this.#order = order;
    this.#columns = columns;
    this.key = table.bytes;
    this.value = columns.values?.bytes ?? table.bytes;
  }

  loadInOrder(index: number): void {
    const i = this.#order[index];
    const { offsets, lengths, hashes } = this.#table;
    this.keyOffset = offsets[i];
    this.keyLength = lengths[i];
    this.hash = hashes[i] >>> 0;
    const { scores, values, expiriesMs } = this.#columns;
    if (scores !== undefined) this.score = scores[i];
    if (expiriesMs !== undefined) this.expiryMs = expiriesMs[i];
    if (values === undefined) return;
    this.valueOffset = values.offsets[i];
    this.valueLength = values.lengths[i];
  }
}

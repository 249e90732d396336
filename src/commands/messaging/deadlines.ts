/**
 * A heap of deadlines: which blocked client's time is up next.
 *
 * Entries of clients that were served before stay until they come up (`isOpen` tells), so that ending a wait costs nothing.
 * Invariant: no entry is earlier than its parent (entries (i - 1) >> 1).
 */
export class Deadlines<T> {
  readonly #times: number[] = [];
  readonly #items: T[] = [];

  get size(): number {
    return this.#times.length;
  }

  /** The earliest, in ms; Infinity when there is none. */
  get firstMs(): number {
    return this.#times.length === 0 ? Number.POSITIVE_INFINITY : this.#times[0];
  }

  add(atMs: number, item: T): void {
    let i = this.#times.length;
    this.#times.push(atMs);
    this.#items.push(item);
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (this.#times[parent] <= atMs) break;
      this.#move(parent, i);
      i = parent;
    }
    this.#times[i] = atMs;
    this.#items[i] = item;
  }

  /** Takes the earliest out. There is one. */
  take(): T {
    const first = this.#items[0];
    const atMs = this.#times.pop()!;
    const item = this.#items.pop()!;
    const count = this.#times.length;
    if (count === 0) return first;
    let i = 0;
    for (let child = 1; child < count; child = i * 2 + 1) {
      if (child + 1 < count && this.#times[child + 1] < this.#times[child]) child++;
      if (this.#times[child] >= atMs) break;
      this.#move(child, i);
      i = child;
    }
    this.#times[i] = atMs;
    this.#items[i] = item;
    return first;
  }

  #move(from: number, to: number): void {
    this.#times[to] = this.#times[from];
    this.#items[to] = this.#items[from];
  }
}

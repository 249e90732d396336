/**
 * The last few items that the running command has found: what staging, which makes room by evicting and moving items, leaves where it is.
 *
 * Invariant: holds the last PROTECTED_FINDS locations at most, none once the command is over.
 */
const PROTECTED_FINDS = 4;

export class ProtectedFinds {
  readonly #pages = new Int32Array(PROTECTED_FINDS);
  readonly #units = new Int32Array(PROTECTED_FINDS);
  #count = 0;

  add(page: number, unit: number): void {
    const next = this.#count++ & (PROTECTED_FINDS - 1);
    this.#pages[next] = page;
    this.#units[next] = unit;
  }

  clear(): void {
    this.#count = 0;
  }

  has(page: number, unit: number): boolean {
    const count = Math.min(this.#count, PROTECTED_FINDS);
    for (let i = 0; i < count; i++) if (this.#pages[i] === page && this.#units[i] === unit) return true;
    return false;
  }
}

/**
 * Connections whose output the pump keeps for now, for several reasons at once: writes that are not persistent yet, settings that the other
 * workers are being told of.
 *
 * Invariant: output is let go when nobody holds it any more, and whoever has held it lets it go once.
 */
import type { Pump } from '../native/addon.js';

export class OutputHolds {
  readonly #pump: Pump;
  /** By connection. */
  #counts = new Uint8Array(64);

  constructor(pump: Pump) {
    this.#pump = pump;
  }

  hold(conn: number): void {
    if (conn >= this.#counts.length) {
      const grown = new Uint8Array(Math.max(conn + 1, this.#counts.length * 2));
      grown.set(this.#counts);
      this.#counts = grown;
    }
    this.#counts[conn]++;
    // Always: the place may have got another connection since the first.
    this.#pump.holdOutput(conn, true);
  }

  letGo(conn: number): void {
    if (--this.#counts[conn] === 0) this.#pump.holdOutput(conn, false);
  }
}

/**
 * What waits while a long script shuts this worker out of the store (the gate is closed): connections whose requests have to wait, and
 * values that have arrived whole.
 *
 * Owns: who waits. Invariant: the first turn that gets into the store again gives back all of it, in the order in which it came.
 */
import type { Pump } from '../native/addon.js';
import type { DriverClient } from '../protocol/driver.js';
import type { Connections } from './connections.js';

export class ShutOut {
  readonly #pump: Pump;
  readonly #connections: Connections;
  /** Pairs of slot and client id. */
  readonly #waiting: number[] = [];
  /** Triples of slot, client id and length. */
  readonly #arrived: number[] = [];

  constructor(pump: Pump, connections: Connections) {
    this.#pump = pump;
    this.#connections = connections;
  }

  /** What the client has sent and nobody could take stays with the pump. */
  wait(client: DriverClient): void {
    this.#pump.pauseReading(client.conn, true);
    this.#waiting.push(client.conn, client.id);
  }

  /** A value has arrived that goes into the store. */
  keepArrived(client: DriverClient, length: number): void {
    this.#arrived.push(client.conn, client.id, length);
  }

  /** The store is open again. `arrive` gets what keepArrived kept. */
  end(arrive: (conn: number, length: number) => void): void {
    for (let i = 0; i < this.#arrived.length; i += 3) {
      const [conn, clientId, length] = this.#arrived.slice(i, i + 3);
      if (this.#connections.withId(conn, clientId) !== null) arrive(conn, length);
    }
    for (let i = 0; i < this.#waiting.length; i += 2) {
      const client = this.#connections.withId(this.#waiting[i], this.#waiting[i + 1]);
      if (client !== null && !client.suspended) this.#pump.pauseReading(client.conn, false);
    }
    this.#arrived.length = 0;
    this.#waiting.length = 0;
  }
}

/**
 * A worker's connections, by their slot in the pump: the protocol's client object, its driver and what the loop counts.
 *
 * The invariant: a slot is in the table from its ACCEPT event until its CLOSE event (or its abort), and a client's
 * `closed` runs exactly once, when it leaves. The number of connections of all workers is a shared word, for maxclients.
 */

import { Counter, type CounterRow, SharedWord } from '../layout/counters.js';
import type { Driver, DriverClient } from '../protocol/driver.js';

export class Connections {
  /** Client of each slot, null where the slot is free. */
  readonly clients: (DriverClient | null)[] = [];
  readonly drivers: (Driver | null)[] = [];
  /** ListenerKind. */
  kinds = new Uint8Array(INITIAL_SLOTS);
  openedAtMs = new Float64Array(INITIAL_SLOTS);
  activeAtMs = new Float64Array(INITIAL_SLOTS);
  bytesIn = new Float64Array(INITIAL_SLOTS);
  bytesOut = new Float64Array(INITIAL_SLOTS);
  /** Slots in use. */
  count = 0;

  readonly #counters: CounterRow;

  constructor(counters: CounterRow) {
    this.#counters = counters;
  }

  /** Takes a place among the maxclients of all workers; false when there is none. */
  admit(maxClients: number): boolean {
    const { shared } = this.#counters;
    if (Atomics.add(shared, SharedWord.connections, 1) < maxClients) return true;
    Atomics.sub(shared, SharedWord.connections, 1);
    return false;
  }

  nextClientId(): number {
    return Atomics.add(this.#counters.shared, SharedWord.clientId, 1) + 1;
  }

  add(conn: number, client: DriverClient, driver: Driver, kind: number, nowMs: number): void {
    if (conn >= this.kinds.length) this.#grow(conn + 1);
    while (this.clients.length <= conn) {
      this.clients.push(null);
      this.drivers.push(null);
    }
    this.clients[conn] = client;
    this.drivers[conn] = driver;
    this.kinds[conn] = kind;
    this.openedAtMs[conn] = nowMs;
    this.activeAtMs[conn] = nowMs;
    this.bytesIn[conn] = 0;
    this.bytesOut[conn] = 0;
    this.count++;
    this.#counters.values[Counter.connections] = this.count;
  }

  /** The connection is gone: its client gives back what it holds. Does nothing for a free slot. */
  remove(conn: number): void {
    const client = this.at(conn);
    if (client === null) return;
    const driver = this.drivers[conn]!;
    this.clients[conn] = null;
    this.drivers[conn] = null;
    this.count--;
    this.#counters.values[Counter.connections] = this.count;
    Atomics.sub(this.#counters.shared, SharedWord.connections, 1);
    driver.closed(client);
    this.#counters.values[Counter.clientHeapBytes] -= client.heapBytes;
    client.heapBytes = 0;
  }

  at(conn: number): DriverClient | null {
    return conn < this.clients.length ? this.clients[conn] : null;
  }

  /** The client of that slot if it still is the one with that id: slots are reused. */
  withId(conn: number, id: number): DriverClient | null {
    const client = this.at(conn);
    return client !== null && client.id === id ? client : null;
  }

  #grow(slots: number): void {
    let capacity = this.kinds.length;
    while (capacity < slots) capacity *= 2;
    const kinds = new Uint8Array(capacity);
    kinds.set(this.kinds);
    this.kinds = kinds;
    this.openedAtMs = grown(this.openedAtMs, capacity);
    this.activeAtMs = grown(this.activeAtMs, capacity);
    this.bytesIn = grown(this.bytesIn, capacity);
    this.bytesOut = grown(this.bytesOut, capacity);
  }
}

const INITIAL_SLOTS = 256;

function grown(values: Float64Array<ArrayBuffer>, capacity: number): Float64Array<ArrayBuffer> {
  const larger = new Float64Array(capacity);
  larger.set(values);
  return larger;
}

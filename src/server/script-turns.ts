/**
 * Turns within a turn: a script of this very worker runs for longer than the limit, and the worker's other clients are told so meanwhile.
 *
 * The script's client is put aside as one that waits for an answer: what it has sent up to the script's request is consumed, the rest stays
 * with the pump. Its driver is in the middle of a request, so the others are fed through a driver of the same kind that does nothing else.
 * Invariant: between begin() and end() nothing is written for the script's client, and no event record of the outer turn is touched.
 */
import type { Pump } from '../native/addon.js';
import { Event } from '../native/addon.js';
import type { Driver, DriverClient } from '../protocol/driver.js';
import type { Output } from '../protocol/output.js';
import type { Connections } from './connections.js';

export class ScriptTurns {
  /** Between begin and end. */
  isActive = false;

  readonly #pump: Pump;
  readonly #output: Output;
  readonly #connections: Connections;
  readonly #events: Int32Array;
  readonly #makeDriver: () => Driver;
  #driver: Driver | null = null;
  #client: DriverClient | null = null;
  /** The pump knows already what was consumed of the client's input. */
  #isSetAside = false;
  #wasMuted = false;

  constructor(pump: Pump, output: Output, connections: Connections, events: Int32Array, makeDriver: () => Driver) {
    this.#pump = pump;
    this.#output = output;
    this.#connections = connections;
    this.#events = events;
    this.#makeDriver = makeDriver;
  }

  /** Feeds the others; never the one that is in the middle of the script's request. */
  get driver(): Driver {
    this.#driver ??= this.#makeDriver();
    return this.#driver;
  }

  /** `event` is the record that brought the script's request, `consumed` the bytes up to its end. */
  begin(client: DriverClient, event: number, consumed: number): void {
    this.isActive = true;
    if (!this.#isSetAside) {
      this.#isSetAside = true;
      this.#client = client;
      this.#events[event + Event.consumed] = consumed;
      this.#events[event + Event.aux] = 1;
      client.suspended = true;
      this.#pump.pauseReading(client.conn, true);
    }
    this.#wasMuted = this.#output.isMuted;
    if (this.#wasMuted) this.#output.unmute();
    this.#output.end();
  }

  /** The script has ended: what is written from here on is its reply, or nobody's when its client has gone. */
  end(): void {
    if (!this.isActive) return;
    this.isActive = false;
    const client = this.#client!;
    const isThere = this.#connections.at(client.conn) === client;
    this.#output.begin(isThere ? client.conn : -1);
    if (this.#wasMuted || !isThere) this.#output.mute();
  }

  /** After the driver has come back: true when the client was set aside, and its event record is no longer its own. */
  takeBack(): boolean {
    if (!this.#isSetAside) return false;
    this.end();
    this.#isSetAside = false;
    const client = this.#client!;
    this.#client = null;
    if (this.#output.isMuted) this.#output.unmute();
    if (this.#connections.at(client.conn) !== client) return true;
    client.suspended = false;
    this.#pump.pauseReading(client.conn, false);
    return true;
  }
}

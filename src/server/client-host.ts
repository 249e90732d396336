/**
 * The loop as messages between workers see it: a way to a connection that is not the one being served.
 *
 * Invariant: nothing here outlives a turn; connections are named by slot and id, and looked up each time.
 */
import type { ClientHost } from '../commands/messaging/host.js';
import type { DriverClient } from '../protocol/driver.js';
import type { Clock } from './clock.js';
import type { Limits } from './limits.js';
import type { Loop } from './loop.js';

export class LoopClients implements ClientHost {
  readonly #loop: Loop;
  readonly #clock: Clock;
  readonly #limits: Limits;

  constructor(loop: Loop, clock: Clock, limits: Limits) {
    this.#loop = loop;
    this.#clock = clock;
    this.#limits = limits;
  }

  get wakeFd(): number {
    return this.#loop.pump.wakeFd;
  }

  get monotonicMs(): number {
    return this.#clock.monotonicMs;
  }

  clientWithId(id: number): DriverClient | null {
    return this.#loop.connections.clients.find((client) => client !== null && client.id === id) ?? null;
  }

  outputQueued(conn: number): number {
    return this.#loop.pump.outputQueued(conn);
  }

  resume(conn: number, clientId: number, write: (() => void) | null): void {
    this.#loop.resume(conn, clientId, write);
  }

  closeClient(conn: number, afterReply: boolean): void {
    this.#loop.closeClient(conn, afterReply);
  }

  limitsChanged(conn: number): void {
    this.#limits.apply(conn);
  }
}

/**
 * What messages need of the server around them: reaching a connection that is not the one being served.
 *
 * The loop of a worker implements it; without a server (tests, tools) there is none, and nothing blocks or subscribes.
 */
import type { DriverClient } from '../../protocol/driver.js';

export interface ClientHost {
  /** eventfd that wakes this worker. */
  readonly wakeFd: number;
  /** Monotonic milliseconds of this turn. */
  readonly monotonicMs: number;
  /** The client of that id, if it is this worker's. */
  clientWithId(id: number): DriverClient | null;
  /** Bytes that wait to be sent to a connection. */
  outputQueued(conn: number): number;
  /** Runs `write` with the output on that client, if it is still there; then reads it again. */
  resume(conn: number, clientId: number, write: (() => void) | null): void;
  /** Closes a connection, after what is due to it when `afterReply`. */
  closeClient(conn: number, afterReply: boolean): void;
  /** The client became, or is no longer, one that gets messages: other limits hold for its output and its idle time. */
  limitsChanged(conn: number): void;
}

/**
 * The seam between the server's loop and a protocol: a Driver for each protocol, a client object for each connection.
 *
 * The server owns sockets, turns, limits and the table of clients; the driver owns parsing, execution and replies. The
 * invariant: within one feed() a driver consumes whole requests only, writes their replies in order, and does bounded
 * work; whatever it leaves is delivered again, contiguous with what comes next.
 */
import type { ClientFilter, ClientRow } from '../commands/control.js';
import type { Bytes } from '../layout/bytes.js';

export const enum Closing {
  NO = 0,
  /** After the replies written so far have been sent; no further input is fed. */
  AFTER_REPLY = 1,
  /** At once. */
  NOW = 2,
}

/** Most requests that one feed() executes before it sets `again`. */
export const MAX_REQUESTS_PER_TURN = 1024;
/** Most reply bytes that one feed() writes (checked between requests) before it sets `again`. */
export const MAX_REPLY_BYTES_PER_TURN = 1024 * 1024;

/** What the server reads and writes of a client. All fields plain; every driver uses one class, so that the loop stays monomorphic. */
export interface DriverClient {
  /** Unique over all workers and all time. */
  readonly id: number;
  /** Slot in the pump. */
  readonly conn: number;
  /** Set by feed() when it stopped because the turn's bound was reached: deliver the rest next turn even if nothing new arrives. */
  again: boolean;
  /** The client waits for something (the control plane, a pause): not fed, not read. See Control. */
  suspended: boolean;
  closing: Closing;
  /** A range that the next bytes go to directly (pump.receiveInto), set by feed() or resumeInto(); intoLength 0 = none. */
  intoArena: number;
  intoOffset: number;
  intoLength: number;
  /** Bytes of the worker's heap that the client's state takes beyond an ordinary client's, as the driver counts them. */
  heapBytes: number;
  /** Bytes of the store that a value on its way in takes. */
  parkedBytes: number;
  /** CLIENT NO-EVICT. */
  noEvict: boolean;
}

/** The pump's input: the same object for the small-request buffer, another for a large request's arena. */
export type InputBytes = Bytes;

export interface Driver<C extends DriverClient = DriverClient> {
  /** A connection was accepted. */
  open(id: number, conn: number, address: string): C;
  /** Parses and executes what is complete in [offset, end); returns the bytes consumed. Output.begin/end are called by the server around it. */
  feed(client: C, input: InputBytes, offset: number, end: number): number;
  /** True when feed() has answers for the client while a script shuts the worker out of the store; else the client waits. */
  answersShutOut(client: C): boolean;
  /** In the middle of feed(): the bytes up to the end of the request that is being executed. */
  consumedByNow(): number;
  /** The range given in `into*` is filled. May set a new one. */
  resumeInto(client: C): void;
  /** The connection is gone, whoever closed it: give back what it holds (parked items, watches). Called exactly once. */
  closed(client: C): void;
  /** A datagram from address slot `slot`; replies go to the same slot. Drivers without UDP ignore it. */
  datagram(slot: number, input: InputBytes, offset: number, end: number): void;

  // ---- rarely used
  /** The protocol's own fields of CLIENT LIST and stats conns; the server fills in addresses and byte counts. */
  describe(
    client: C,
  ): Pick<
    ClientRow,
    | 'name'
    | 'user'
    | 'db'
    | 'flags'
    | 'multi'
    | 'watch'
    | 'queryBytes'
    | 'transactionBytes'
    | 'subscriptions'
    | 'patterns'
    | 'shardSubscriptions'
    | 'redirect'
    | 'respVersion'
    | 'lastCommand'
    | 'commands'
    | 'libraryName'
    | 'libraryVersion'
    | 'state'
  >;
  /** Fields of a filter that only the protocol knows (type, user, name). */
  matches(client: C, filter: ClientFilter): boolean;
  /** False when the client must go: the users have changed, and its own is no more. */
  mayStay(client: C): boolean;
  /** True when newcomers may do anything without a password. */
  isOpen(): boolean;
  /** The error that a refused connection gets before it is closed. */
  refusal(reason: 'maxclients' | 'protected'): string;
}

/**
 * The client object: what the server and the commands keep for one connection.
 *
 * Only what every connection uses stands here; rare state (a transaction, watched keys, a large value on its way) hangs on
 * objects made on demand. Invariant: a client belongs to one worker, and only code of that worker touches it.
 */

import type { Bytes } from '../../layout/bytes.js';
import { Closing, type DriverClient } from '../../protocol/driver.js';
import type { PartialRequest } from '../../protocol/resp/parser.js';
import type { StageSlot } from '../../store/keyspace.js';
import type { User } from '../acl/user.js';
import type { Command } from '../command.js';
import type { SlowCommand } from '../command-times.js';
import type { LongWork } from '../long-work.js';
import type { Blocked } from '../messaging/blocked.js';
import type { Subscription } from '../messaging/subscriptions.js';
import type { Tracking } from '../messaging/tracking.js';
import type { Transaction } from '../transactions/transaction.js';
import type { WatchedKey } from '../transactions/watched-key.js';

/** CLIENT REPLY. */
export const enum ReplyMode {
  ON = 0,
  OFF = 1,
  /** The next command's reply is skipped; then this command's. */
  SKIP_NEXT = 2,
  SKIP = 3,
}

/** What makes a client's commands more than commands: the executor looks closer when any bit is set. */
export const enum Attention {
  /** Subscribes to something: in RESP2 few commands are allowed. */
  SUBSCRIBED = 1,
  MONITOR = 2,
  /** CLIENT TRACKING remembers the keys that it reads. */
  TRACKING = 4,
}

/** A request whose large argument is received straight into the store. */
export interface LargeRequest {
  readonly command: Command;
  /** The staged item, or null when there was no memory: then the value's bytes are skipped. */
  slot: StageSlot | null;
  /** Copies of the arguments before the large one; the ones behind it are added when they come. */
  readonly head: Bytes;
  readonly headLength: number;
  /** (offset, length) pairs into `head`; the large argument's length is right, its offset is not used. */
  readonly args: Int32Array;
  readonly argc: number;
  /** Value bytes that still must be skipped (slot null). */
  skip: number;
}

export class Client implements DriverClient {
  readonly id: number;
  readonly conn: number;
  readonly address: string;

  again = false;
  suspended = false;
  closing: Closing = Closing.NO;
  intoArena = -1;
  intoOffset = 0;
  intoLength = 0;
  heapBytes = 0;
  parkedBytes = 0;
  noEvict = false;

  db = 0;
  /** RESP version, 2 or 3. */
  protocol = 2;
  authenticated = false;
  user: User;
  /** While this equals Users.epoch, nothing needs to be checked: the client may do everything. */
  unrestrictedAt = 0;
  replyMode: ReplyMode = ReplyMode.ON;
  noTouch = false;
  commands = 0;
  /** Length of the request that waits for an answer of the control plane. */
  queryBytes = 0;
  lastCommand: Command | null = null;

  /** Byte strings (one character per byte). */
  name = '';
  libraryName = '';
  libraryVersion = '';

  transaction: Transaction | null = null;
  /** By database and key. */
  watched: Map<string, WatchedKey> | null = null;
  partial: PartialRequest | null = null;
  large: LargeRequest | null = null;
  /** Attention bits. */
  attention = 0;
  subscription: Subscription | null = null;
  tracking: Tracking | null = null;
  /** What a blocking command waits for. */
  blocked: Blocked | null = null;
  /** What its request took before it began to wait: counted when it is answered. */
  blockedMicroseconds = 0;
  /** A request that takes several turns; see long-work. */
  work: LongWork | null = null;
  /** Its last request has not been executed: it waits for a key that a long one reads. */
  isHeldBack = false;
  /** Of a suspended client: for the slow log, when it is answered. */
  slow: SlowCommand | null = null;

  constructor(id: number, conn: number, address: string, user: User) {
    this.id = id;
    this.conn = conn;
    this.address = address;
    this.user = user;
  }
}

/**
 * One memcached connection. Plain fields that every connection uses; what only a large value in flight or a very long get
 * needs hangs on an object made on demand.
 */
import type { Bytes } from '../../layout/bytes.js';
import { Closing, type DriverClient } from '../../protocol/driver.js';
import type { StageSlot } from '../../store/keyspace.js';

export const enum Protocol {
  UNKNOWN = 0,
  TEXT = 1,
  BINARY = 2,
}

/** A storage command whose value is being received straight into a staged item. */
export class LargeValue {
  readonly slot: StageSlot;
  /** A copy of the command without its value (line or header); the input it came in is gone by the time the value is complete. */
  readonly head: Bytes;
  readonly valueBytes: number;
  /** The slot holds the item. */
  isParked = true;
  /** All of the value is there; in the text protocol the CR LF after it is next in the input. */
  isComplete = false;

  constructor(slot: StageSlot, head: Bytes, valueBytes: number) {
    this.slot = slot;
    this.head = head;
    this.valueBytes = valueBytes;
  }
}

/** Which keys a dump shows, and how. */
export interface KeyDump {
  cursor: number;
  /** Slab class as statistics number them; 0 = all. */
  readonly classes: readonly number[];
  readonly format: 'metadump' | 'mgdump' | 'cachedump';
  /** Keys still to be shown. */
  left: number;
}

/** A retrieval of so many keys that it is done in pieces. */
export class LongRetrieval {
  withVersion = false;
  /** What gat sets; -1 = keep. */
  expiryMs = -1;
  /** Bytes of the line that are not done yet, and of the line end behind them. */
  leftBytes = 0;
  endBytes = 0;

  copy(): LongRetrieval {
    return Object.assign(new LongRetrieval(), this);
  }
}

export class MemcachedClient implements DriverClient {
  readonly id: number;
  readonly conn: number;
  readonly address: string;
  again = false;
  suspended = false;
  closing = Closing.NO;
  intoArena = 0;
  intoOffset = 0;
  intoLength = 0;
  heapBytes = 0;
  parkedBytes = 0;
  noEvict = false;

  isAuthenticated: boolean;
  /** Chosen by the first byte. */
  protocol = Protocol.UNKNOWN;
  /** A value is on its way. */
  awaitsValue = false;
  /** Gets log lines (watch) and sends nothing any more that counts. */
  isWatching = false;
  /** Closed for a fault of its own. */
  isFaulty = false;
  /** Its socket's number. */
  descriptor = -1;
  /** A dump of keys that is not done in one turn. */
  dump: KeyDump | null = null;
  /** A SASL exchange has begun and waits for its next step. */
  isSaslStarted = false;
  /** Bytes still to be thrown away: the data block of a storage command that was refused. */
  swallowBytes = 0;
  /** Bytes at the start of the held input that are known to hold no LF. */
  scannedBytes = 0;
  large: LargeValue | null = null;
  retrieval: LongRetrieval | null = null;
  commands = 0;
  lastCommand = 0;

  constructor(id: number, conn: number, address: string, isAuthenticated: boolean) {
    this.id = id;
    this.conn = conn;
    this.address = address;
    this.isAuthenticated = isAuthenticated;
  }
}

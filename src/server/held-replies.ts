/**
 * Replies that wait for the effect log (durability `durable`, appendfsync always): those of a connection from its first write on that is not
 * persistent yet, and no others.
 *
 * Owns the list of connections whose output the pump holds. Invariant: output of a connection is let go only when every record that it has
 * made, or that made what it was given (a blocked client's element), is persistent.
 */
import type { Settings } from '../config/index.js';
import { Participant } from '../layout/superblock.js';
import type { Pump } from '../native/addon.js';
import type { Output } from '../protocol/output.js';
import type { Effects } from '../store/effects/effects.js';
import type { Keyspace } from '../store/keyspace.js';
import type { OutputHolds } from './output-holds.js';

/** Datagrams cannot be held one by one: the worker waits for them, but not for ever. */
const DATAGRAM_WAIT_MS = 1000;

export class HeldReplies {
  readonly #holds: OutputHolds;
  readonly #output: Output;
  readonly #keyspace: Keyspace;
  readonly #effects: Effects;
  readonly #settings: Readonly<Settings>;
  /** Held connections; by connection, the number below which all must be persistent, and whether it is held. */
  #held = new Int32Array(64);
  #count = 0;
  #until = new Int32Array(64);
  #isHeld = new Uint8Array(64);
  #hasNew = false;
  #hasDatagram = false;

  constructor(
    pump: Pump,
    holds: OutputHolds,
    output: Output,
    keyspace: Keyspace,
    effects: Effects,
    settings: Readonly<Settings>,
  ) {
    this.#holds = holds;
    this.#output = output;
    this.#keyspace = keyspace;
    this.#effects = effects;
    this.#settings = settings;
    const { memory } = keyspace;
    memory.ctl[memory.participantWord(memory.self) + Participant.RING_WAKE_WORD] = pump.wakeFd;
    effects.onRecord = () => this.#recorded();
    effects.onServed = (conn, hashes) => this.#served(conn, hashes);
  }

  #recorded(): void {
    if (this.#settings.appendfsync !== 'always') return;
    this.#hasNew = true;
    if (this.#output.isDatagram) this.#hasDatagram = true;
    else if (this.#output.connection >= 0) this.#hold(this.#output.connection);
  }

  /** A blocked client gets what another's command has given it, which may still be writing that down: it holds the key's lock till then. */
  #served(conn: number, hashes: Int32Array): void {
    if (this.#settings.appendfsync !== 'always') return;
    for (let i = 0; i < hashes.length; i++) {
      this.#keyspace.lock(hashes[i]);
      this.#keyspace.unlock(hashes[i]);
    }
    this.#hasNew = true;
    this.#hold(conn);
  }

  #hold(conn: number): void {
    if (conn >= this.#isHeld.length) this.#grow(conn + 1);
    this.#until[conn] = this.#effects.nextNumber;
    if (this.#isHeld[conn] !== 0) return;
    this.#isHeld[conn] = 1;
    this.#held[this.#count++] = conn;
    this.#holds.hold(conn);
  }

  #grow(atLeast: number): void {
    const size = Math.max(atLeast, this.#isHeld.length * 2);
    const held = new Int32Array(size);
    held.set(this.#held);
    this.#held = held;
    const until = new Int32Array(size);
    until.set(this.#until);
    this.#until = until;
    const isHeld = new Uint8Array(size);
    isHeld.set(this.#isHeld);
    this.#isHeld = isHeld;
  }

  /** Behind the last command of a turn. */
  endTurn(): void {
    if (!this.#hasNew) return;
    this.#hasNew = false;
    this.#effects.hurry();
    if (this.#hasDatagram) this.#effects.waitUntil(this.#effects.nextNumber, DATAGRAM_WAIT_MS);
    this.#hasDatagram = false;
    // It may be persistent already, and then nobody wakes this worker.
    this.release();
  }

  /** Lets go what is persistent by now. */
  release(): void {
    if (this.#count === 0) return;
    const persistent = this.#effects.persistentNumber;
    let kept = 0;
    for (let i = 0; i < this.#count; i++) {
      const conn = this.#held[i];
      if (((persistent - this.#until[conn]) | 0) < 0) {
        this.#held[kept++] = conn;
        continue;
      }
      this.#isHeld[conn] = 0;
      this.#holds.letGo(conn);
    }
    this.#count = kept;
    if (kept > 0) this.#effects.hurry();
  }
}

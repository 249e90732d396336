/**
 * Keyspace notifications: events of keys as messages on `__keyspace@<db>__:<key>` and `__keyevent@<db>__:<event>`.
 *
 * Handlers call `context.notify(class, event, argument)` where Redis fires the event; the store reports what expires and what is
 * evicted. With `notify-keyspace-events` empty, or nobody subscribed to anything, an event costs one test of an integer.
 * Events go out while the key is locked, so those of one key keep their order over all workers.
 */
import { Bytes } from '../../layout/bytes.js';
import { InterestKind } from '../../layout/interest.js';
import { Database, Super } from '../../layout/superblock.js';
import { copyBytes } from '../../native/copy.js';
import { Notify } from '../../store/change-feed.js';
import type { Keyspace } from '../../store/keyspace.js';
import type { Subscriptions } from './subscriptions.js';

/** Event classes that the store reports of itself. */
const STORE_EVENTS = Notify.EXPIRED | Notify.EVICTED | Notify.NEW | Notify.HASH | Notify.GENERIC;

function storeEvent(kind: Notify): string {
  switch (kind) {
    case Notify.NEW:
      return 'new';
    case Notify.EXPIRED:
      return 'expired';
    case Notify.HASH:
      return 'hexpired';
    case Notify.GENERIC:
      return 'del';
    default:
      return 'evicted';
  }
}

const PREFIX_BYTES_MAX = 64;
const KEY_BYTES_MAX = 65_536;

export class Notifications {
  /** Notify bits of the events that are wanted; 0 = none. */
  wanted = 0;

  readonly #keyspace: Keyspace;
  readonly #subscriptions: Subscriptions;
  readonly #channel = Bytes.allocate(PREFIX_BYTES_MAX + KEY_BYTES_MAX);
  readonly #eventNames = new Map<string, Bytes>();

  constructor(keyspace: Keyspace, subscriptions: Subscriptions) {
    this.#keyspace = keyspace;
    this.#subscriptions = subscriptions;
    keyspace.feed.onEvent = (kind, physical, bytes, offset, length) => {
      const db = this.#logical(physical);
      // Of a flushed database nobody knows any more.
      if (db >= 0) this.fire(kind, storeEvent(kind), db, bytes, offset, length);
    };
  }

  /** `flags` as notify-keyspace-events has them: without K and E nothing is sent. */
  configure(flags: number): void {
    this.wanted = (flags & (Notify.KEYSPACE | Notify.KEYEVENT)) === 0 ? 0 : flags;
    this.#keyspace.feed.notifies = this.wanted & STORE_EVENTS;
  }

  /** The caller has tested `wanted` for 0. */
  fire(kind: Notify, event: string, db: number, key: Bytes, offset: number, length: number): void {
    const { wanted } = this;
    if ((wanted & kind) === 0) return;
    const { ctl } = this.#keyspace.memory;
    if (Atomics.load(ctl, Super.CHANNELS_WORD) === 0 && this.#keyspace.patterns.list.length === 0) return;
    const name = this.#nameOf(event);
    if ((wanted & Notify.KEYSPACE) !== 0) {
      const prefix = this.#prefix('__keyspace@', db);
      copyBytes(this.#channel, prefix, key, offset, length);
      this.#publish(prefix + length, name, 0, name.length);
    }
    if ((wanted & Notify.KEYEVENT) !== 0) {
      const prefix = this.#prefix('__keyevent@', db);
      copyBytes(this.#channel, prefix, name, 0, name.length);
      this.#publish(prefix + name.length, key, offset, length);
    }
  }

  /** A reading command has not found the key that the keyspace was last asked for. */
  fireMiss(db: number): void {
    const { foundBytes, foundOffset, foundLength } = this.#keyspace;
    this.fire(Notify.KEY_MISS, 'keymiss', db, foundBytes, foundOffset, foundLength);
  }

  #publish(channelLength: number, payload: Bytes, offset: number, length: number): void {
    this.#subscriptions.publish(InterestKind.CHANNEL, this.#channel, 0, channelLength, payload, offset, length);
  }

  /** Writes '__keyspace@3__:' and returns its length. */
  #prefix(word: string, db: number): number {
    const text = `${word}${db}__:`;
    for (let i = 0; i < text.length; i++) this.#channel.u8[i] = text.charCodeAt(i);
    return text.length;
  }

  #nameOf(event: string): Bytes {
    let name = this.#eventNames.get(event);
    if (name === undefined) {
      name = Bytes.from(event);
      this.#eventNames.set(event, name);
    }
    return name;
  }

  #logical(physical: number): number {
    const { ctl, databaseTable } = this.#keyspace.memory;
    for (let db = 0; db < Database.LOGICAL; db++) if (ctl[databaseTable + db] === physical) return db;
    return -1;
  }
}

/**
 * What becomes of a change in a shard that somebody is interested in: invalidations for those who track the key, service for
 * those who wait for it.
 *
 * The store calls `changed` while the key's shard is locked and the key's bytes are at hand, and `settled` before any lock is
 * released. Who can run commands sets `serve`; everybody else (the embedded library) tells the waiters' own workers.
 */
import type { Bytes } from '../layout/bytes.js';
import { InterestKind } from '../layout/interest.js';
import { Item, ItemType } from '../layout/item.js';
import { MessageKind } from '../layout/mailbox.js';
import { Database, DatabaseState, Participant, ParticipantRole, Shard, Super } from '../layout/superblock.js';
import type { Journal } from '../memory/journal.js';
import { Mailboxes } from '../memory/mailboxes.js';
import type { Memory } from '../memory/memory.js';
import type { PagePool } from '../memory/page-pool.js';
import { Mark } from './effects/changed-keys.js';
import type { Effects } from './effects/effects.js';
import { Interests } from './interests.js';
import { Patterns } from './patterns.js';

/** INVALIDATE's second word: for clients that remember the key, or that asked for all keys of a prefix. */
export const enum Invalidation {
  TRACKED = 0,
  BROADCAST = 1,
}

/** Classes of keyspace events, and where they go; the letters are those of notify-keyspace-events (config/event-classes). */
export const enum Notify {
  NONE = 0,
  KEYSPACE = 1 << 0,
  KEYEVENT = 1 << 1,
  GENERIC = 1 << 2,
  STRING = 1 << 3,
  LIST = 1 << 4,
  SET = 1 << 5,
  HASH = 1 << 6,
  ZSET = 1 << 7,
  EXPIRED = 1 << 8,
  EVICTED = 1 << 9,
  STREAM = 1 << 10,
  KEY_MISS = 1 << 11,
  MODULE = 1 << 12,
  NEW = 1 << 13,
}

export class ChangeFeed {
  /** Of EXPIRED, EVICTED and NEW, of HASH (fields have expired) and GENERIC (the last one), what `onEvent` wants to hear. */
  notifies = 0;
  /** An item has expired, was evicted or is new, or fields of it have expired; its shard is locked. Set by who sends keyspace events. */
  onEvent: ((kind: Notify, physical: number, bytes: Bytes, offset: number, length: number) => void) | null = null;
  /** Id of the client in whose name changes are made: it may have asked not to hear of its own. */
  origin = 0;
  /** Changed keys with waiters, not served yet: (hash, check) pairs. */
  ready = new Int32Array(32);
  readyCount = 0;
  /** Of a durable pool: what is written down of changes. */
  effects: Effects | null = null;
  /** Serves the waiters of the ready keys; their shards are locked. */
  serve: (() => void) | null = null;

  readonly interests: Interests;
  readonly mailboxes: Mailboxes;
  readonly patterns: Patterns;
  readonly #memory: Memory;

  constructor(memory: Memory, journal: Journal, pool: PagePool) {
    this.#memory = memory;
    this.interests = new Interests(memory, journal, pool);
    this.mailboxes = new Mailboxes(memory, pool);
    this.patterns = new Patterns(memory, pool);
  }

  /**
   * The item whose header is at word `header` has changed, in a shard that somebody is interested in. `canServe`: its value has, and it may be
   * what somebody waits for; else its expiry.
   */
  noteChange(item: Bytes, header: number, canServe: boolean): void {
    if (this.effects !== null) this.noteEffect(item, header, canServe ? Mark.STATE : Mark.EXPIRY);
    this.#tell(item, header, canServe);
  }

  /** The item has changed in a way that nobody but the effect log wants to know of. */
  noteEffect(item: Bytes, header: number, mark: Mark): void {
    const { i32 } = item;
    const shape = i32[header + Item.SHAPE_WORD];
    const key = (header << 2) + Item.HEADER_BYTES;
    const keyLength = shape & Item.KEY_LENGTH_MASK;
    this.effects?.note(i32[header + Item.HASH_WORD], shape >>> Item.DB_SHIFT, item, key, keyLength, mark);
  }

  #tell(item: Bytes, header: number, canServe: boolean): void {
    const { i32 } = item;
    const hash = i32[header + Item.HASH_WORD];
    if (!this.#isAwaited(hash)) return;
    const keyLength = i32[header + Item.SHAPE_WORD] & Item.KEY_LENGTH_MASK;
    this.changed(hash, item, (header << 2) + Item.HEADER_BYTES, keyLength, canServe);
  }

  /** Somebody is interested in changes of the hash's shard, the effect log apart. */
  #isAwaited(hash: number): boolean {
    const { ctl, shardTable, shardCount } = this.#memory;
    const word = shardTable + (hash & (shardCount - 1)) * Shard.WORDS + Shard.INTERESTS_WORD;
    return (ctl[word] & Shard.INTERESTED_MASK) !== 0;
  }

  /** The item is being removed. What expires or is evicted does so in nobody's name; what was flushed was gone before. */
  noteRemoval(item: Bytes, header: number, event: Notify): void {
    const { ctl, databaseTable } = this.#memory;
    const shape = item.i32[header + Item.SHAPE_WORD];
    if (ctl[databaseTable + Database.STATE_WORD + (shape >>> Item.DB_SHIFT)] === DatabaseState.DEAD) return;
    const { origin, effects } = this;
    if (event !== Notify.NONE) this.origin = 0;
    if (effects !== null) this.#noteRemoval(effects, item, header, event !== Notify.NONE);
    this.#tell(item, header, false);
    this.origin = origin;
    if (event !== Notify.NONE && ((shape >>> Item.TYPE_SHIFT) & Item.TYPE_MASK) === ItemType.STREAM) {
      this.#tellOfStream(item, header);
    }
  }

  #noteRemoval(effects: Effects, item: Bytes, header: number, isAlone: boolean): void {
    const { i32 } = item;
    const shape = i32[header + Item.SHAPE_WORD];
    const key = (header << 2) + Item.HEADER_BYTES;
    const keyLength = shape & Item.KEY_LENGTH_MASK;
    effects.noteRemoval(i32[header + Item.HASH_WORD], shape >>> Item.DB_SHIFT, item, key, keyLength, isAlone);
  }

  /** A stream expires or is evicted: who waits in a group of it looks for itself. */
  #tellOfStream(item: Bytes, header: number): void {
    if (Atomics.load(this.#memory.ctl, Super.WAITERS_WORD) === 0) return;
    const { i32 } = item;
    const keyLength = i32[header + Item.SHAPE_WORD] & Item.KEY_LENGTH_MASK;
    const check = this.interests.check(item, (header << 2) + Item.HEADER_BYTES, keyLength);
    this.tellWaiters(i32[header + Item.HASH_WORD], check);
  }

  /** What `notifies` asks for has happened to an item. */
  noteEvent(event: Notify, item: Bytes, header: number): void {
    const shape = item.i32[header + Item.SHAPE_WORD];
    const keyLength = shape & Item.KEY_LENGTH_MASK;
    this.onEvent?.(event, shape >>> Item.DB_SHIFT, item, (header << 2) + Item.HEADER_BYTES, keyLength);
  }

  /** A key has changed. `canServe`: it may be what somebody waits for (it did not just vanish in the background). */
  changed(hash: number, bytes: Bytes, offset: number, length: number, canServe: boolean): void {
    const { ctl } = this.#memory;
    const interests = this.interests;
    const check = interests.check(bytes, offset, length);
    const tracking = interests.takeAll(InterestKind.TRACKED, hash, check);
    for (let i = 0; i < tracking; i++)
      this.#invalidate(interests.seats[i], Invalidation.TRACKED, bytes, offset, length);
    if (Atomics.load(ctl, Super.BROADCAST_WORD) !== 0) this.#broadcast(bytes, offset, length);
    if (canServe && Atomics.load(ctl, Super.WAITERS_WORD) !== 0) this.signalReady(hash, check);
  }

  /** The key of these two hashes may be what somebody waits for. Its shard is locked. */
  signalReady(hash: number, check: number): void {
    if (this.interests.collect(InterestKind.WAITER, hash, check) === 0) return;
    const { ready } = this;
    for (let i = 0; i < this.readyCount; i++) if (ready[i * 2] === hash && ready[i * 2 + 1] === check) return;
    if (this.readyCount * 2 === ready.length) {
      this.ready = new Int32Array(ready.length * 2);
      this.ready.set(ready);
    }
    this.ready[this.readyCount * 2] = hash;
    this.ready[this.readyCount * 2 + 1] = check;
    this.readyCount++;
  }

  /** Before the locks are released: nobody else can take before the waiters do. */
  settled(): void {
    if (this.serve !== null) {
      this.serve();
      return;
    }
    for (let i = 0; i < this.readyCount; i++) this.tellWaiters(this.ready[i * 2], this.ready[i * 2 + 1]);
    this.readyCount = 0;
  }

  /** Lets the workers of all waiters of a key look for themselves. */
  tellWaiters(hash: number, check: number): void {
    const interests = this.interests;
    const waiting = interests.collect(InterestKind.WAITER, hash, check);
    for (let i = 0; i < waiting; i++) {
      // Mostly waiters of one worker stand together.
      if (i === 0 || interests.seats[i] !== interests.seats[i - 1]) this.tell(interests.seats[i], hash, check);
    }
  }

  tell(seat: number, hash: number, check: number): void {
    const { ctlBytes } = this;
    this.mailboxes.send(seat, MessageKind.CHANGED, hash, check, ctlBytes, 0, 0, ctlBytes, 0, 0);
  }

  /** A database was emptied. The gate is closed. */
  flushed(): void {
    this.#tellAll(0);
  }

  /** Two databases were exchanged. The gate is closed. */
  swapped(): void {
    this.#tellAll(1);
  }

  #tellAll(swapped: number): void {
    const { ctl, participantTable } = this.#memory;
    const { ctlBytes } = this;
    for (let seat = 0; seat < Participant.MAX; seat++) {
      if (ctl[participantTable + seat * Participant.WORDS + Participant.ROLES_WORD] === 0) continue;
      this.mailboxes.send(seat, MessageKind.INVALIDATE_ALL, this.origin, swapped, ctlBytes, 0, 0, ctlBytes, 0, 0);
    }
  }

  /** Stands for an empty byte string. */
  get ctlBytes(): Bytes {
    return this.#memory.arenas[0];
  }

  #broadcast(bytes: Bytes, offset: number, length: number): void {
    for (let seat = 0; seat < Participant.MAX; seat++) {
      if (!this.interests.hasRole(seat, ParticipantRole.BROADCAST)) continue;
      this.#invalidate(seat, Invalidation.BROADCAST, bytes, offset, length);
    }
  }

  #invalidate(seat: number, which: Invalidation, bytes: Bytes, offset: number, length: number): void {
    const { origin, ctlBytes } = this;
    this.mailboxes.send(seat, MessageKind.INVALIDATE, origin, which, bytes, offset, length, ctlBytes, 0, 0);
  }
}

/**
 * The only door to data: one Keyspace a participant (a worker thread, an embedding thread).
 *
 * Owns: the item cursor, the staged item, and the order of steps that makes every change atomic. Invariant: between lock and
 * unlock, each changed word is in the undo journal and each chunk taken or unlinked is in a held slot, so that whoever
 * finds this participant dead can put all of it back.
 *
 * A key is (bytes, offset, length); `db` a logical database 0..15. Executors lock, handlers do not. Nothing here allocates
 * JavaScript memory on the paths of a request.
 */

import type { Bytes } from '../layout/bytes.js';
import { Encoding, Item, ItemType, itemBytes, shapeWord } from '../layout/item.js';
import { Page } from '../layout/location.js';
import { PageKind, Shard, Super } from '../layout/superblock.js';
import type { Mailboxes } from '../memory/mailboxes.js';
import { CLASS_OF_UNITS } from '../memory/slab-classes.js';
import { copyBytes } from '../native/copy.js';
import { Adoption } from './adoption.js';
import { Background } from './background.js';
import { Notify } from './change-feed.js';
import { chargeClients } from './client-memory.js';
import { Collection } from './collections/collection.js';
import { Databases } from './databases.js';
import { Mark } from './effects/changed-keys.js';
import { Effects } from './effects/effects.js';
import { Eviction } from './eviction.js';
import { Gate } from './gate.js';
import type { Interests } from './interests.js';
import { INLINE_VALUE_BYTES } from './item-cursor.js';
import type { KeyspaceParts } from './item-finder.js';
import { LockSet } from './lock-set.js';
import { LookAhead } from './look-ahead.js';
import type { Patterns } from './patterns.js';
import { POLICY_NAMES, Policy, type PolicyName } from './policy.js';
import { Promotion } from './promotion.js';
import { Sizes } from './resize.js';
import { randomKey, scanBucket } from './scan.js';
import { classOfPage, collectStats, resetCounters, Stat, type StoreStats } from './statistics.js';
import { Sweep } from './sweep.js';

export { INLINE_VALUE_BYTES } from './item-cursor.js';
export type { KeyspaceParts } from './item-finder.js';
export type { StageSlot } from './staging.js';

export class Keyspace extends Adoption {
  readonly lockSet: LockSet;
  readonly gate: Gate;
  readonly eviction: Eviction;
  readonly promotion: Promotion;
  readonly sweep: Sweep;
  readonly databases: Databases;
  readonly sizes: Sizes;

  /** Collections that a command may have open at once; see store/collections/collection. */
  readonly collections: readonly Collection[];
  /** Calls of `open` since the locks were last released. */
  openCollections = 0;

  /** Hears that pages of the capacity tier are lost, and how many items have been removed with them. */
  onLoss: ((items: number, pages: number) => void) | null = null;

  readonly #lookAhead: LookAhead;
  readonly #background: Background;

  constructor(parts: KeyspaceParts) {
    super(parts);
    const { memory } = parts;
    this.lockSet = new LockSet(this, memory);
    this.gate = new Gate(memory);
    this.eviction = new Eviction(this);
    this.promotion = new Promotion(this);
    this.sweep = new Sweep(this);
    this.sizes = new Sizes(parts);
    this.databases = new Databases(memory, parts.journal, this.sweep);
    this.#lookAhead = new LookAhead(memory, this.index);
    this.#background = new Background(this);
    if (memory.isDurable) this.feed.effects = new Effects(this);
    this.collections = Array.from({ length: OPEN_COLLECTIONS }, () => new Collection(this));
  }

  protected override noteCapacityRead(): void {
    this.promotion.note(this.cursorHash, this.page, this.unit, this.valueLength);
  }

  /** Of the running command: also what it has open as collections. */
  override isProtected(page: number, unit: number): boolean {
    if (this.openCollections > 0) {
      for (const collection of this.collections) if (collection.isAt(page, unit)) return true;
    }
    return super.isProtected(page, unit);
  }

  override forgetFinds(): void {
    super.forgetFinds();
    if (this.openCollections === 0) return;
    this.openCollections = 0;
    for (const collection of this.collections) collection.close();
  }

  get interests(): Interests {
    return this.feed.interests;
  }

  get mailboxes(): Mailboxes {
    return this.feed.mailboxes;
  }

  get patterns(): Patterns {
    return this.feed.patterns;
  }

  // ---- locks

  lock(hash: number): void {
    this.memory.lock(this.index.shardWord(hash));
  }

  /** As lock, for a participant that marks no batches (gate.becomeUnbatched). */
  lockUnbatched(hash: number): void {
    this.gate.lockShard(this.index.shardWord(hash));
  }

  unlock(hash: number): void {
    if (this.feed.readyCount !== 0) this.feed.settled();
    this.feed.effects?.emitPending();
    this.settle();
    if (this.growPending) this.growShard(hash);
    this.memory.unlock(this.index.shardWord(hash));
    this.forgetFinds();
    if (this.held.count !== 0) this.freeUnlinked();
    if (this.gate.inCall) this.gate.endCall();
  }

  /** Ends what a command did under several locks, before they are released: `isLocked` tells whether a shard is ours. */
  settleShards(isLocked: (shard: number) => boolean): void {
    if (this.feed.readyCount !== 0) this.feed.settled();
    this.feed.effects?.emitPending();
    this.settle();
    this.forgetFinds();
    if (!this.growPending) return;
    for (let shard = 0; shard < this.memory.shardCount; shard++) if (isLocked(shard)) this.growShard(shard);
  }

  /** Splits buckets of a hash's shard while it is too full, a few at a time, and shortens chains. The journal is empty; cursors are lost. */
  growShard(hash: number): void {
    this.growPending = false;
    for (let i = 0; i < SPLITS_AT_ONCE && this.index.growIfNeeded(hash); i++) this.journal.commit();
    this.index.tidy(hash);
    this.journal.commit();
  }

  enterBatch(): void {
    this.gate.enter();
    this.slabs.drainIfAsked();
  }

  /** As enterBatch; false = a long script runs alone (see gate.tryEnter). */
  tryEnterBatch(): boolean {
    if (!this.gate.tryEnter()) return false;
    this.slabs.drainIfAsked();
    return true;
  }

  leaveBatch(): void {
    this.gate.leave();
  }

  closeGate(): void {
    this.gate.close();
  }

  openGate(): void {
    this.settleShards(everyShard);
    if (this.held.count !== 0) this.freeUnlinked();
    this.gate.open();
  }

  // ---- changes in place

  /**
   * True when a value of `length` bytes had better not be staged before its key is found: it may be written over the old one,
   * and if not, a chunk for it is at hand.
   */
  prefersOverwrite(keyLength: number, length: number): boolean {
    return (
      length <= OVERWRITE_MAX_BYTES &&
      this.slabs.hasSpare(CLASS_OF_UNITS[this.memory.chunkUnits(itemBytes(keyLength, length))])
    );
  }

  /**
   * Replaces the found item by a string in its own chunk: value, client flags, expiry. False when it is none, or a new item would
   * get a chunk of another class.
   */
  overwrite(bytes: Bytes, offset: number, length: number, clientFlags: number, expiryMs: number): boolean {
    if (this.type !== ItemType.STRING || length > OVERWRITE_MAX_BYTES) return false;
    const { value, itemOffset, keyLength, page, cursorHash: hash } = this;
    const kind = this.ctl[this.memory.pageInfo(page)];
    if ((kind & 0xff) !== PageKind.SLAB) return false;
    if (CLASS_OF_UNITS[this.memory.chunkUnits(itemBytes(keyLength, length))] !== ((kind >>> 8) & 0xff)) return false;
    if (this.copies.areKept) this.copies.forget(page, this.unit);
    const header = itemOffset >>> 2;
    const wordCount = ((this.valueOffset + length + 3) >>> 2) - header;
    const arena = page >>> Page.ARENA_SHIFT;
    this.journal.saveAndCopy(arena, header, wordCount, this.valueOffset, bytes, offset, length);
    const words = value.i32;
    const database = words[header + Item.SHAPE_WORD] >>> Item.DB_SHIFT;
    words[header + Item.SHAPE_WORD] = shapeWord(keyLength, ItemType.STRING, 0, database);
    words[header + Item.VALUE_LENGTH_WORD] = length;
    words[header + Item.CLIENT_FLAGS_WORD] = clientFlags;
    const { index } = this;
    this.nextVersion(hash, value, header);
    this.restore();
    this.countExpiring(hash, database, index.hasExpiry, expiryMs !== 0);
    index.setExpiry(hash, expiryMs);
    this.noteOverwrite();
    this.encoding = 0;
    this.valueLength = length;
    this.statistics[Stat.STORED]++;
    return true;
  }

  /** Journals `length` value bytes at `offset` and gives the item its next version; false when it must be staged anew. */
  edit(offset: number, length: number): boolean {
    if (!this.#isEditable()) return false;
    const from = (this.valueOffset + offset) >>> 2;
    const end = (this.valueOffset + offset + length + 3) >>> 2;
    if (!this.journal.hasRoom(end - from + 16)) return false;
    this.journal.saveRange(this.page >>> Page.ARENA_SHIFT, this.value.i32, from, end - from);
    this.#bumpVersion();
    return true;
  }

  /** Changes the value's length within its chunk; new bytes hold garbage. False when it does not fit or the item is immutable. */
  resize(newLength: number): boolean {
    if (!this.#isEditable()) return false;
    if (itemBytes(this.keyLength, newLength) > this.capacityBytes() - this.memory.chunkTailBytes) return false;
    const at = (this.itemOffset >>> 2) + Item.VALUE_LENGTH_WORD;
    this.journal.save(this.page >>> Page.ARENA_SHIFT, this.value.i32, at);
    this.value.i32[at] = newLength;
    this.valueLength = newLength;
    this.#bumpVersion();
    return true;
  }

  setEncoding(encoding: number): boolean {
    if (!this.#isEditable()) return false;
    if (this.copies.areKept) this.copies.forget(this.page, this.unit);
    const at = (this.itemOffset >>> 2) + Item.SHAPE_WORD;
    this.journal.save(this.page >>> Page.ARENA_SHIFT, this.value.i32, at);
    if (this.feed.effects !== null) this.feed.noteEffect(this.value, this.itemOffset >>> 2, Mark.STATE);
    const shape = this.value.i32[at] & ~(Item.ENCODING_MASK << Item.ENCODING_SHIFT);
    this.value.i32[at] = shape | (encoding << Item.ENCODING_SHIFT);
    this.encoding = encoding;
    return true;
  }

  setClientFlags(flags: number): boolean {
    return this.#setHeader(Item.CLIENT_FLAGS_WORD, flags | 0);
  }

  /** memcached meta E: an explicit version below 2^53. The shard's counter moves past it so that it is not given twice. */
  setVersion(version: number): boolean {
    const high = Math.floor(version / 0x1_0000_0000);
    const low = (version - high * 0x1_0000_0000) | 0;
    if (!this.#setHeader(Item.VERSION_LOW_WORD, low) || !this.#setHeader(Item.VERSION_HIGH_WORD, high)) return false;
    const shard = this.index.shardWord(this.cursorHash);
    const current =
      this.ctl[shard + Shard.VERSION_HIGH_WORD] * 0x1_0000_0000 + (this.ctl[shard + Shard.VERSION_LOW_WORD] >>> 0);
    if (version > current) {
      this.ctl[shard + Shard.VERSION_HIGH_WORD] = high;
      this.ctl[shard + Shard.VERSION_LOW_WORD] = low;
    }
    return true;
  }

  #setHeader(word: number, value: number): boolean {
    if (!this.#isEditable()) return false;
    if (this.copies.areKept) this.copies.forget(this.page, this.unit);
    const at = (this.itemOffset >>> 2) + word;
    this.journal.save(this.page >>> Page.ARENA_SHIFT, this.value.i32, at);
    if (this.feed.effects !== null) this.feed.noteEffect(this.value, this.itemOffset >>> 2, Mark.STATE);
    this.value.i32[at] = value;
    return true;
  }

  /** memcached meta: STALE and WIN_SENT bits; rewrites an item of a log page. False = out of memory. */
  setStateFlags(flags: number): boolean {
    const encoding = (this.encoding & Encoding.RAW) | flags;
    return this.setEncoding(encoding) || this.rewrite(encoding);
  }

  get stateFlags(): number {
    return this.encoding & (Encoding.STALE | Encoding.WIN_SENT);
  }

  /** Copies the found item to a fresh DRAM chunk, where it can be changed in place. Expiry and client flags stay; the version moves on. */
  rewrite(encoding: number): boolean {
    const { value, valueOffset, valueLength, keyLength, type, clientFlags, expiryMs } = this;
    const hash = this.cursorHash;
    const database = this.itemDatabase;
    if (!this.stageIn(hash, database, value, this.keyOffset, keyLength, valueLength)) return false;
    copyBytes(this.staged, this.stagedOffset, value, valueOffset, valueLength);
    return this.commit(type, encoding, clientFlags, expiryMs);
  }

  #isEditable(): boolean {
    const kind = this.memory.pageKind(this.page);
    if (kind === PageKind.SLAB)
      return this.valueLength <= INLINE_VALUE_BYTES || !this.pins.isPinned(this.page, this.unit);
    return kind === PageKind.LARGE && !this.pins.isPinned(this.page, this.unit);
  }

  #bumpVersion(): void {
    this.renewVersion(this.cursorHash, this.page >>> Page.ARENA_SHIFT, this.value, this.itemOffset >>> 2);
  }

  /** A hash of this key hash has a field with an expiry: the sweep looks for such. */
  noteFieldExpiry(hash: number): void {
    this.ctl[this.index.shardWord(hash) + Shard.FIELD_EXPIRY_WORD] = 1;
  }

  setExpiry(expiryMs: number): void {
    this.restore();
    const hash = this.cursorHash;
    this.countExpiring(hash, this.itemDatabase, this.index.hasExpiry, expiryMs !== 0);
    this.index.setExpiry(hash, expiryMs);
    this.log.noteExpiry(this.page, this.unit, expiryMs);
    if (this.copies.areKept) this.copies.noteExpiry(this.page, this.unit, expiryMs);
    const shard = this.index.shardWord(hash);
    this.ctl[shard + Shard.OTHER_CHANGES_WORD]++;
    if (this.ctl[shard + Shard.INTERESTS_WORD] !== 0) this.feed.noteChange(this.value, this.itemOffset >>> 2, false);
  }

  /** How the found item has been used, as its entry keeps it: a renamed item takes it along. */
  get accessWord(): number {
    this.restore();
    return this.index.access;
  }

  set accessWord(word: number) {
    this.restore();
    this.index.setAccessWord(word);
  }

  /** Deletes the found item. */
  remove(): void {
    const shard = this.index.shardWord(this.cursorHash);
    this.ctl[shard + Shard.OTHER_CHANGES_WORD]++;
    // Streams: who waits in a consumer group learns that it is gone.
    if ((this.ctl[shard + Shard.INTERESTS_WORD] & Shard.INTERESTED_MASK) !== 0) {
      this.signalReady(this.cursorHash, this.value, this.keyOffset, this.keyLength);
    }
    this.unlink(Notify.NONE);
    this.foundOffset = -1;
  }

  /** True when somebody is interested in changes of the hash's shard, which is locked. */
  isWatched(hash: number): boolean {
    return (this.ctl[this.index.shardWord(hash) + Shard.INTERESTS_WORD] & Shard.INTERESTED_MASK) !== 0;
  }

  /** Whoever waits for the key (its shard is locked) shall look at it before the lock is released. Every change of a value says so itself. */
  signalReady(hash: number, bytes: Bytes, offset: number, length: number): void {
    this.feed.signalReady(hash, this.interests.check(bytes, offset, length));
  }

  /** A number that changes whenever the key's value or expiry does (WATCH): 0 when it does not exist. */
  watchSignature(hash: number, db: number, bytes: Bytes, offset: number, length: number): number {
    return this.find(hash, db, bytes, offset, length) ? this.version + (this.expiryMs % 0x10_0000) / 0x20_0000 : 0;
  }

  // ---- databases, iteration, background

  /** Items of a database; expired ones that nothing has touched yet count, as in Redis. */
  size(db: number): number {
    return this.databases.size(db);
  }

  /** Items of a database that have an expiry. */
  expiring(db: number): number {
    return this.databases.expiring(db);
  }

  /** Empties a database. The gate is closed. */
  flush(db: number): void {
    this.feed.effects?.noteFlush(db);
    this.databases.flush(db);
    this.feed.flushed();
  }

  flushAll(): void {
    this.feed.effects?.noteFlushAll();
    this.databases.flushAll();
    this.feed.flushed();
  }

  /** Two changes are one of the command's (an element has been moved): to be counted so. The hash's shard is locked. */
  countAsOne(hash: number): void {
    this.ctl[this.index.shardWord(hash) + Shard.OTHER_CHANGES_WORD]--;
  }

  swapDatabases(a: number, b: number): void {
    this.feed.effects?.noteSwap(a, b);
    this.databases.swap(a, b);
    this.feed.swapped();
  }

  /** Class of the found item's slab page, as statistics number them; 0 = it lies in no slab page. */
  get slabClass(): number {
    return classOfPage(this.memory, this.page);
  }

  /** See databases.scheduleFlush. */
  scheduleFlush(db: number, atMs: number): void {
    this.databases.scheduleFlush(db, atMs);
  }

  /** See scan.scanBucket. */
  scan(db: number, cursor: number, visit: (keyspace: Keyspace) => void): number {
    return scanBucket(this, db, cursor, visit);
  }

  randomKey(db: number): Uint8Array | null {
    return randomKey(this, db, this.databases.size(db));
  }

  /** See Background. */
  background(budgetUs: number): boolean {
    return this.#background.run(budgetUs);
  }

  /** What this participant's clients hold outside the pool, which counts as used. */
  chargeClients(bytes: number): void {
    chargeClients(this.memory, this.memory.self, bytes);
  }

  /** maxmemory-policy, for all participants at once. */
  setPolicy(policy: PolicyName): void {
    Atomics.store(this.ctl, Super.POLICY_WORD, POLICY_NAMES.indexOf(policy));
  }

  /** lfu-log-factor and lfu-decay-time, for all participants at once. */
  setLfu(logFactor: number, decayMinutes: number): void {
    Atomics.store(this.ctl, Super.LFU_LOG_FACTOR_WORD, logFactor);
    Atomics.store(this.ctl, Super.LFU_DECAY_MINUTES_WORD, decayMinutes);
  }

  /** maxmemory in bytes of both tiers, whole pages; 0 = what the tiers hold. For all participants at once. */
  setMaxMemory(bytes: number): void {
    const pages = bytes === 0 ? 0 : Math.max(1, Math.floor(bytes / Page.BYTES));
    Atomics.store(this.ctl, Super.MAX_DATA_PAGES_WORD, pages);
  }

  /** More pages are in use than maxmemory allows, and no item may be evicted for it. */
  get isOutOfMemory(): boolean {
    return this.eviction.policy === Policy.NO_EVICTION && this.pool.isOverLimit;
  }

  /** All counters of stats() start from zero, for all participants. */
  resetStats(): void {
    resetCounters(this.memory);
  }

  stats(): StoreStats {
    return collectStats(this.memory);
  }

  // ---- prefetch

  /** True when the index is large enough that the batch passes pay. */
  get prefetchWorthwhile(): boolean {
    return this.ctl[this.memory.shardTable + Shard.BUCKETS_WORD] * this.memory.shardCount > PREFETCH_MIN_BUCKETS;
  }

  /** Starts loading the buckets and items of a batch's keys. No lock; at most LOOK_AHEAD_KEYS of them. */
  prefetch(hashes: Int32Array, count: number): void {
    this.#lookAhead.prefetch(hashes, count);
  }

  /** The next find is for key `i` of the last prefetch, most likely. */
  expect(i: number): void {
    this.#lookAhead.expect(i);
  }
}

function everyShard(): boolean {
  return true;
}

/** Longer values are filled outside the lock (ARCHITECTURE, section 4). */
const OVERWRITE_MAX_BYTES = 1024;
const OPEN_COLLECTIONS = 4;
/** Splits that one command pays for in one shard: several keys may have gone into it. */
const SPLITS_AT_ONCE = 4;
/** Below this many buckets the index sits in the CPU's caches. */
const PREFETCH_MIN_BUCKETS = 16384;

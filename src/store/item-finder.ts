/**
 * Finding items of keys, and what is known of the found one.
 *
 * Owns: the cursor, the position of the found item in the index. Invariant: it is valid while the key's lock is held and until the
 * command finds another or changes this one. Nothing here allocates JavaScript memory.
 */
import { Bucket } from '../layout/bucket.js';
import { type Bytes, bytesEqual } from '../layout/bytes.js';
import { CLASS_DOUBLES, ClassCounter } from '../layout/class-counters.js';
import { Item, ItemType, itemBytes } from '../layout/item.js';
import { locationOffset, Page, unitsOf } from '../layout/location.js';
import { ParticipantPage as P, PageInfo, PageKind, Super } from '../layout/superblock.js';
import type { CapacityLog } from '../memory/capacity-log.js';
import type { Held } from '../memory/held.js';
import type { Journal } from '../memory/journal.js';
import { LogCopies } from '../memory/log-copies.js';
import { LostPages } from '../memory/lost-pages.js';
import type { Memory } from '../memory/memory.js';
import { NO_PAGE, type PagePool } from '../memory/page-pool.js';
import type { Pins } from '../memory/pins.js';
import { CLASS_UNITS } from '../memory/slab-classes.js';
import type { Slabs } from '../memory/slabs.js';
import { addon } from '../native/addon.js';
import { ChangeFeed, Notify } from './change-feed.js';
import { AbandonedDrafts } from './collections/draft.js';
import { nodeBytes } from './collections/forms.js';
import { Graveyard } from './collections/graveyard.js';
import { hashKey } from './hash.js';
import { Holds } from './holds.js';
import { Index } from './index.js';
import { idleSeconds } from './index-cursor.js';
import { Lfu, lfuCounter, lfuIdleMinutes, lfuMinutes, lfuWord } from './lfu.js';
import { Policy } from './policy.js';
import { ProtectedFinds } from './protected-finds.js';
import { classOfPage, classOfSize, Stat } from './statistics.js';

const BEFORE_ALL_EXPIRY_MS = 1;

export interface KeyspaceParts {
  readonly memory: Memory;
  readonly journal: Journal;
  readonly held: Held;
  readonly pool: PagePool;
  readonly slabs: Slabs;
  readonly log: CapacityLog;
  readonly pins: Pins;
}

export abstract class ItemFinder {
  /** The time by which things expire: the wall clock in ms, but before all expiry times while nothing shall expire (holdExpiry). */
  nowMs = 0;
  /** The wall clock in ms: what new expiry times are reckoned from, and what is written down. */
  wallMs = 0;
  /** CLIENT PAUSE: what has expired is not there, but stays; nobody may write meanwhile. */
  keepsExpired = false;
  /** What a new entry's access word holds now: seconds modulo 2^24, or an LFU word (see setClock). */
  accessNow = 0;
  /** Access words are those of store/lfu: the policy is one of the *-lfu. */
  isLfu = false;

  // ---- the cursor, set by find
  type = 0;
  encoding = 0;
  value: Bytes;
  valueOffset = 0;
  valueLength = 0;
  page = NO_PAGE;
  unit = 0;
  keyLength = 0;
  /** Byte offset of the item's header within `value`'s arena. */
  itemOffset = 0;

  readonly memory: Memory;
  readonly journal: Journal;
  readonly pool: PagePool;
  readonly slabs: Slabs;
  readonly log: CapacityLog;
  readonly copies: LogCopies;
  readonly lost: LostPages;
  readonly pins: Pins;
  readonly index: Index;
  readonly feed: ChangeFeed;
  readonly statistics: Float64Array;
  /** See layout/class-counters; a server's worker puts a part of its own counters here. */
  classCounters: Float64Array = new Float64Array(CLASS_DOUBLES);
  readonly graveyard: Graveyard;
  readonly holds: Holds;
  readonly abandonedDrafts = new AbandonedDrafts();

  protected readonly held: Held;
  protected readonly ctl: Int32Array;
  protected readonly arenas: Bytes[];
  protected readonly databaseTable: number;
  readonly #seedLow: number;
  readonly #seedHigh: number;

  #holdsExpiry = false;
  #cursorHash = 0;
  touched = 0;
  /** The index position of the cursor: `find` leaves it here, since staging moves the index's own. */
  #cursorWords: Int32Array;
  #cursorBase = 0;
  #cursorSlot = 0;
  #cursorArena = 0;
  /** The key of the last find, to tell whether commit may use the cursor; offset -1 = no. */
  foundBytes: Bytes;
  foundOffset = -1;
  foundLength = 0;
  protected foundHash = 0;
  protected foundDatabase = 0;
  protected found = false;
  readonly #finds = new ProtectedFinds();

  constructor(parts: KeyspaceParts) {
    const { memory } = parts;
    this.memory = memory;
    this.journal = parts.journal;
    this.held = parts.held;
    this.pool = parts.pool;
    this.slabs = parts.slabs;
    this.log = parts.log;
    this.copies = new LogCopies(memory, parts.log);
    this.lost = new LostPages(memory);
    this.pins = parts.pins;
    this.graveyard = new Graveyard(memory, parts.journal, parts.slabs, parts.pool, parts.pins);
    this.holds = new Holds(memory);
    this.ctl = memory.ctl;
    this.arenas = memory.arenas;
    this.databaseTable = memory.databaseTable;
    this.#seedLow = memory.ctl[Super.SEED_LOW_WORD];
    this.#seedHigh = memory.ctl[Super.SEED_HIGH_WORD];
    this.value = memory.arenas[0];
    this.foundBytes = memory.arenas[0];
    this.#cursorWords = memory.ctl;
    this.index = new Index(memory, parts.journal, parts.pool);
    this.feed = new ChangeFeed(memory, parts.journal, parts.pool);
    this.statistics = memory.arenas[memory.ownArena].doubles((memory.ownBase + P.STATS_WORD) * 4, P.STATS_COUNT);
    this.refreshClock();
  }

  refreshClock(): void {
    this.setClock(addon.realtimeMs());
  }

  /** While a log of commands is carried out nothing expires: it says itself what was deleted because its time had come. */
  holdExpiry(holds: boolean): void {
    this.#holdsExpiry = holds;
    this.refreshClock();
  }

  setClock(ms: number): void {
    this.wallMs = Math.floor(ms);
    this.nowMs = this.#holdsExpiry ? BEFORE_ALL_EXPIRY_MS : this.wallMs;
    const policy = this.ctl[Super.POLICY_WORD];
    this.isLfu = policy === Policy.ALL_LFU || policy === Policy.VOLATILE_LFU;
    this.accessNow = this.isLfu ? lfuWord(lfuMinutes(ms), Lfu.INITIAL) : Math.floor(ms / 1000) & Bucket.ACCESS_MASK;
  }

  /**
   * The key's hash: the same in every database, so that a hash taken before a FLUSHALL or SWAPDB (a batch looks ahead, WATCH
   * remembers) still names the shard and the bucket afterwards. Databases are told apart when items are compared.
   */
  hash(_db: number, bytes: Bytes, offset: number, length: number): number {
    return hashKey(this.#seedLow, this.#seedHigh, bytes, offset, length);
  }

  physical(db: number): number {
    return this.ctl[this.databaseTable + db];
  }

  /** Positions the cursor on the live item of a key. Its lock is held. An expired item is removed and is a miss. */
  find(hash: number, db: number, bytes: Bytes, offset: number, length: number): boolean {
    const database = this.ctl[this.databaseTable + db];
    if (this.foundBytes !== bytes) this.foundBytes = bytes;
    this.foundOffset = offset;
    this.foundLength = length;
    this.foundHash = hash;
    this.foundDatabase = database;
    this.found = this.findKey(hash, database, bytes, offset, length);
    return this.found;
  }

  /** As find, for the key that the command has changed last, most likely: its entry is not looked for while the cursor stands on it. */
  findAgain(hash: number, db: number, bytes: Bytes, offset: number, length: number): boolean {
    const identity = length | (this.ctl[this.databaseTable + db] << Item.DB_SHIFT);
    if (this.#cursorHash === hash) {
      this.restore();
      if (this.#isAtKey(hash, identity, bytes, offset, length)) return this.#reach(hash);
    }
    return this.find(hash, db, bytes, offset, length);
  }

  /** As find, in a physical database, which no number need lead to. */
  findIn(hash: number, database: number, bytes: Bytes, offset: number, length: number): boolean {
    this.foundOffset = -1;
    return this.findKey(hash, database, bytes, offset, length);
  }

  protected findKey(hash: number, database: number, bytes: Bytes, offset: number, length: number): boolean {
    const { index } = this;
    const tag = hash >>> 16;
    const identity = length | (database << Item.DB_SHIFT);
    if (index.isExpecting && index.takeExpected(hash) && this.#isAtKey(hash, identity, bytes, offset, length)) {
      return this.#reach(hash);
    }
    index.locate(hash);
    do {
      const { words, base } = index;
      this.touched = words[base + Bucket.META_WORD];
      for (let slot = 0; slot < Bucket.SLOTS; slot++) {
        if (words[base + Bucket.SLOT_WORD + slot * 2] >>> 16 !== tag) continue;
        index.slot = slot;
        if (this.#isAtKey(hash, identity, bytes, offset, length)) return this.#reach(hash);
      }
    } while (index.next());
    return false;
  }

  /** True when the entry that the index stands on is that of the key. */
  #isAtKey(hash: number, identity: number, bytes: Bytes, offset: number, length: number): boolean {
    const { page, unit } = this.index;
    if (page === NO_PAGE) return false;
    const item = this.arenas[page >>> Page.ARENA_SHIFT];
    const itemOffset = locationOffset(page, unit);
    const header = itemOffset >>> 2;
    const words = item.i32;
    this.touched = words[header + 16] | words[header + 32];
    return (
      words[header] === hash &&
      (words[header + Item.SHAPE_WORD] & 0xff00ffff) === identity &&
      bytesEqual(item, itemOffset + Item.HEADER_BYTES, bytes, offset, length)
    );
  }

  /** To the item of the index's entry; an expired one is removed: false. */
  #reach(hash: number): boolean {
    const { index } = this;
    const { page, unit } = index;
    const item = this.arenas[page >>> Page.ARENA_SHIFT];
    const itemOffset = locationOffset(page, unit);
    this.setCursor(hash, item, itemOffset, page, unit, item.i32[(itemOffset >>> 2) + Item.SHAPE_WORD]);
    if (page >= this.memory.capacityBase && !this.#isThere()) return false;
    if (!index.hasExpiry || index.expiryMs > this.nowMs) return true;
    if (this.keepsExpired) return false;
    this.countExpired();
    this.unlink(Notify.EXPIRED);
    return false;
  }

  /** The found item of the capacity tier can be read; one that cannot is removed. */
  #isThere(): boolean {
    const bytes = itemBytes(this.keyLength, this.valueLength);
    if (this.lost.isThere(this.page, this.value, this.itemOffset, bytes)) return true;
    this.unlink(Notify.NONE);
    return false;
  }

  protected setCursor(hash: number, item: Bytes, itemOffset: number, page: number, unit: number, shape: number): void {
    const { index } = this;
    const keyLength = shape & Item.KEY_LENGTH_MASK;
    this.#cursorHash = hash;
    if (this.#cursorWords !== index.words) this.#cursorWords = index.words;
    this.#cursorBase = index.base;
    this.#cursorSlot = index.slot;
    this.#cursorArena = index.arena;
    // References are compared first: the store's write barrier costs more, and a small store has one arena.
    if (this.value !== item) this.value = item;
    this.itemOffset = itemOffset;
    this.page = page;
    this.unit = unit;
    this.keyLength = keyLength;
    this.type = (shape >>> Item.TYPE_SHIFT) & Item.TYPE_MASK;
    this.encoding = (shape >>> Item.ENCODING_SHIFT) & Item.ENCODING_MASK;
    this.valueLength = item.i32[(itemOffset >>> 2) + Item.VALUE_LENGTH_WORD];
    this.valueOffset = itemOffset + Item.HEADER_BYTES + keyLength;
    this.#finds.add(page, unit);
  }

  /** Positions the cursor on the entry that the index stands on (scans, eviction). False when the slot is empty. */
  openEntry(): boolean {
    const { index } = this;
    const { page, unit } = index;
    if (page === NO_PAGE) return false;
    const item = this.arenas[page >>> Page.ARENA_SHIFT];
    const itemOffset = locationOffset(page, unit);
    this.foundOffset = -1;
    const header = itemOffset >>> 2;
    this.setCursor(item.i32[header], item, itemOffset, page, unit, item.i32[header + Item.SHAPE_WORD]);
    return true;
  }

  /** Positions the cursor on the item at a location that the index points to. Its lock is held. */
  standOn(hash: number, page: number, unit: number): void {
    if (!this.index.findLocation(hash, page, unit)) throw new Error(`no item at page ${page} unit ${unit}`);
    this.openEntry();
  }

  /** To the cursor's entry. */
  protected restore(): void {
    const { index } = this;
    index.words = this.#cursorWords;
    index.base = this.#cursorBase;
    index.slot = this.#cursorSlot;
    index.arena = this.#cursorArena;
  }

  /** The command is over: nothing of what it found needs to stay. */
  forgetFinds(): void {
    this.#finds.clear();
    this.foundOffset = -1;
  }

  /** True for the items of the running command's last finds. */
  isProtected(page: number, unit: number): boolean {
    return this.#finds.has(page, unit);
  }

  /** The found item, whose entry the index stands on, has been read from the capacity tier. */
  protected abstract noteCapacityRead(): void;

  /** Deletes the found item, for the reason `event`. */
  protected abstract unlink(event: Notify): void;

  // ---- fields of the found item that few commands read

  get cursorHash(): number {
    return this.#cursorHash;
  }

  get clientFlags(): number {
    return this.value.i32[(this.itemOffset >>> 2) + Item.CLIENT_FLAGS_WORD] >>> 0;
  }

  get version(): number {
    const header = this.itemOffset >>> 2;
    return (
      this.value.i32[header + Item.VERSION_HIGH_WORD] * 0x1_0000_0000 +
      (this.value.i32[header + Item.VERSION_LOW_WORD] >>> 0)
    );
  }

  /** Absolute expiry in ms, 0 = none. */
  get expiryMs(): number {
    this.restore();
    return this.index.expiryMs;
  }

  get isFetched(): boolean {
    this.restore();
    return this.index.isFetched;
  }

  /** Seconds since the item was last used. */
  get accessAgeS(): number {
    this.restore();
    return this.entryIdleS;
  }

  /** How often the item is used, by the LFU policies' logarithmic counter. */
  get frequency(): number {
    this.restore();
    return this.entryFrequency;
  }

  /** Seconds since the item of the entry that the index stands on was last used; whole minutes under the LFU policies. */
  get entryIdleS(): number {
    const { access } = this.index;
    if (this.isLfu) return lfuIdleMinutes(access, this.accessNow >>> Lfu.MINUTES_SHIFT) * 60;
    return idleSeconds(this.accessNow, access);
  }

  get entryFrequency(): number {
    return lfuCounter(this.index.access, this.accessNow >>> Lfu.MINUTES_SHIFT, this.ctl[Super.LFU_DECAY_MINUTES_WORD]);
  }

  get keyBytes(): Bytes {
    return this.value;
  }
  get keyOffset(): number {
    return this.itemOffset + Item.HEADER_BYTES;
  }

  /** Physical database of the item. */
  get itemDatabase(): number {
    return this.value.i32[(this.itemOffset >>> 2) + Item.SHAPE_WORD] >>> Item.DB_SHIFT;
  }

  /** Bytes that the item takes: its chunk or pages, its nodes, its index entry. */
  get memoryUsage(): number {
    const nodes = this.type === ItemType.STRING ? 0 : nodeBytes(this);
    return nodes + this.capacityBytes() + Math.ceil(Bucket.BYTES / Bucket.SLOTS);
  }

  /** Counts a read of the found item: hit statistics, frequency, access clock. */
  access(): void {
    this.use();
    this.statistics[Stat.HITS]++;
    if (this.page >= this.memory.capacityBase) this.#countCapacityHit();
  }

  /** Counts for the slab class of a page: 5 ns, on lines that this participant alone writes. */
  countInClass(page: number, counter: ClassCounter): void {
    this.classCounters[classOfPage(this.memory, page) * ClassCounter.WORDS + counter]++;
  }

  /** The same for the class of an item of so many bytes that is in no page. */
  countForSize(bytes: number, counter: ClassCounter): void {
    this.classCounters[classOfSize(bytes + this.memory.chunkTailBytes) * ClassCounter.WORDS + counter]++;
  }

  /** The item of the entry that the index stands on goes, since its time has come. */
  countExpired(): void {
    this.statistics[Stat.EXPIRED]++;
    const { page } = this.index;
    this.countInClass(page, ClassCounter.expired);
    if (!this.index.isFetched) this.countInClass(page, ClassCounter.expiredUnfetched);
  }

  #countCapacityHit(): void {
    this.statistics[Stat.CAPACITY_HITS]++;
    const { charge } = this.memory;
    if (charge !== null) charge.read(itemBytes(this.keyLength, this.valueLength));
    this.noteCapacityRead();
  }

  /** The found item is used, by a command that counts no hit. */
  use(): void {
    this.restore();
    if (this.isLfu) this.useLfu();
    else this.index.use(this.accessNow);
  }

  /** The entry that the index stands on has a new value: what is written often stays in DRAM, where writes merge. */
  protected noteOverwrite(): void {
    const { index } = this;
    // Under LFU the command that has found the item has counted its use.
    if (this.isLfu) {
      index.clearFetched();
      return;
    }
    index.setAccess(this.accessNow);
    index.noteOverwrite();
  }

  /** The index stands on the entry. */
  protected useLfu(): void {
    const { ctl } = this;
    this.index.useLfu(
      this.accessNow >>> Lfu.MINUTES_SHIFT,
      ctl[Super.LFU_DECAY_MINUTES_WORD],
      ctl[Super.LFU_LOG_FACTOR_WORD],
    );
  }

  miss(): void {
    this.statistics[Stat.MISSES]++;
  }

  protected capacityBytes(): number {
    const info = this.memory.pageInfo(this.page);
    const kind = this.ctl[info];
    if ((kind & 0xff) === PageKind.SLAB) return CLASS_UNITS[(kind >>> 8) & 0xff] << Page.UNIT_SHIFT;
    if ((kind & 0xff) === PageKind.LARGE) return this.ctl[info + PageInfo.FREE_HEAD_WORD] * Page.BYTES;
    return unitsOf(itemBytes(this.keyLength, this.valueLength)) << Page.UNIT_SHIFT;
  }
}

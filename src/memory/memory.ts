/**
 * A participant's view of the pool's memory: arenas, the control words, its own page, and the word locks.
 *
 * Owns: the mapping from page numbers to this thread's typed arrays. Invariant: arena `i` of `arenas` holds pages
 * i * 1024 .. i * 1024 + 1023, DRAM first, then (from capacityBase) the capacity tier.
 */

import type { DeviceCharge } from '../devices/model/charge.js';
import type { Bytes } from '../layout/bytes.js';
import { Page, pageOffset, unitsOf } from '../layout/location.js';
import { identitySalt, LogPage, LogRecord } from '../layout/log-record.js';
import { Durability, PageInfo, Participant, Super } from '../layout/superblock.js';
import { addon } from '../native/addon.js';

/** Set in a lock word while somebody may be asleep on it. */
const WAITERS = 0x100;
const OWNER_MASK = 0xff;
const SPINS = 64;
/** On x64 no store is seen before those in front of it: an unlock needs no atomic operation (25 ns, a call). */
const PLAIN_STORES_RELEASE = process.arch === 'x64';
/** A waiter that has slept this long asks whether the owner still lives. */
const OWNER_CHECK_MS = 10;

export class Memory {
  readonly ctl: Int32Array;
  /** Pages that the tiers can become, which are mapped: see Super.DRAM_ROOM_WORD. */
  readonly dramRoom: number;
  readonly capacityRoom: number;
  readonly capacityBase: number;
  readonly shardShift: number;
  readonly shardCount: number;
  readonly shardTable: number;
  readonly participantTable: number;
  readonly classTable: number;
  readonly pinTable: number;
  readonly databaseTable: number;
  readonly directory: number;
  readonly directoryLength: number;
  readonly pageTable: number;
  /** Changes are written down: see store/effects. */
  readonly isDurable: boolean;
  readonly wearTable: number;
  /** Log pages carry what a scan after a reboot needs: where records begin and end, units in front of their items, salt of check words. */
  readonly isWarm: boolean;
  readonly logFirstUnit: number;
  readonly logEndUnit: number;
  readonly logPrefixUnits: number;
  readonly logSalt: number;
  /** What slab chunks keep behind their items. */
  readonly chunkTailBytes: number;

  /** This participant's number, and the value it writes into lock words. */
  self = -1;
  lockMark = 0;
  /** Nobody else is at work: lock words are taken by plain stores. Set by Lone. */
  isLone = false;
  /** Typed array and first word of this participant's page. */
  own: Int32Array;
  ownBase = 0;
  ownArena = 0;

  /** Time that accesses to the capacity tier cost beside their own, when a device is emulated. */
  charge: DeviceCharge | null = null;
  /** The tiers' files. */
  dramPath = '';
  capacityPath = '';

  /** Called with a dead participant's number by a waiter; repairs what it held. Set by the store. */
  repairDead: (participant: number) => void = () => {
    throw new Error('no repair attached');
  };

  constructor(
    readonly arenas: Bytes[],
    /** Descriptor of the control file (the DRAM tier): this participant's own open file description. */
    readonly controlFd: number,
  ) {
    const ctl = arenas[0].i32;
    this.ctl = ctl;
    this.own = ctl;
    this.dramRoom = ctl[Super.DRAM_ROOM_WORD];
    this.capacityRoom = ctl[Super.CAPACITY_ROOM_WORD];
    this.capacityBase = ctl[Super.CAPACITY_BASE_WORD];
    this.shardShift = ctl[Super.SHARD_SHIFT_WORD];
    this.shardCount = 1 << this.shardShift;
    this.shardTable = ctl[Super.SHARD_TABLE_WORD];
    this.participantTable = ctl[Super.PARTICIPANT_TABLE_WORD];
    this.classTable = ctl[Super.CLASS_TABLE_WORD];
    this.pinTable = ctl[Super.PIN_TABLE_WORD];
    this.databaseTable = ctl[Super.DATABASE_TABLE_WORD];
    this.directory = ctl[Super.DIRECTORY_WORD];
    this.directoryLength = ctl[Super.DIRECTORY_LENGTH_WORD];
    this.pageTable = ctl[Super.PAGE_TABLE_WORD];
    this.wearTable = ctl[Super.WEAR_TABLE_WORD];
    this.isWarm = ctl[Super.DURABILITY_WORD] === Durability.WARM;
    this.isDurable = ctl[Super.DURABILITY_WORD] === Durability.DURABLE;
    this.logFirstUnit = this.isWarm ? LogPage.HEADER_UNITS : 0;
    this.logEndUnit = this.isWarm ? LogPage.END_UNIT : Page.UNITS;
    this.logPrefixUnits = this.isWarm ? LogRecord.UNITS : 0;
    this.logSalt = identitySalt(ctl, Super.IDENTITY_WORD);
    this.chunkTailBytes = ctl[Super.CHUNK_TAIL_WORD];
  }

  /** Binds this view to a participant slot whose page is already allocated. */
  become(participant: number): void {
    this.self = participant;
    this.lockMark = participant + 1;
    const page = this.ctl[this.participantWord(participant) + Participant.PAGE_WORD];
    this.ownArena = page >>> Page.ARENA_SHIFT;
    this.own = this.arenas[this.ownArena].i32;
    this.ownBase = pageOffset(page) >>> 2;
  }

  // ---- sizes, which others change

  /** The DRAM tier's pages are 0 to here; some of them may be absent. */
  get dramPages(): number {
    return this.ctl[Super.DRAM_EXTENT_WORD];
  }

  /** The capacity tier's pages are so many from capacityBase on; some of them may be absent. */
  get capacityPages(): number {
    return this.ctl[Super.CAPACITY_EXTENT_WORD];
  }

  /** Pages with memory behind them. */
  get dramSize(): number {
    return this.ctl[Super.DRAM_EXTENT_WORD] - this.ctl[Super.DRAM_ABSENT_WORD];
  }

  get capacitySize(): number {
    return this.ctl[Super.CAPACITY_EXTENT_WORD] - this.ctl[Super.CAPACITY_ABSENT_WORD];
  }

  /** Pages that are missing to the size that the tier shall have; below 0: that are too many. */
  get dramWanted(): number {
    const target = this.ctl[Super.DRAM_TARGET_WORD];
    return target === 0 ? 0 : target - this.dramSize;
  }

  get capacityWanted(): number {
    const target = this.ctl[Super.CAPACITY_TARGET_WORD];
    // What a reboot has left is looked at first.
    return target === 0 || this.ctl[Super.REBUILD_STATE_WORD] !== 0 ? 0 : target - this.capacitySize;
  }

  participantWord(participant: number): number {
    return this.participantTable + participant * Participant.WORDS;
  }

  /** First word of a page's entry in the page table. */
  pageInfo(page: number): number {
    return this.pageTable + page * PageInfo.WORDS;
  }

  /** How often a capacity page was begun to be written, where there is a wearTable. */
  wearWord(page: number): number {
    return this.wearTable + page - this.capacityBase;
  }

  pageKind(page: number): number {
    return this.ctl[this.pageTable + page * PageInfo.WORDS] & 0xff;
  }

  /** Units of a chunk for an item of so many bytes. */
  chunkUnits(bytes: number): number {
    return unitsOf(bytes + this.chunkTailBytes);
  }

  /** Pages of the capacity tier are lost: nothing new is written to it. */
  get isCapacityLost(): boolean {
    return this.ctl[Super.LOST_PAGE_WORD] !== 0;
  }

  isCapacity(page: number): boolean {
    return page >= this.capacityBase;
  }

  /** True when the page number lies in either tier: for numbers read without a lock. */
  isPage(page: number): boolean {
    return (
      page > 0 &&
      (page < this.dramPages || (page >= this.capacityBase && page < this.capacityBase + this.capacityPages))
    );
  }

  // ---- word locks

  lock(word: number): void {
    if (this.isLone && this.ctl[word] === 0) {
      this.ctl[word] = this.lockMark;
      return;
    }
    if (Atomics.compareExchange(this.ctl, word, 0, this.lockMark) !== 0) this.#lockSlow(word);
  }

  tryLock(word: number): boolean {
    if (this.isLone) {
      if (this.ctl[word] !== 0) return false;
      this.ctl[word] = this.lockMark;
      return true;
    }
    return Atomics.compareExchange(this.ctl, word, 0, this.lockMark) === 0;
  }

  unlock(word: number): void {
    // A waiter that marks the word between look and store sleeps for OWNER_CHECK_MS at most: its wake is lost.
    if (this.isLone || (PLAIN_STORES_RELEASE && this.ctl[word] === this.lockMark)) {
      this.ctl[word] = 0;
      return;
    }
    if (Atomics.exchange(this.ctl, word, 0) !== this.lockMark) addon.futexWake(this.arenas[0].arena, word << 2, 1);
  }

  holds(word: number): boolean {
    return (this.ctl[word] & OWNER_MASK) === this.lockMark;
  }

  /** Takes a dead owner's lock word away from it and wakes whoever waits. */
  releaseFor(word: number): void {
    Atomics.store(this.ctl, word, 0);
    addon.futexWake(this.arenas[0].arena, word << 2, 1 << 20);
  }

  isAlive(participant: number): boolean {
    return participant === this.self || addon.isByteLocked(this.controlFd, participant);
  }

  /** Random number of whoever took the seat last: tells it from those before it. */
  incarnation(participant: number): number {
    return this.ctl[this.participantWord(participant) + Participant.INCARNATION_WORD];
  }

  #lockSlow(word: number): void {
    const { ctl } = this;
    for (let i = 0; i < SPINS; i++) {
      if (Atomics.load(ctl, word) === 0 && Atomics.compareExchange(ctl, word, 0, this.lockMark) === 0) return;
    }
    for (;;) {
      const held = Atomics.load(ctl, word);
      if (held === 0) {
        // Others may still sleep: keep the mark, so that the unlock wakes one of them.
        if (Atomics.compareExchange(ctl, word, 0, this.lockMark | WAITERS) === 0) return;
        continue;
      }
      const owner = (held & OWNER_MASK) - 1;
      if (owner === this.self) throw new Error(`participant ${owner} waits for lock word ${word}, which it holds`);
      if ((held & WAITERS) === 0 && Atomics.compareExchange(ctl, word, held, held | WAITERS) !== held) continue;
      const woken = addon.futexWait(this.arenas[0].arena, word << 2, held | WAITERS, OWNER_CHECK_MS);
      if (!woken && Atomics.load(ctl, word) === (held | WAITERS) && !this.isAlive(owner)) this.repairDead(owner);
    }
  }
}

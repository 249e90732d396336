/**
 * The rebuild of the index after a reboot, from the pages of the capacity log, while the store serves.
 *
 * Owns the walk over the pages that `format` has left unscanned. What has not been scanned is a miss; what is written meanwhile wins (adoption).
 * Invariant: an item is entered only when its page, its shape, its expiry, its bytes and the line that says it lives are all sound;
 * anything else is dropped, counted, and marked dead, so that it does not come back after the next reboot either.
 */
import { Bytes } from '../layout/bytes.js';
import { Checkpoint } from '../layout/checkpoint.js';
import { Item, ItemType, itemBytes } from '../layout/item.js';
import { locationOffset, Page, pageOffset, unitsOf } from '../layout/location.js';
import {
  expiryCheck,
  isDead,
  isLineSound,
  LogPage,
  LogRecord,
  lineOf,
  readPageKey,
  shapeCheck,
} from '../layout/log-record.js';
import { PageChange, PageInfo, PageKind, Super } from '../layout/superblock.js';
import { recordCheck } from '../memory/capacity-log.js';
import { NO_PAGE } from '../memory/page-pool.js';
import { Adopted } from './adoption.js';
import type { Keyspace } from './keyspace.js';
import { LOOK_AHEAD_KEYS } from './look-ahead.js';

/** Records of one step: what the gate may have to wait for, below a millisecond. */
const STEP_RECORDS = 512;
/** Of the items that there would be if all pages were as the first: the index does not shrink. Growing bucket by bucket took half of the rebuild. */
const GROWS_FOR = 1.3;
/** Records whose places in the index are loaded at once. */
const BATCH_RECORDS = LOOK_AHEAD_KEYS;

/** Makes collections of checkpoints (commands/persistence/checkpoint-restorer). */
export interface CheckpointRestorer {
  /** `page` and `unit`: of the last part, which has key and expiry. False = nothing has come of it: its key has something newer, or there is no room. */
  restore(page: number, unit: number, expiryMs: number, payload: Bytes): boolean;
}

/** Parts of a checkpoint that have been found sound. */
interface FoundParts {
  /** Locations by number. */
  readonly parts: { readonly page: number; readonly unit: number }[];
  found: number;
  /** How many there are; 0 = the last has not been found. */
  count: number;
  expiryMs: number;
}

export class Rebuild {
  readonly #keyspace: Keyspace;
  readonly #restorer: CheckpointRestorer;
  /** By version, which no two items share. */
  readonly #checkpoints = new Map<number, FoundParts>();
  /** Pages with such parts: they join the log at the end. */
  readonly #heldPages: number[] = [];
  #hasParts = false;
  /** Shard whose buckets are made ahead; -1 = none. Items that each is expected to get. */
  #growsShard = -1;
  #shardItems = 0;
  #hasGrown = false;
  readonly #ctl: Int32Array;
  /** The page in hand, its key, and where its next record begins. */
  #page = NO_PAGE;
  #key = 0;
  #unit = 0;
  /** The batch in hand. */
  readonly #units = new Int32Array(BATCH_RECORDS);
  readonly #hashes = new Int32Array(BATCH_RECORDS);
  #words: Int32Array;
  #base = 0;
  #startedMs = 0;
  /** Something of the page lives. */
  #hasGiven = false;
  /** Line that was last looked at, and whether it was sound. */
  #line = -1;
  #isLineSound = false;

  constructor(keyspace: Keyspace, restorer: CheckpointRestorer) {
    this.#keyspace = keyspace;
    this.#restorer = restorer;
    this.#ctl = keyspace.memory.ctl;
    this.#words = keyspace.memory.ctl;
    // One that has ended may have left pages behind that it had looked at: what has come back of them is found there.
    if (this.isUnderWay) this.#ctl[Super.REBUILD_NEXT_WORD] = keyspace.memory.capacityBase;
  }

  get isUnderWay(): boolean {
    return this.#ctl[Super.REBUILD_STATE_WORD] !== 0;
  }

  /** Scans a few hundred records. True when there are more. Inside a batch, without locks; by one participant. */
  step(): boolean {
    if (!this.isUnderWay) return false;
    if (this.#startedMs === 0) this.#startedMs = performance.now();
    if (this.#growsShard >= 0) {
      this.#grow();
      return true;
    }
    if (this.#page === NO_PAGE && !this.#openPage()) {
      if (this.#restoreNext()) return true;
      this.#finish();
      return false;
    }
    for (let i = 0; i < STEP_RECORDS && this.#page !== NO_PAGE; i += BATCH_RECORDS) {
      const count = this.#gather();
      this.#keyspace.prefetch(this.#hashes, count);
      for (let record = 0; record < count; record++) this.#judge(this.#units[record]);
      if (count < BATCH_RECORDS) this.#closePage();
    }
    this.#ctl[Super.REBUILD_MS_WORD] = Math.ceil(performance.now() - this.#startedMs);
    return true;
  }

  #openPage(): boolean {
    const { memory } = this.#keyspace;
    const end = memory.capacityBase + memory.capacityPages;
    let page = this.#ctl[Super.REBUILD_NEXT_WORD];
    while (page < end && memory.pageKind(page) !== PageKind.UNSCANNED) page++;
    if (page === end) return false;
    this.#ctl[Super.REBUILD_NEXT_WORD] = page + 1;
    this.#page = page;
    this.#words = memory.arenas[page >>> Page.ARENA_SHIFT].i32;
    this.#base = pageOffset(page) >>> 2;
    this.#key = readPageKey(this.#words, this.#base, memory.logSalt, page - memory.capacityBase);
    this.#unit = LogPage.HEADER_UNITS;
    this.#line = -1;
    this.#hasGiven = false;
    this.#hasParts = false;
    return true;
  }

  /** Notes the page's next records; fewer than a batch at its end. */
  #gather(): number {
    let count = 0;
    while (count < BATCH_RECORDS) {
      const units = this.#shapeAt(this.#unit);
      if (units === 0) break;
      const unit = this.#unit + LogRecord.UNITS;
      this.#units[count] = unit;
      this.#hashes[count++] = this.#words[this.#base + unit * 4 + Item.HASH_WORD];
      this.#unit += units;
    }
    return count;
  }

  /** Units of the record that begins there; 0 when none does. */
  #shapeAt(unit: number): number {
    if (unit + LogRecord.UNITS + 2 > LogPage.END_UNIT) return 0;
    const words = this.#words;
    const at = this.#base + unit * 4;
    const header = at + LogRecord.WORDS;
    const shape = words[header + Item.SHAPE_WORD];
    const valueLength = words[header + Item.VALUE_LENGTH_WORD];
    const check = shapeCheck(this.#key, unit + LogRecord.UNITS, shape, valueLength);
    if (words[at + LogRecord.SHAPE_CHECK_WORD] !== check || valueLength < 0 || valueLength > Page.BYTES) return 0;
    const units = LogRecord.UNITS + unitsOf(itemBytes(shape & Item.KEY_LENGTH_MASK, valueLength));
    return unit + units > LogPage.END_UNIT ? 0 : units;
  }

  /** Enters the item at the unit, or marks it dead. */
  #judge(unit: number): void {
    const ctl = this.#ctl;
    const page = this.#page;
    const at = this.#base + unit * 4 - LogRecord.WORDS;
    const words = this.#words;
    if (!this.#isTold(unit)) {
      ctl[Super.REBUILD_CORRUPT_WORD]++;
    } else if (words[at + LogRecord.CHECK_WORD] === 0 || isDead(words, this.#base, unit)) {
      ctl[Super.REBUILD_DEAD_WORD]++;
      return;
    } else if (!this.#isSound(unit, at)) {
      ctl[Super.REBUILD_CORRUPT_WORD]++;
    } else {
      const low = words[at + LogRecord.EXPIRY_LOW_WORD] >>> 0;
      const expiryMs = words[at + LogRecord.EXPIRY_HIGH_WORD] * 0x1_0000_0000 + low;
      if (this.#isPart(unit)) return this.#notePart(unit, expiryMs);
      const adopted = this.#keyspace.adopt(page, unit, expiryMs);
      if (adopted === Adopted.DONE) ctl[Super.REBUILD_ITEMS_WORD]++;
      else if (adopted === Adopted.DEAD) ctl[Super.REBUILD_DEAD_WORD]++;
      else if (adopted === Adopted.LOST) ctl[Super.REBUILD_LOST_WORD]++;
      if (adopted === Adopted.DONE || adopted === Adopted.BEFORE) {
        this.#hasGiven = true;
        return;
      }
    }
    this.#keyspace.log.markDead(page, unit);
  }

  /** The line that tells whether the item lives is whole. */
  #isTold(unit: number): boolean {
    const line = (lineOf(0, unit) - LogPage.END_UNIT * 4) / LogPage.LINE_WORDS;
    if (line !== this.#line) {
      this.#line = line;
      this.#isLineSound = isLineSound(this.#words, this.#base, this.#key, line);
    }
    return this.#isLineSound;
  }

  #isSound(unit: number, at: number): boolean {
    const words = this.#words;
    const low = words[at + LogRecord.EXPIRY_LOW_WORD];
    const high = words[at + LogRecord.EXPIRY_HIGH_WORD];
    if (words[at + LogRecord.EXPIRY_CHECK_WORD] !== expiryCheck(this.#key, unit, low, high)) return false;
    const header = at + LogRecord.WORDS;
    const bytes = itemBytes(
      words[header + Item.SHAPE_WORD] & Item.KEY_LENGTH_MASK,
      words[header + Item.VALUE_LENGTH_WORD],
    );
    const { arena } = this.#keyspace.memory.arenas[this.#page >>> Page.ARENA_SHIFT];
    const check = recordCheck(arena, locationOffset(this.#page, unit), bytes, this.#key, unit);
    return words[at + LogRecord.CHECK_WORD] === check;
  }

  /** A page in which something lives joins the log, another is freed. */
  #closePage(): void {
    const { memory } = this.#keyspace;
    const page = this.#page;
    if (this.#hasRecordBehind()) this.#ctl[Super.REBUILD_CORRUPT_WORD]++;
    this.#ctl[memory.pageInfo(page) + PageInfo.FREE_HEAD_WORD] = this.#unit;
    if (this.#hasParts) this.#heldPages.push(page);
    else this.#releasePage(page, this.#hasGiven);
    this.#page = NO_PAGE;
    if (this.#hasGrown) return;
    this.#hasGrown = true;
    this.#growsShard = 0;
    const { shardCount } = this.#keyspace.memory;
    const expected = (this.#ctl[Super.REBUILD_ITEMS_WORD] * this.#ctl[Super.REBUILD_PAGES_WORD]) / GROWS_FOR;
    this.#shardItems = Math.floor(expected / shardCount);
  }

  /** After the first page: the index gets the buckets that the others will want, while there is hardly anything to move into them. */
  #grow(): void {
    if (this.#keyspace.growAhead(this.#growsShard, this.#shardItems)) return;
    if (++this.#growsShard === this.#keyspace.memory.shardCount) this.#growsShard = -1;
  }

  #releasePage(page: number, hasGiven: boolean): void {
    const { memory, pool } = this.#keyspace;
    // Live units are a hint: a page that gave anything is left to reclaim, which looks at each item.
    if (hasGiven) {
      pool.sealLog(page);
      // What has been marked dead goes first: then the flush says that it has been scanned.
      Atomics.store(this.#ctl, memory.pageInfo(page) + PageInfo.CHANGED_WORD, PageChange.SCANNED);
    } else pool.freeUnscanned(page);
    this.#ctl[Super.REBUILD_LEFT_WORD]--;
  }

  // ---- checkpoints of large collections

  #isPart(unit: number): boolean {
    const shape = this.#words[this.#base + unit * 4 + Item.SHAPE_WORD];
    return ((shape >>> Item.TYPE_SHIFT) & Item.TYPE_MASK) === ItemType.CHECKPOINT;
  }

  #notePart(unit: number, expiryMs: number): void {
    const { view } = this.#keyspace.memory.arenas[this.#page >>> Page.ARENA_SHIFT];
    const header = this.#base + unit * 4;
    const words = this.#words;
    const version =
      words[header + Item.VERSION_HIGH_WORD] * 0x1_0000_0000 + (words[header + Item.VERSION_LOW_WORD] >>> 0);
    const value = (header << 2) + Item.HEADER_BYTES + (words[header + Item.SHAPE_WORD] & Item.KEY_LENGTH_MASK);
    const mark = view.getUint16(value + Checkpoint.NUMBER_BYTE, true);
    const number = mark & Checkpoint.NUMBER_MASK;
    const found = this.#checkpoints.get(version) ?? { parts: [], found: 0, count: 0, expiryMs: 0 };
    this.#checkpoints.set(version, found);
    found.parts[number] = { page: this.#page, unit };
    found.found++;
    this.#hasParts = true;
    if (mark === number) return;
    found.count = number + 1;
    found.expiryMs = expiryMs;
  }

  /** Makes a collection of the next checkpoint, older ones first; false when there is none left: the pages that were held for them join the log. */
  #restoreNext(): boolean {
    for (const version of this.#checkpoints.keys()) {
      const found = this.#checkpoints.get(version)!;
      this.#checkpoints.delete(version);
      this.#restore(found);
      return true;
    }
    for (const page of this.#heldPages.splice(0)) this.#releasePage(page, true);
    return false;
  }

  #restore({ parts, found, count, expiryMs }: FoundParts): void {
    const { log } = this.#keyspace;
    const isWhole = count > 0 && found === count && parts.length === count;
    const last = parts[parts.length - 1];
    if (isWhole && this.#restorer.restore(last.page, last.unit, expiryMs, this.#payloadOf(parts))) {
      this.#ctl[Super.REBUILD_ITEMS_WORD]++;
      return;
    }
    this.#ctl[isWhole ? Super.REBUILD_DEAD_WORD : Super.REBUILD_CORRUPT_WORD]++;
    for (const part of parts) if (part !== undefined) log.markDead(part.page, part.unit);
  }

  #payloadOf(parts: FoundParts['parts']): Bytes {
    const pieces = parts.map(({ page, unit }) => {
      const { i32, u8 } = this.#keyspace.memory.arenas[page >>> Page.ARENA_SHIFT];
      const offset = locationOffset(page, unit);
      const value = offset + Item.HEADER_BYTES + (i32[(offset >>> 2) + Item.SHAPE_WORD] & Item.KEY_LENGTH_MASK);
      return u8.subarray(value + Checkpoint.HEADER_BYTES, value + i32[(offset >>> 2) + Item.VALUE_LENGTH_WORD]);
    });
    return Bytes.from(Buffer.concat(pieces));
  }

  /** Records follow where none begins: one between is torn, and with it where the next one is. They are all lost, and count as one. */
  #hasRecordBehind(): boolean {
    for (let unit = this.#unit + 1; unit < LogPage.END_UNIT; unit++) if (this.#shapeAt(unit) !== 0) return true;
    return false;
  }

  #finish(): void {
    // Alone: nobody is about to note a key in the page that is freed.
    const keyspace = this.#keyspace;
    keyspace.closeGate();
    const written = this.#ctl[Super.REBUILD_WRITTEN_WORD];
    Atomics.store(this.#ctl, Super.REBUILD_STATE_WORD, 0);
    this.#ctl[Super.REBUILD_WRITTEN_WORD] = NO_PAGE;
    if (written !== NO_PAGE) keyspace.pool.free(written);
    keyspace.openGate();
  }
}

/**
 * The rebuild of the index after a reboot, from the pages of the capacity log, while the store serves.
 *
 * Owns the walk over the pages that `format` has left unscanned. What has not been scanned is a miss; what is written meanwhile wins (adoption).
 * Invariant: an item is entered only when its page, its shape, its expiry, its bytes and the line that says it lives are all sound;
 * anything else is dropped, counted, and marked dead, so that it does not come back after the next reboot either.
 */
import { Item, itemBytes } from '../layout/item.js';
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

/** Records of one step: what the gate may have to wait for, below a millisecond. */
const STEP_RECORDS = 512;

export class Rebuild {
  readonly #keyspace: Keyspace;
  readonly #ctl: Int32Array;
  /** The page in hand, its key, and where its next record begins. */
  #page = NO_PAGE;
  #key = 0;
  #unit = 0;
  #words: Int32Array;
  #base = 0;
  #startedMs = 0;
  /** Something of the page lives. */
  #hasGiven = false;
  /** Line that was last looked at, and whether it was sound. */
  #line = -1;
  #isLineSound = false;

  constructor(keyspace: Keyspace) {
    this.#keyspace = keyspace;
    this.#ctl = keyspace.memory.ctl;
    this.#words = keyspace.memory.ctl;
  }

  get isUnderWay(): boolean {
    return this.#ctl[Super.REBUILD_STATE_WORD] !== 0;
  }

  /** Scans a few hundred records. True when there are more. Inside a batch, without locks; by one participant. */
  step(): boolean {
    if (!this.isUnderWay) return false;
    if (this.#startedMs === 0) this.#startedMs = performance.now();
    if (this.#page === NO_PAGE && !this.#openPage()) {
      this.#finish();
      return false;
    }
    for (let i = 0; i < STEP_RECORDS; i++) {
      const units = this.#shapeAt(this.#unit);
      if (units === 0) {
        this.#closePage();
        break;
      }
      this.#judge(this.#unit + LogRecord.UNITS);
      this.#unit += units;
    }
    this.#ctl[Super.REBUILD_MS_WORD] = Math.ceil(performance.now() - this.#startedMs);
    return true;
  }

  #openPage(): boolean {
    const { memory } = this.#keyspace;
    const end = memory.capacityBase + memory.capacityPages;
    let page = this.#ctl[Super.REBUILD_NEXT_WORD];
    while (page < end && memory.pageKind(page) !== PageKind.UNSCANNED) page++;
    this.#ctl[Super.REBUILD_NEXT_WORD] = page;
    if (page === end) return false;
    this.#page = page;
    this.#words = memory.arenas[page >>> Page.ARENA_SHIFT].i32;
    this.#base = pageOffset(page) >>> 2;
    this.#key = readPageKey(this.#words, this.#base, memory.logSalt, page - memory.capacityBase);
    this.#unit = LogPage.HEADER_UNITS;
    this.#line = -1;
    this.#hasGiven = false;
    return true;
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
      const adopted = this.#keyspace.adopt(page, unit, words[at + LogRecord.EXPIRY_HIGH_WORD] * 0x1_0000_0000 + low);
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
    const { memory, pool } = this.#keyspace;
    const page = this.#page;
    if (this.#hasRecordBehind()) this.#ctl[Super.REBUILD_CORRUPT_WORD]++;
    this.#ctl[memory.pageInfo(page) + PageInfo.FREE_HEAD_WORD] = this.#unit;
    // Live units are a hint: a page that gave anything is left to reclaim, which looks at each item.
    if (this.#hasGiven) {
      pool.sealLog(page);
      // What has been marked dead goes first: then the flush says that it has been scanned.
      Atomics.store(this.#ctl, memory.pageInfo(page) + PageInfo.CHANGED_WORD, PageChange.SCANNED);
    } else pool.freeUnscanned(page);
    this.#page = NO_PAGE;
    this.#ctl[Super.REBUILD_LEFT_WORD]--;
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

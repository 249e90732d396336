/**
 * checkInvariants: walks the whole memory and throws at the first thing that does not hold. For tests and `pool check`.
 *
 * To be called while no other participant is at work (the gate closed, or alone). What it checks: every entry points to an item that
 * hashes to its bucket; no location twice; counts of shards and databases; every carved chunk of a slab page in exactly one place;
 * live units of log pages; every page accounted for, and in the list that it belongs to.
 */
import { Bucket } from '../layout/bucket.js';
import { Item, ItemType, itemBytes } from '../layout/item.js';
import { locationOffset, Page, pageOffset, unitsOf } from '../layout/location.js';
import { isDead } from '../layout/log-record.js';
import {
  Database,
  ParticipantPage as P,
  PageInfo,
  PageKind,
  Participant,
  ParticipantState,
  Pin,
  Shard,
  SlabClass,
  Super,
} from '../layout/superblock.js';
import type { Memory } from '../memory/memory.js';
import { NO_PAGE } from '../memory/page-pool.js';
import { CLASS_COUNT, CLASS_UNITS } from '../memory/slab-classes.js';
import { checkCollection, checkGraveyard } from './collections/check.js';
import { Graveyard } from './collections/graveyard.js';
import { hashKey } from './hash.js';
import { checkInterests } from './interest-invariants.js';
import type { Keyspace } from './keyspace.js';
import { checkQueues } from './queue-invariants.js';
import { forEachEntry, forEachLogItem } from './walks.js';

const enum Place {
  NONE = 0,
  INDEX = 1,
  FREE_LIST = 2,
  MAGAZINE = 3,
  HELD = 4,
  PINNED = 5,
  NODE = 6,
  GRAVEYARD = 7,
  COPY = 8,
}
const PLACE_NAMES = [
  'nowhere',
  'in the index',
  'in a free list',
  'in a magazine',
  'held',
  'pinned',
  'in a tree',
  'in the graveyard',
  'the copy of an item in DRAM',
];

/** Where each chunk was met: a byte a unit for every page that has any. (A Map of locations ends at 2^24 of them.) */
class Places {
  readonly #pages = new Map<number, Uint8Array>();

  note(page: number, unit: number, place: Place): void {
    let units = this.#pages.get(page);
    if (units === undefined) {
      units = new Uint8Array(Page.UNITS);
      this.#pages.set(page, units);
    }
    const before = units[unit];
    check(before === Place.NONE, () => `${where(page, unit)} is ${PLACE_NAMES[before]} and ${PLACE_NAMES[place]}`);
    units[unit] = place;
  }

  at(page: number, unit: number): Place {
    return this.#pages.get(page)?.[unit] ?? Place.NONE;
  }
}

class Violation extends Error {
  override readonly name = 'InvariantViolation';
}

function check(condition: boolean, message: () => string): void {
  if (!condition) throw new Violation(message());
}

/** Number of items that the index holds. */
export function checkInvariants(keyspace: Keyspace): number {
  const { memory } = keyspace;
  const places = new Places();
  const note = (page: number, unit: number, place: Place): void => places.note(page, unit, place);
  const items = checkIndex(keyspace, note);
  checkGraveyard(keyspace, (page, unit) => note(page, unit, Place.GRAVEYARD));
  noteParticipants(memory, note);
  notePins(memory, note);
  checkClasses(memory, note, places);
  checkPages(memory, places, keyspace.stats().repairs);
  checkQueues(memory, check);
  checkInterests(memory, (problem) => check(false, () => problem));
  return items;
}

function where(page: number, unit: number): string {
  return `page ${page} unit ${unit}`;
}

type Note = (page: number, unit: number, place: Place) => void;

function checkIndex(keyspace: Keyspace, note: Note): number {
  const { memory } = keyspace;
  const { ctl } = memory;
  let total = 0;
  for (let shard = 0; shard < memory.shardCount; shard++) {
    const shardWord = memory.shardTable + shard * Shard.WORDS;
    const perDatabase = new Int32Array(Database.SHARD_WORDS);
    let items = 0;
    let expiring = 0;
    forEachEntry(memory, shard, (words, base, slot) => {
      const page = words[base + Bucket.SLOT_WORD + 1 + slot * 2];
      const word = words[base + Bucket.SLOT_WORD + slot * 2];
      const unit = word & 0xffff;
      check(memory.isPage(page), () => `shard ${shard}: entry points to page ${page}, which is not one`);
      const item = memory.arenas[page >>> Page.ARENA_SHIFT];
      const offset = locationOffset(page, unit);
      const header = offset >>> 2;
      const shape = item.i32[header + Item.SHAPE_WORD];
      const hash = item.i32[header + Item.HASH_WORD];
      const keyLength = shape & Item.KEY_LENGTH_MASK;
      const database = shape >>> Item.DB_SHIFT;
      const type = (shape >>> Item.TYPE_SHIFT) & Item.TYPE_MASK;
      check(type >= ItemType.STRING && type <= ItemType.STREAM, () => `${where(page, unit)}: an item of type ${type}`);
      const valueLength = item.i32[header + Item.VALUE_LENGTH_WORD];
      const room = memory.pageKind(page) === PageKind.SLAB ? chunkBytes(memory, page) : Item.MAX_VALUE_BYTES * 2;
      check(
        valueLength >= 0 && itemBytes(keyLength, valueLength) <= room,
        () => `${where(page, unit)}: a value of ${valueLength} bytes does not fit its place`,
      );
      const real = hashKey(
        ctl[Super.SEED_LOW_WORD],
        ctl[Super.SEED_HIGH_WORD],
        item,
        offset + Item.HEADER_BYTES,
        keyLength,
      );
      // Drafts of several turns have names of their own, in the shard of the key that they are for.
      check(
        real === hash || database === Database.DRAFTS,
        () => `${where(page, unit)}: the key hashes to ${real}, its header says ${hash}`,
      );
      check(hash >>> 16 === word >>> 16, () => `${where(page, unit)}: tag differs from the item's hash`);
      check((hash & (memory.shardCount - 1)) === shard, () => `${where(page, unit)}: item of another shard`);
      note(page, unit, Place.INDEX);
      checkCopy(keyspace, page, unit, note);
      checkCollection(keyspace, page, unit, (p, u) => note(p, u, Place.NODE));
      items++;
      perDatabase[database]++;
      if (((words[base + Bucket.BITS_WORD] >>> slot) & 1) === 1) {
        expiring++;
        perDatabase[Database.EXPIRING_OFFSET + database]++;
      }
      check(keyspace.index.findLocation(hash, page, unit), () => `${where(page, unit)}: not reachable from its bucket`);
    });
    check(
      items === ctl[shardWord + Shard.ITEMS_WORD],
      () => `shard ${shard}: ${items} entries, counted ${ctl[shardWord + Shard.ITEMS_WORD]}`,
    );
    check(
      expiring === ctl[shardWord + Shard.EXPIRING_WORD],
      () => `shard ${shard}: ${expiring} expiring, counted ${ctl[shardWord + Shard.EXPIRING_WORD]}`,
    );
    const counts = memory.databaseTable + Database.COUNTS_WORD + shard * Database.SHARD_WORDS;
    for (let i = 0; i < Database.SHARD_WORDS; i++) {
      check(
        ctl[counts + i] === perDatabase[i],
        () => `shard ${shard}: database count ${i} is ${ctl[counts + i]}, found ${perDatabase[i]}`,
      );
    }
    total += items;
  }
  return total;
}

function chunkBytes(memory: Memory, page: number): number {
  return (CLASS_UNITS[(memory.ctl[memory.pageInfo(page)] >>> 8) & 0xff] ?? 0) * Page.UNIT_BYTES;
}

/** The item's copy in the log is of its key and version, and its record says that it lives. */
function checkCopy(keyspace: Keyspace, page: number, unit: number, note: Note): void {
  const { memory, copies } = keyspace;
  if (!copies.find(page, unit)) return;
  const { page: logPage, unit: logUnit } = copies;
  check(
    isLog(memory, logPage),
    () => `${where(page, unit)}: its copy lies in page ${logPage}, which is none of the log`,
  );
  const item = memory.arenas[page >>> Page.ARENA_SHIFT].i32;
  const header = locationOffset(page, unit) >>> 2;
  const words = Graveyard.isRoot(memory, page, unit) ? CHECKPOINT_HEADER : ITEM_HEADER;
  copies.forEachPart(logPage, logUnit, (partPage, partUnit) => {
    const copy = memory.arenas[partPage >>> Page.ARENA_SHIFT].i32;
    const copied = locationOffset(partPage, partUnit) >>> 2;
    for (const word of words) {
      check(
        item[header + word] === copy[copied + word],
        () => `${where(page, unit)}: its copy differs in word ${word}`,
      );
    }
    check(!isDead(copy, pageOffset(partPage) >>> 2, partUnit), () => `${where(page, unit)}: its copy is dead`);
    note(partPage, partUnit, Place.COPY);
  });
}

const ITEM_HEADER = [0, 1, 2, 3, 4, 5];
/** A checkpoint that came back has an older version than the collection that was made of it. */
const CHECKPOINT_HEADER = [Item.HASH_WORD];

function isLog(memory: Memory, page: number): boolean {
  if (!memory.isPage(page)) return false;
  const kind = memory.pageKind(page);
  return kind === PageKind.LOG_OPEN || kind === PageKind.LOG_SEALED;
}

function noteParticipants(memory: Memory, note: Note): void {
  for (let p = 0; p < Participant.MAX; p++) {
    const at = memory.participantWord(p);
    if (memory.ctl[at + Participant.STATE_WORD] !== ParticipantState.ACTIVE) continue;
    const page = memory.ctl[at + Participant.PAGE_WORD];
    const words = memory.arenas[page >>> Page.ARENA_SHIFT].i32;
    const base = pageOffset(page) >>> 2;
    check(words[base + P.UNDO_COUNT_WORD] === 0, () => `participant ${p}: undo journal is open`);
    check(words[base + P.ALLOC_COUNT_WORD] === 0, () => `participant ${p}: allocator journal is open`);
    for (let c = 0; c < CLASS_COUNT; c++) {
      const magazine = base + P.MAGAZINE_WORD + c * P.MAGAZINE_WORDS;
      for (let i = 0; i < words[magazine]; i++)
        note(words[magazine + 1 + i * 2], words[magazine + 2 + i * 2], Place.MAGAZINE);
    }
    for (let slot = 0; slot < P.HELD_SLOTS; slot++) {
      const heldAt = base + P.HELD_WORD + slot * 2;
      if (words[heldAt] !== NO_PAGE) note(words[heldAt], words[heldAt + 1] & 0xffff, Place.HELD);
    }
  }
}

/** Items that were unlinked while pinned, each once however many pins it has; the count of pins. */
function notePins(memory: Memory, note: Note): void {
  const { ctl } = memory;
  const doomed = new Map<number, number>();
  let pins = 0;
  for (let slot = 0; slot < Pin.SLOTS; slot++) {
    const at = memory.pinTable + slot * Pin.WORDS;
    const page = ctl[at + Pin.PAGE_WORD];
    if (page === NO_PAGE) continue;
    pins++;
    if ((ctl[at + Pin.DOOMED_WORD] & 1) === 1) doomed.set(page * Page.UNITS + ctl[at + Pin.UNIT_WORD], page);
  }
  for (const [location, page] of doomed) note(page, location - page * Page.UNITS, Place.PINNED);
  check(pins === ctl[Super.PIN_COUNT_WORD], () => `${pins} pins, counted ${ctl[Super.PIN_COUNT_WORD]}`);
}

function checkClasses(memory: Memory, note: Note, places: Places): void {
  const { ctl } = memory;
  for (let c = 0; c < CLASS_COUNT; c++) {
    const word = memory.classTable + c * SlabClass.WORDS;
    check(ctl[word + SlabClass.LOCK_WORD] === 0, () => `class ${c} is locked`);
    let pages = 0;
    const first = ctl[word + SlabClass.FIRST_WORD];
    for (let page = first; page !== NO_PAGE; ) {
      const info = memory.pageInfo(page);
      check(
        (ctl[info] & 0xffff) === (PageKind.SLAB | (c << 8)),
        () => `page ${page} is in class ${c}'s list but not of it`,
      );
      pages++;
      check(pages <= memory.dramPages, () => `class ${c}: its list of pages does not end`);
      checkSlabPage(memory, page, c, note, places);
      page = ctl[info + PageInfo.NEXT_WORD];
      if (page === first) break;
    }
    check(
      pages === ctl[word + SlabClass.PAGES_WORD],
      () => `class ${c}: ${pages} pages, counted ${ctl[word + SlabClass.PAGES_WORD]}`,
    );
  }
}

function checkSlabPage(memory: Memory, page: number, slabClass: number, note: Note, places: Places): void {
  const { ctl } = memory;
  const info = memory.pageInfo(page);
  let free = 0;
  for (let head = ctl[info + PageInfo.FREE_HEAD_WORD]; head !== 0; ) {
    const unit = (head - 1) * CLASS_UNITS[slabClass];
    note(page, unit, Place.FREE_LIST);
    free++;
    head = memory.arenas[page >>> Page.ARENA_SHIFT].i32[(locationOffset(page, unit) >>> 2) + Item.HASH_WORD];
  }
  check(
    free === ctl[info + PageInfo.FREE_COUNT_WORD],
    () => `page ${page}: ${free} free chunks, counted ${ctl[info + PageInfo.FREE_COUNT_WORD]}`,
  );
  for (let chunk = 0; chunk < ctl[info + PageInfo.CARVED_WORD]; chunk++) {
    const unit = chunk * CLASS_UNITS[slabClass];
    check(places.at(page, unit) !== Place.NONE, () => `${where(page, unit)} of class ${slabClass} is lost`);
  }
}

function checkPages(memory: Memory, places: Places, repairs: number): void {
  const { ctl } = memory;
  const slack = repairs * 2 * CLASS_UNITS[CLASS_COUNT - 1];
  let dramFree = 0;
  let capacityFree = 0;
  let lent = 0;
  const absent = [0, 0];
  let orphans = 0;
  const visit = (page: number): void => {
    const info = memory.pageInfo(page);
    const kind = ctl[info] & 0xff;
    check(kind !== PageKind.TAKEN, () => `page ${page} was taken and not put to use`);
    if (kind === PageKind.FREE) {
      if (memory.isCapacity(page)) capacityFree++;
      else dramFree++;
    } else if (kind === PageKind.LENT || kind === PageKind.RETURNING) {
      lent++;
    } else if (kind === PageKind.ABSENT || kind === PageKind.LEAVING) {
      absent[memory.isCapacity(page) ? 1 : 0]++;
      if (ctl[info] === PageKind.LEAVING) orphans++;
    } else if (kind === PageKind.LOG_OPEN || kind === PageKind.LOG_SEALED) {
      let live = 0;
      let copies = 0;
      forEachLogItem(memory, page, (unit, units) => {
        if (places.at(page, unit) === Place.INDEX) live += units;
        else if (places.at(page, unit) === Place.COPY) copies += units;
      });
      live += copies;
      // A hint: each death may leave it off by the items that the dead one was moving.
      const counted = ctl[info + PageInfo.FREE_COUNT_WORD];
      check(
        Math.abs(live - counted) <= slack,
        () => `log page ${page}: ${live} live units, counted ${counted}, ${slack} of slack`,
      );
      const countedCopies = memory.chunkTailBytes === 0 ? 0 : ctl[info + PageInfo.COPY_UNITS_WORD];
      check(
        Math.abs(copies - countedCopies) <= slack,
        () => `log page ${page}: ${copies} units of copies, counted ${countedCopies}, ${slack} of slack`,
      );
    } else if (kind === PageKind.LARGE) {
      const header = pageOffset(page) >>> 2;
      const { i32 } = memory.arenas[page >>> Page.ARENA_SHIFT];
      const bytes = itemBytes(
        i32[header + Item.SHAPE_WORD] & Item.KEY_LENGTH_MASK,
        i32[header + Item.VALUE_LENGTH_WORD],
      );
      check(
        unitsOf(bytes) * Page.UNIT_BYTES <= ctl[info + PageInfo.FREE_HEAD_WORD] * Page.BYTES,
        () => `large item at page ${page} is longer than its run`,
      );
    }
  };
  for (let page = 1; page < memory.dramPages; page++) visit(page);
  for (let i = 0; i < memory.capacityPages; i++) visit(memory.capacityBase + i);
  check(
    dramFree === ctl[Super.DRAM_FREE_WORD],
    () => `${dramFree} DRAM pages free, counted ${ctl[Super.DRAM_FREE_WORD]}`,
  );
  check(
    absent[0] === ctl[Super.DRAM_ABSENT_WORD] && absent[1] === ctl[Super.CAPACITY_ABSENT_WORD],
    () =>
      `${absent[0]} and ${absent[1]} pages absent, counted ${ctl[Super.DRAM_ABSENT_WORD]} and ${ctl[Super.CAPACITY_ABSENT_WORD]}`,
  );
  check(orphans === ctl[Super.ORPHANS_WORD], () => `${orphans} pages left behind, counted ${ctl[Super.ORPHANS_WORD]}`);
  check(lent === ctl[Super.LENT_PAGES_WORD], () => `${lent} pages lent, counted ${ctl[Super.LENT_PAGES_WORD]}`);
  check(
    capacityFree === ctl[Super.CAPACITY_FREE_WORD],
    () => `${capacityFree} capacity pages free, counted ${ctl[Super.CAPACITY_FREE_WORD]}`,
  );
}

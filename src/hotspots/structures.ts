/**
 * Names of what lies where in a pool: by table for Cache Meta, by the page table for everything else.
 *
 * Invariant: every address has exactly one name, and reads nothing but the page table to get it.
 */
import { Bucket } from '../layout/bucket.js';
import { Page } from '../layout/location.js';
import { ParticipantPage as P, PageKind, Shard, SlabClass, Super } from '../layout/superblock.js';
import type { Memory } from '../memory/memory.js';

export const STRUCTURES = [
  'superblock: gate',
  'superblock: page pool and log queue',
  'superblock: reclaim',
  'superblock: effect log',
  'superblock: other',
  'shard blocks',
  'participant table',
  'slab class blocks',
  'pin table',
  'database counts',
  'index directory',
  'page table',
  'ghost table',
  'index: locations',
  'index: clocks and expiry',
  'slab pages',
  'log pages',
  'large items',
  'participant: counts and statistics',
  'participant: chunks in flight',
  'participant: magazines',
  'participant: allocator journal',
  'participant: undo journal',
  'mailboxes',
  'wait records',
  'interest table',
  'effect rings',
  'pages not in use yet',
] as const;

export type Structure = (typeof STRUCTURES)[number];

const NUMBERS = Object.fromEntries(STRUCTURES.map((name, number) => [name, number])) as Record<Structure, number>;

/** First words of the superblock's groups. */
const SUPERBLOCK: readonly (readonly [word: number, structure: Structure])[] = [
  [Super.DEPARTED_STATS_WORD, 'superblock: other'],
  [Super.EFFECTS_NUMBER_WORD, 'superblock: effect log'],
  [Super.PIN_LOCK_WORD, 'superblock: other'],
  [Super.RECLAIM_LOCK_WORD, 'superblock: reclaim'],
  [Super.PAGE_LOCK_WORD, 'superblock: page pool and log queue'],
  [Super.GATE_WORD, 'superblock: gate'],
  [0, 'superblock: other'],
];

/** First words of a participant's page. Its head tells how much of journals and slots counts. */
const PARTICIPANT: readonly (readonly [word: number, structure: Structure])[] = [
  [P.UNDO_WORD, 'participant: undo journal'],
  [P.ALLOC_WORD, 'participant: allocator journal'],
  [P.MAGAZINE_WORD, 'participant: magazines'],
  [P.HELD_WORD, 'participant: chunks in flight'],
  [0, 'participant: counts and statistics'],
];

const PAGES: Readonly<Partial<Record<PageKind, Structure>>> = {
  [PageKind.SLAB]: 'slab pages',
  [PageKind.LOG_OPEN]: 'log pages',
  [PageKind.LOG_SEALED]: 'log pages',
  [PageKind.UNSCANNED]: 'log pages',
  [PageKind.LARGE]: 'large items',
  [PageKind.LARGE_REST]: 'large items',
  [PageKind.MAILBOX]: 'mailboxes',
  [PageKind.WAITS]: 'wait records',
  [PageKind.INTEREST]: 'interest table',
  [PageKind.EFFECTS]: 'effect rings',
};

function groupOf(groups: readonly (readonly [word: number, structure: Structure])[], word: number): Structure {
  for (const [first, structure] of groups) if (word >= first) return structure;
  throw new RangeError(`word ${word} belongs to nothing`);
}

export class StructureMap {
  readonly #memory: Memory;
  /** The page table without the recorder. */
  readonly #words: Int32Array;
  /** First words of the tables of Cache Meta, the last one first. */
  readonly #tables: readonly (readonly [word: number, structure: Structure])[];
  readonly #metaPages: number;

  constructor(memory: Memory) {
    this.#memory = memory;
    const { ctl } = memory;
    this.#words = new Int32Array(ctl.buffer, 0, ctl.length);
    this.#metaPages = ctl[Super.META_PAGES_WORD];
    const ghosts = ctl[Super.GHOST_BUCKETS_WORD] === 0 ? Number.POSITIVE_INFINITY : ctl[Super.GHOST_TABLE_WORD];
    this.#tables = [
      [ghosts, 'ghost table'],
      [memory.pageTable, 'page table'],
      [memory.directory, 'index directory'],
      [memory.databaseTable, 'database counts'],
      [memory.pinTable, 'pin table'],
      [memory.classTable, 'slab class blocks'],
      [memory.participantTable, 'participant table'],
      [memory.shardTable, 'shard blocks'],
    ];
  }

  /** Index in STRUCTURES of what lies at an address of the pool (see addressOf). */
  at(address: number): number {
    return NUMBERS[this.#nameAt(address)];
  }

  #nameAt(address: number): Structure {
    const page = Math.floor(address / Page.BYTES);
    const word = (address % Page.BYTES) >>> 2;
    if (page < this.#metaPages) return this.#meta(page * (Page.BYTES / 4) + word);
    const kind: PageKind = this.#words[this.#memory.pageInfo(page)] & 0xff;
    if (kind === PageKind.PARTICIPANT) return groupOf(PARTICIPANT, word);
    if (kind === PageKind.INDEX)
      return (word & (Bucket.WORDS - 1)) < Bucket.META_WORD ? 'index: locations' : 'index: clocks and expiry';
    return PAGES[kind] ?? 'pages not in use yet';
  }

  #meta(word: number): Structure {
    return word < Super.WORDS ? groupOf(SUPERBLOCK, word) : groupOf(this.#tables, word);
  }

  /** A word that is a lock, 0 when it is free: of a shard, a slab class, or the page pool. */
  isLock(address: number): boolean {
    const word = address / 4;
    const { shardTable, participantTable, classTable, pinTable } = this.#memory;
    if (word === Super.PAGE_LOCK_WORD) return true;
    if (word >= shardTable && word < participantTable) return (word - shardTable) % Shard.WORDS === Shard.LOCK_WORD;
    return word >= classTable && word < pinTable && (word - classTable) % SlabClass.WORDS === SlabClass.LOCK_WORD;
  }

  isShardLock(address: number): boolean {
    const word = address / 4;
    return this.isLock(address) && word >= this.#memory.shardTable && word < this.#memory.participantTable;
  }
}

/** Address in the pool: page number and offset, as locations count them. `index`: of the arena in Memory.arenas. */
export function addressOf(index: number, offset: number): number {
  return index * Page.ARENA_PAGES * Page.BYTES + offset;
}

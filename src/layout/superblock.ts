/**
 * The superblock and the tables behind it: pages 0..metaPages-1 of the DRAM tier, "Cache Meta".
 *
 *     page 0   superblock (4 KiB) | shard table | participant table | class table | pin table | database table
 *              | index directory (one page number for each 8192 buckets) | page table (32 bytes a page) | ghost table
 *
 * Everything is a 32-bit word of arena 0; tables are found by their word offsets in the superblock, so that a later version
 * can grow them. Words that several participants change without one lock are changed with Atomics.
 */
export const enum Super {
  MAGIC = 0x5254_4e45, // 'ENTR'
  /** Version of all layouts in src/layout; a pool of another version is refused. */
  VERSION = 4,
  BYTE_ORDER = 0x01020304,

  MAGIC_WORD = 0,
  VERSION_WORD = 1,
  BYTE_ORDER_WORD = 2,
  /** 1 once formatting is complete. */
  READY_WORD = 3,
  /** Pages that the page table has room for: how large a tier can become. Its size now: DRAM_EXTENT_WORD and what follows. */
  DRAM_ROOM_WORD = 4,
  CAPACITY_ROOM_WORD = 5,
  /** Page number of the first capacity page: a multiple of an arena's pages. */
  CAPACITY_BASE_WORD = 6,
  SHARD_SHIFT_WORD = 7,
  SEED_LOW_WORD = 8,
  SEED_HIGH_WORD = 9,
  META_PAGES_WORD = 10,
  SHARD_TABLE_WORD = 11,
  PARTICIPANT_TABLE_WORD = 12,
  CLASS_TABLE_WORD = 13,
  PIN_TABLE_WORD = 14,
  DATABASE_TABLE_WORD = 15,
  DIRECTORY_WORD = 16,
  DIRECTORY_LENGTH_WORD = 17,
  PAGE_TABLE_WORD = 18,
  PAGE_TABLE_LENGTH_WORD = 19,
  /** Random identity, four words; the capacity file carries the same. */
  IDENTITY_WORD = 20,
  POLICY_WORD = 24,
  LFU_LOG_FACTOR_WORD = 25,
  LFU_DECAY_MINUTES_WORD = 26,
  /** 1 = active expiry is switched off (DEBUG SET-ACTIVE-EXPIRE). */
  EXPIRY_PAUSED_WORD = 27,
  /** Most pages that data may take in all (maxmemory); 0 = all. */
  MAX_DATA_PAGES_WORD = 28,
  /** Adds up page numbers of a format, low word of its creation time: diagnostics only. */
  CREATED_LOW_WORD = 29,
  CREATED_HIGH_WORD = 30,

  /** What the capacity tier is made of: an index of store/tier's TIER_NAMES, and the node of the numa tier. */
  TIER_WORD = 31,
  NUMA_NODE_WORD = 32,
  /** A Durability: pages of the capacity log differ (layout/log-record). */
  DURABILITY_WORD = 33,
  /** Random, new each time the DRAM tier is made; the next page that is opened in the log gets the next generation. */
  LOG_EPOCH_WORD = 34,
  LOG_GENERATION_WORD = 35,
  /** Bytes that slab chunks keep behind their items (layout/chunk-tail); 0 = none. */
  CHUNK_TAIL_WORD = 36,
  /** First page of the capacity tier that is lost (memory/lost-pages), 0 = none; the same when what pointed there has been removed. */
  LOST_PAGE_WORD = 37,
  LOST_PURGED_WORD = 38,

  /** See layout/ghost; 0 buckets: none. */
  GHOST_TABLE_WORD = 40,
  GHOST_BUCKETS_WORD = 41,

  /** For each capacity page that there is room for a word: how often it was begun to be written. 0 (a pool of an earlier layout) = none. */
  WEAR_TABLE_WORD = 42,

  /** Check word over what never changes after formatting: see store/format. */
  CHECK_WORD = 48,

  // One cache line each for words that are contended.
  /** The store gate: 0 = open, else the exclusive participant's number + 1, with GATE_WAITING while somebody sleeps on it. */
  GATE_WORD = 64,
  /** What keeps the gate closed for longer than others need put up with: a SlowHolder; 0 = nothing. */
  GATE_SLOW_WORD = 65,
  /** Seats below this number have been taken at some time; 0 (a pool of an earlier build) = any may have been. */
  SEATS_WORD = 66,
  /** The participant (number + 1) that takes lock words by plain stores, being alone; 0 = none. See memory/lone. */
  LONE_WORD = 67,
  /** Lock of the page table, the directory and the capacity log's queue. */
  PAGE_LOCK_WORD = 96,
  DRAM_FREE_WORD = 97,
  CAPACITY_FREE_WORD = 98,
  DRAM_HINT_WORD = 99,
  CAPACITY_HINT_WORD = 100,
  /** Open page of overflow buckets and how many of it are handed out. */
  OVERFLOW_PAGE_WORD = 101,
  OVERFLOW_USED_WORD = 102,
  /** Sealed log pages, oldest first (linked through the page table). */
  LOG_HEAD_WORD = 103,
  LOG_TAIL_WORD = 104,
  LOG_COUNT_WORD = 105,
  LOG_SEQUENCE_WORD = 106,
  /** Large items, oldest first. */
  LARGE_HEAD_WORD = 107,
  LARGE_TAIL_WORD = 108,
  /** Lock of log reclaim: one participant at a time works on the tail page. */
  RECLAIM_LOCK_WORD = 112,
  RECLAIM_PAGE_WORD = 113,
  RECLAIM_UNIT_WORD = 114,
  /** Items of the page that could not be settled in this pass. */
  RECLAIM_LEFT_WORD = 115,
  PIN_LOCK_WORD = 128,
  /** Pins in the table. */
  PIN_COUNT_WORD = 129,
  SWEEP_WORD = 144,
  /** Times when a database is to be flushed (flush_all with a delay): low and high words; 0 = none. */
  FLUSH_AT_LOW_WORD = 160,
  FLUSH_AT_HIGH_WORD = 161,
  /** Logical database + 1; 0 = no flush is scheduled. */
  FLUSH_DATABASE_WORD = 162,
  /** Pages whose spare chunks participants shall give back: bumped by whoever wants to empty a slab page. */
  DRAIN_WORD = 176,
  /** Goes up whenever a dead participant's changes are rolled back. */
  RESTORED_WORD = 177,
  /** Trees of deleted collections, linked through their root items: see store/collections/graveyard. */
  GRAVE_LOCK_WORD = 192,
  GRAVE_PAGE_WORD = 193,
  GRAVE_UNIT_WORD = 194,
  GRAVE_COUNT_WORD = 195,

  /** Lock of the interest table (layout/interest) and of the pattern page (layout/patterns). */
  INTEREST_LOCK_WORD = 208,
  /** Page of bucket heads, 0 = none yet; first free node; nodes ever handed out; node pages. */
  INTEREST_HEADS_WORD = 209,
  INTEREST_FREE_WORD = 210,
  INTEREST_CARVED_WORD = 211,
  INTEREST_PAGES_WORD = 212,
  /** Counts that are never too low, so that nobody looks for what is not there: channel nodes, waiters. */
  CHANNELS_WORD = 213,
  WAITERS_WORD = 214,
  /** Ticket last given to a blocked client. */
  TICKET_WORD = 215,
  /** Page of pattern subscriptions, 0 = none yet; its version. */
  PATTERNS_PAGE_WORD = 216,
  PATTERNS_VERSION_WORD = 217,
  /** Participants with MONITOR clients, with clients that track by prefix. */
  MONITORS_WORD = 218,
  BROADCAST_WORD = 219,
  /** Waiters that only a participant alone may serve: a count that is never too low. */
  ALONE_WAITERS_WORD = 220,
  /** KiB that clients of all participants hold outside the pool; DRAM pages that have been given back to the system for them. */
  CLIENT_KIB_WORD = 221,
  LENT_PAGES_WORD = 222,

  // The rebuild after a reboot: see store/rebuild.
  /** 1 = log pages are still to be scanned. */
  REBUILD_STATE_WORD = 225,
  /** Next page to look at; pages that are not done with; pages there were. */
  REBUILD_NEXT_WORD = 226,
  REBUILD_LEFT_WORD = 227,
  REBUILD_PAGES_WORD = 228,
  /** Physical databases that have been flushed meanwhile, a bit each. */
  REBUILD_FLUSHED_WORD = 229,
  /** Page of bits by hash: keys that were written meanwhile. */
  REBUILD_WRITTEN_WORD = 230,
  /** Items that came back; dead, expired or superseded ones; those dropped as damaged; those there was no room for. */
  REBUILD_ITEMS_WORD = 231,
  REBUILD_DEAD_WORD = 232,
  REBUILD_CORRUPT_WORD = 233,
  REBUILD_LOST_WORD = 234,
  REBUILD_MS_WORD = 235,
  /** Of the capacity tier: how long the last flush took, when it ended (seconds), flushes that failed. */
  PERSIST_MS_WORD = 236,
  PERSIST_AT_WORD = 237,
  PERSIST_FAILURES_WORD = 238,
  /** Lock of whoever writes the warm state (store/capacity-file); how often databases were swapped. */
  WARM_LOCK_WORD = 239,
  SWAPS_WORD = 240,

  // The effect log of a durable pool: see layout/effects, store/effects, server/effects.
  /** Number that the next record gets. */
  EFFECTS_NUMBER_WORD = 256,
  /** Records below this number are persistent. */
  EFFECTS_PERSISTENT_WORD = 272,
  /** The participant (number + 1) that writes the log; 0 = none: what is done then is in doubt. */
  EFFECTS_WRITER_WORD = 273,
  /** Why writes are refused, an errno; 0 = they are not. */
  EFFECTS_REFUSED_WORD = 274,
  /** A Doubt. */
  EFFECTS_DOUBT_WORD = 275,
  /** An EffectsState. */
  EFFECTS_STATE_WORD = 276,
  /** After a clean end, the number of the last segment: nothing has been done since that is not in it. 0 = no. */
  EFFECTS_CLEAN_WORD = 277,
  /** 1 = the writer sleeps on it. */
  EFFECTS_SLEEP_WORD = 288,

  /** Keys that long requests read (store/holds): a bit for each hold in force, and the table. */
  HOLDS_WORD = 241,
  HOLD_TABLE_WORD = 320,

  // Sizes of the tiers, which change while the store is at work: see memory/tier-pages and store/resize.
  /** Pages from the tier's first one on that are known, and those of them without memory behind them. */
  DRAM_EXTENT_WORD = 496,
  CAPACITY_EXTENT_WORD = 497,
  DRAM_ABSENT_WORD = 498,
  CAPACITY_ABSENT_WORD = 499,
  /** Pages with memory that the tier shall have; 0 = those that it has. */
  DRAM_TARGET_WORD = 500,
  CAPACITY_TARGET_WORD = 501,
  /** Why a tier does not get to its target: the system's error number, 0 = none. */
  RESIZE_ERRNO_WORD = 502,
  /** Leaving pages that nobody has in hand. */
  ORPHANS_WORD = 503,

  /** Pages of interest nodes. */
  INTEREST_DIRECTORY_WORD = 704,

  /** Counters of participants that have left, 64 doubles. */
  DEPARTED_STATS_WORD = 512,

  BYTES = 4096,
  WORDS = 1024,
}

/** Table of holds, see store/holds. */
export const enum Hold {
  SLOTS = 32,
  /** Participant + 1, 0 = free. */
  OWNER_WORD = 0,
  HASH_WORD = 1,
  WORDS = 2,
}

/** What survives a reboot. */
export const enum Durability {
  VOLATILE = 0,
  WARM = 1,
  DURABLE = 2,
}

/** Bit of GATE_WORD: whoever opens the gate must wake the sleepers. */
export const GATE_WAITING = 1 << 30;
/** The rest of it. */
export const GATE_HOLDER = GATE_WAITING - 1;

export const enum SlowHolder {
  NONE = 0,
  SCRIPT = 1,
  FUNCTION = 2,
}

/** A shard's block, 64 bytes: one cache line, written only by the lock's holder. */
export const enum Shard {
  LOCK_WORD = 0,
  BUCKETS_WORD = 1,
  ITEMS_WORD = 2,
  VERSION_LOW_WORD = 3,
  VERSION_HIGH_WORD = 4,
  FREE_OVERFLOW_WORD = 5,
  OVERFLOW_COUNT_WORD = 6,
  EXPIRING_WORD = 7,
  /** 1 = hashes of the shard may have fields with an expiry, 2 = the same, and a walk of the sweep has begun since it was 1. */
  FIELD_EXPIRY_WORD = 8,
  /** Who wants to hear of changes in this shard: never too low. Writers look at the interest table when it is not 0. */
  INTERESTS_WORD = 9,
  /** Changes that give no item a version: removals, expiries. Modulo 2^32. */
  OTHER_CHANGES_WORD = 10,
  /** Bit of it: changes are written down (store/effects); the rest counts. */
  LOGGED = 0x4000_0000,
  INTERESTED_MASK = 0x3fff_ffff,
  WORDS = 16,
}

/** Database table: 16 logical numbers -> physical, states of the physical ones, then per shard the counts of each physical one. */
export const enum Database {
  LOGICAL = 16,
  PHYSICAL = 32,
  /** The last physical one is never behind a number: it holds collections that are being made (store/collections/draft). */
  DRAFTS = 31,
  MAP_WORD = 0,
  STATE_WORD = 16,
  COUNTS_WORD = 48,
  /** Words of one shard's counts: items and expiring items of each physical database. */
  SHARD_WORDS = 64,
  EXPIRING_OFFSET = 32,
}

export const enum DatabaseState {
  FREE = 0,
  LIVE = 1,
  /** Flushed: its items are unreachable and being removed. */
  DEAD = 2,
  /** Of a warm pool: flushed and empty, but what the capacity tier's medium says of it may be older. */
  EMPTIED = 3,
}

/** Participant table entry, 64 bytes. */
export const enum Participant {
  MAX = 126,
  STATE_WORD = 0,
  PID_WORD = 1,
  /** Its page (journals, magazines, held chunks). */
  PAGE_WORD = 2,
  IN_BATCH_WORD = 3,
  /** 1 = it takes shard locks without marking batches. */
  UNBATCHED_WORD = 4,
  /** Random, new each time the seat is taken. */
  INCARNATION_WORD = 5,
  /** Page of its mailbox, 0 = it receives nothing; the lock of whoever appends; the eventfd that wakes it, in its process. */
  MAILBOX_WORD = 6,
  MAILBOX_LOCK_WORD = 7,
  WAKE_FD_WORD = 8,
  /** ParticipantRole bits. */
  ROLES_WORD = 9,
  /** KiB that its clients hold outside the pool: replies, requests on their way, what they wait for. */
  CLIENT_KIB_WORD = 10,
  /** Page of the seat's ring of effects, which stays with the seat; the eventfd that says what is persistent, in the owner's process. */
  RING_WORD = 11,
  RING_WAKE_WORD = 12,
  WORDS = 16,
}

/** What a participant wants to hear of; see store/interests. */
export const enum ParticipantRole {
  /** It has nodes in the interest table, or had. */
  INTERESTED = 1,
  MONITORS = 2,
  BROADCAST = 4,
  /** It has clients that track, in whatever mode: they want to hear of flushes. */
  TRACKS = 8,
}

export const enum ParticipantState {
  FREE = 0,
  ACTIVE = 1,
  /** Dead; its changes are rolled back and its locks released, its chunks and pages not yet freed. */
  RESTORED = 2,
  /** Taking its seat: it has no page, or not yet noted. */
  ARRIVING = 3,
}

/** Slab class block, 64 bytes. */
export const enum SlabClass {
  MAX = 112,
  LOCK_WORD = 0,
  /** First page with free chunks (linked through the page table), 0 = none. */
  PARTIAL_WORD = 1,
  PAGES_WORD = 2,
  /** First of all pages of the class, circular order for the CLOCK hand. */
  FIRST_WORD = 3,
  HAND_PAGE_WORD = 4,
  HAND_CHUNK_WORD = 5,
  EVICTIONS_WORD = 6,
  /** Idle seconds of the last victims, a moving average: the age at which this class loses items. */
  VICTIM_AGE_WORD = 7,
  WORDS = 16,
}

/** Page table entry, 32 bytes. */
export const enum PageInfo {
  /** kind | class << 8 | owner << 16 | closed flag */
  KIND_WORD = 0,
  /** Slab: the page is being emptied (by `owner`), none of its chunks is handed out. */
  CLOSED_FLAG = 0x0100_0000,
  NEXT_WORD = 1,
  PREVIOUS_WORD = 2,
  /** Slab: first free chunk + 1, linked through the chunks; 0 = none. Log: write position in units. Large: pages of the run. */
  FREE_HEAD_WORD = 3,
  /** Slab: chunks in the page's free list. Log: live units; a hint, exact but for what deaths interrupted. */
  FREE_COUNT_WORD = 4,
  /** Slab: chunks ever handed out; those behind have never been used. Log: sequence number. */
  CARVED_WORD = 5,
  /** Slab: next and previous page with free chunks. */
  PARTIAL_NEXT_WORD = 6,
  /** Log pages of a warm pool: live units that are copies of items in DRAM; as much a hint as the live units are. */
  COPY_UNITS_WORD = 6,
  PARTIAL_PREVIOUS_WORD = 7,
  /** Capacity pages of a warm pool: a PageChange. It outlives the page's use. */
  CHANGED_WORD = 7,
  WORDS = 8,
}

/** What is to be done to a page of the capacity tier before it is persistent. */
export const enum PageChange {
  NONE = 0,
  CHANGED = 1,
  /** To be flushed, then marked as scanned by the rebuild, then flushed again. */
  SCANNED = 2,
}

export const enum PageKind {
  FREE = 0,
  META = 1,
  INDEX = 2,
  SLAB = 3,
  /** Being filled by its owner. */
  LOG_OPEN = 4,
  LOG_SEALED = 5,
  /** First page of an item that owns whole pages. */
  LARGE = 6,
  LARGE_REST = 7,
  PARTICIPANT = 8,
  /** Taken from the pool by a participant and not yet put to use. */
  TAKEN = 9,
  /** A participant's mailbox, its wait records: they go with it. */
  MAILBOX = 10,
  WAITS = 11,
  /** Bucket heads, nodes or patterns of the interest table. */
  INTEREST = 12,
  /** Its memory has been given back to the system, which clients' memory has been taken from: see store/lending. */
  LENT = 13,
  /** Being reserved again by its owner. */
  RETURNING = 14,
  /** A log page from before a reboot that the rebuild has not scanned yet. */
  UNSCANNED = 15,
  /** What REBUILD_WRITTEN_WORD names. */
  WRITTEN_KEYS = 16,
  /** Ring of a seat's effects: see layout/effects. */
  EFFECTS = 17,
  /** Without memory: see memory/tier-pages. */
  ABSENT = 18,
  /** Its memory is being given back, or reserved, by its owner. */
  LEAVING = 19,
  ARRIVING = 20,
}

/** Pin table: slots of (page, unit, count, doomed). */
export const enum Pin {
  SLOTS = 1024,
  PAGE_WORD = 0,
  UNIT_WORD = 1,
  COUNT_WORD = 2,
  /** 1 = the item was unlinked while pinned; the last unpin frees it. */
  DOOMED_WORD = 3,
  WORDS = 4,
}

/** A participant's page (1 MiB of DRAM). */
export const enum ParticipantPage {
  HELD_COUNT_WORD = 0,
  LOG_PAGE_WORD = 1,
  ALLOC_COUNT_WORD = 2,
  UNDO_COUNT_WORD = 3,
  /** What a native copy is about to put into UNDO_COUNT_WORD: see Journal.saveAndCopy. */
  UNDO_NEXT_WORD = 4,
  /** Chunks in flight whose command has settled; negative once a repair has sorted out the others. See store/repair. */
  HELD_SETTLED_WORD = 5,
  /** Never changed: a word to open the journal with. */
  UNSETTLED_WORD = 6,
  /** Statistics, 64 doubles. */
  STATS_WORD = 32,
  STATS_COUNT = 64,
  /** Chunks in flight: (page, unit) pairs. */
  HELD_WORD = 256,
  HELD_SLOTS = 4096,
  /** Spare chunks a class: count, then (page, unit) pairs. */
  MAGAZINE_WORD = 8448,
  MAGAZINE_WORDS = 40,
  MAGAZINE_SLOTS = 16,
  /** Undo journal of allocator words: (arena, word, old) triples. */
  ALLOC_WORD = 16384,
  ALLOC_SLOTS = 4096,
  /** Undo journal of data: records growing upward, each ending in its header so that it can be walked back. */
  UNDO_WORD = 32768,
  UNDO_WORDS = 229376,
}

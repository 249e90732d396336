/** What a pool's tables say of it, counted over all pages and shards; for `entresol pool`. Reads only. */
import { Database, DatabaseState, PageInfo, PageKind, Super } from '../layout/superblock.js';
import type { Memory } from '../memory/memory.js';
import { POLICY_NAMES } from './policy.js';
import { collectStats, type StoreStats } from './statistics.js';

export interface DatabaseFacts {
  readonly database: number;
  readonly items: number;
  readonly expiring: number;
}

export type PageKindName = keyof typeof KINDS;

export interface PoolFacts {
  readonly layoutVersion: number;
  readonly identity: string;
  readonly shards: number;
  readonly policy: string;
  readonly stats: StoreStats;
  /** Those that hold anything. */
  readonly databases: readonly DatabaseFacts[];
  /** Items of flushed databases that are still to be removed. */
  readonly flushedItems: number;
  /** Pages of each kind there is, in each tier. */
  readonly dramPages: Readonly<Partial<Record<PageKindName, number>>>;
  readonly capacityPages: Readonly<Partial<Record<PageKindName, number>>>;
}

const KINDS = {
  free: PageKind.FREE,
  meta: PageKind.META,
  index: PageKind.INDEX,
  slab: PageKind.SLAB,
  'log-open': PageKind.LOG_OPEN,
  'log-sealed': PageKind.LOG_SEALED,
  large: PageKind.LARGE,
  'large-rest': PageKind.LARGE_REST,
  participant: PageKind.PARTICIPANT,
  taken: PageKind.TAKEN,
  mailbox: PageKind.MAILBOX,
  waits: PageKind.WAITS,
  interest: PageKind.INTEREST,
  lent: PageKind.LENT,
  returning: PageKind.RETURNING,
  absent: PageKind.ABSENT,
  leaving: PageKind.LEAVING,
  arriving: PageKind.ARRIVING,
  unscanned: PageKind.UNSCANNED,
  'written-keys': PageKind.WRITTEN_KEYS,
  effects: PageKind.EFFECTS,
} as const;

function countPages(memory: Memory, first: number, count: number): Partial<Record<PageKindName, number>> {
  const counts = new Map<number, number>();
  for (let page = first; page < first + count; page++) {
    const kind = memory.ctl[memory.pageInfo(page) + PageInfo.KIND_WORD] & 0xff;
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  const named: Partial<Record<PageKindName, number>> = {};
  for (const name of Object.keys(KINDS) as PageKindName[]) {
    const found = counts.get(KINDS[name]);
    if (found !== undefined) named[name] = found;
  }
  return named;
}

function sumCounts(memory: Memory, physical: number): { items: number; expiring: number } {
  const first = memory.databaseTable + Database.COUNTS_WORD + physical;
  let items = 0;
  let expiring = 0;
  for (let shard = 0; shard < memory.shardCount; shard++) {
    items += memory.ctl[first + shard * Database.SHARD_WORDS];
    expiring += memory.ctl[first + shard * Database.SHARD_WORDS + Database.EXPIRING_OFFSET];
  }
  return { items, expiring };
}

export function collectPoolFacts(memory: Memory): PoolFacts {
  const { ctl, databaseTable } = memory;
  const databases: DatabaseFacts[] = [];
  for (let database = 0; database < Database.LOGICAL; database++) {
    const counts = sumCounts(memory, ctl[databaseTable + Database.MAP_WORD + database]);
    if (counts.items > 0) databases.push({ database, ...counts });
  }
  let flushedItems = 0;
  for (let physical = 0; physical < Database.PHYSICAL; physical++) {
    if (ctl[databaseTable + Database.STATE_WORD + physical] !== DatabaseState.DEAD) continue;
    flushedItems += sumCounts(memory, physical).items;
  }
  const identity = Array.from({ length: 4 }, (_, i) => ctl[Super.IDENTITY_WORD + i] >>> 0);
  return {
    layoutVersion: ctl[Super.VERSION_WORD],
    identity: identity.map((word) => word.toString(16).padStart(8, '0')).join(''),
    shards: memory.shardCount,
    policy: POLICY_NAMES[ctl[Super.POLICY_WORD]] ?? `number ${ctl[Super.POLICY_WORD]}`,
    stats: collectStats(memory),
    databases,
    flushedItems,
    dramPages: countPages(memory, 0, memory.dramPages),
    capacityPages: countPages(memory, memory.capacityBase, memory.capacityPages),
  };
}

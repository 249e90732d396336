/** What became of a chunk that eviction looked at. */
export const enum Verdict {
  /** Not an item, or one that nobody may touch now. */
  SKIPPED = 0,
  /** Used since the hand last passed. */
  SPARED = 1,
  FREED = 2,
  /** It must stay: the policy evicts nothing, and there is no room for a copy. */
  STUCK = 3,
  /** It is to be copied into the capacity log, without its lock. */
  COPY = 4,
}

/** Instead of an item's hash: its chunk is free, or its shard busy. Hashes are 32-bit integers. */
export const NOT_LOCKED = 0x1_0000_0000;

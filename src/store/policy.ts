/** Redis's maxmemory policies, as the superblock stores them. */
export const POLICY_NAMES = [
  'noeviction',
  'allkeys-lru',
  'allkeys-lfu',
  'allkeys-random',
  'volatile-lru',
  'volatile-lfu',
  'volatile-random',
  'volatile-ttl',
] as const;

export type PolicyName = (typeof POLICY_NAMES)[number];

export const enum Policy {
  NO_EVICTION = 0,
  ALL_LRU = 1,
  ALL_LFU = 2,
  ALL_RANDOM = 3,
  VOLATILE_LRU = 4,
  VOLATILE_LFU = 5,
  VOLATILE_RANDOM = 6,
  VOLATILE_TTL = 7,
}

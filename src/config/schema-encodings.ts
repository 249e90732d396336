/**
 * The settings that say how values are encoded: up to which size each kind of value stays packed.
 *
 * The ranges are Redis's; beyond 16 KiB (a list: 4 KiB), or with an element of more than 1,000 bytes, a value is a tree whatever they say.
 */
import { integer, size } from './kinds.js';
import { declare, type Setting } from './setting.js';

const LONG_MAX = Number.MAX_SAFE_INTEGER;

export interface EncodingSettings {
  hllSparseMaxBytes: number;
  hashMaxListpackEntries: number;
  hashMaxListpackValue: number;
  setMaxIntsetEntries: number;
  listMaxListpackSize: number;
  setMaxListpackEntries: number;
  setMaxListpackValue: number;
  zsetMaxListpackEntries: number;
  zsetMaxListpackValue: number;
  streamNodeMaxBytes: number;
  streamNodeMaxEntries: number;
}

const GIB = 1024 ** 3;

export const encodingSchema: { readonly [K in keyof EncodingSettings]: Setting<EncodingSettings[K]> } = {
  hllSparseMaxBytes: declare(
    'Observation and tuning',
    integer(0, 16_000, 'BYTES'),
    3000,
    'A HyperLogLog longer than this becomes dense (12,304 bytes).',
    { live: true, redis: ['hll-sparse-max-bytes'] },
  ),
  hashMaxListpackEntries: declare(
    'Observation and tuning',
    integer(0, LONG_MAX),
    512,
    'A hash of more fields becomes a tree.',
    { live: true, redis: ['hash-max-listpack-entries', 'hash-max-ziplist-entries'] },
  ),
  hashMaxListpackValue: declare(
    'Observation and tuning',
    size(0, LONG_MAX),
    64,
    'A hash with a longer field or value becomes a tree.',
    { live: true, redis: ['hash-max-listpack-value', 'hash-max-ziplist-value'] },
  ),
  listMaxListpackSize: declare(
    'Observation and tuning',
    integer(-(2 ** 31), 2 ** 31 - 1),
    -2,
    'A list of more elements becomes a tree; 0 or negative: only its bytes count, 4 KiB.',
    { live: true, redis: ['list-max-listpack-size', 'list-max-ziplist-size'] },
  ),
  setMaxIntsetEntries: declare(
    'Observation and tuning',
    integer(0, LONG_MAX),
    512,
    'A set of more integers becomes a tree.',
    { live: true, redis: ['set-max-intset-entries'] },
  ),
  setMaxListpackEntries: declare(
    'Observation and tuning',
    integer(0, LONG_MAX),
    128,
    'A set of more members, not all of them integers, becomes a tree.',
    { live: true, redis: ['set-max-listpack-entries'] },
  ),
  setMaxListpackValue: declare(
    'Observation and tuning',
    size(0, LONG_MAX),
    64,
    'A set with a longer member becomes a tree.',
    { live: true, redis: ['set-max-listpack-value'] },
  ),
  zsetMaxListpackEntries: declare(
    'Observation and tuning',
    integer(0, LONG_MAX),
    128,
    'A sorted set of more members becomes a tree.',
    { live: true, redis: ['zset-max-listpack-entries', 'zset-max-ziplist-entries'] },
  ),
  zsetMaxListpackValue: declare(
    'Observation and tuning',
    size(0, LONG_MAX),
    64,
    'A sorted set with a longer member becomes a tree.',
    { live: true, redis: ['zset-max-listpack-value', 'zset-max-ziplist-value'] },
  ),
  streamNodeMaxBytes: declare(
    'Observation and tuning',
    size(1, GIB, true),
    4096,
    'XTRIM and XADD with ~ remove entries of so many bytes at a time; 0 = as many as the other limit says.',
    { live: true, redis: ['stream-node-max-bytes'] },
  ),
  streamNodeMaxEntries: declare(
    'Observation and tuning',
    integer(0, 1_000_000_000),
    100,
    'The same in entries; 0 = no limit.',
    { live: true, redis: ['stream-node-max-entries'] },
  ),
};

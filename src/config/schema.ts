/**
 * Every setting of the server, declared once.
 *
 * Flags (--memcached-port), environment (ENTRESOL_MEMCACHED_PORT), TOML keys (memcached-port), --help and CONFIG GET/SET
 * all come from this table; nothing else lists settings. Invariant: every default is a value that its kind accepts.
 */
import { acceptedLines } from './accepted.js';
import { eventClasses } from './event-classes.js';
import {
  addresses,
  countOrAuto,
  fileMode,
  integer,
  oneOf,
  percentiles,
  powerOfTwo,
  size,
  text,
  yesNo,
} from './kinds.js';
import { type ClientSettings, clientSchema } from './schema-clients.js';
import { type DurableSettings, durableSchema } from './schema-durable.js';
import { type EncodingSettings, encodingSchema } from './schema-encodings.js';
import { type MemcachedSettings, memcachedSchema, UNIX_PATH_BYTES_MAX } from './schema-memcached.js';
import { type RdbSettings, rdbSchema } from './schema-rdb.js';
import { declare, type Setting } from './setting.js';

export type { PubsubDefault } from './schema-clients.js';
export type { MemcachedProtocol } from './schema-memcached.js';
export type { Group, Setting } from './setting.js';

const KIB = 1024;
const MIB = 1024 * KIB;
const GIB = 1024 * MIB;
const TIB = 1024 * GIB;

/** What the layout of a pool allows. */
const SHARD_COUNT_MIN = 32;
const SHARD_COUNT_MAX = 4096;

export const DRAM_BYTES_MIN = 16 * MIB;

export type Tier = 'auto' | 'dax' | 'numa' | 'file' | 'none';
export type Durability = 'volatile' | 'warm' | 'durable';
export type LogLevel = 'debug' | 'verbose' | 'notice' | 'warning' | 'nothing';
export type HugePages = 'auto' | 'yes' | 'no';
export type MaxmemoryPolicy =
  | 'noeviction'
  | 'allkeys-lru'
  | 'allkeys-lfu'
  | 'allkeys-random'
  | 'volatile-lru'
  | 'volatile-lfu'
  | 'volatile-random'
  | 'volatile-ttl';

/** The resolved values. Sizes are bytes. Plain data: it crosses to worker threads by structured clone. */
export interface Settings extends ClientSettings, DurableSettings, EncodingSettings, RdbSettings, MemcachedSettings {
  bind: readonly string[];
  port: number;
  unix: string;
  unixMode: number;
  tcpBacklog: number;
  workers: number;

  dram: number;
  pool: string;
  capacity: number;
  growthRoom: number;
  tier: Tier;
  numaNode: number;
  durability: Durability;
  maxmemory: number;
  maxmemoryPolicy: MaxmemoryPolicy;
  hugepages: HugePages;
  emulate: 'no' | 'optane' | 'optane-1' | 'optane-4';
  shards: number;
  databases: number;

  notifyKeyspaceEvents: number;
  trackingTableMaxKeys: number;
  busyReplyThreshold: number;
  slowlogLogSlowerThan: number;
  slowlogMaxLen: number;
  latencyMonitorThreshold: number;
  latencyTracking: boolean;
  latencyTrackingInfoPercentiles: readonly number[];
  hz: number;
  lfuLogFactor: number;
  lfuDecayTime: number;
  loglevel: LogLevel;
  redisSetting: readonly string[];
}

export type SettingKey = keyof Settings;
type Schema = { readonly [K in SettingKey]: Setting<Settings[K]> };

export const schema: Schema = {
  bind: declare('Listening', addresses(), ['127.0.0.1'], 'Addresses to listen on.', { redis: ['bind'] }),
  port: declare('Listening', integer(0, 65_535, 'PORT'), 6379, 'Port of the Redis protocol; 0 = off.', {
    redis: ['port'],
  }),
  unix: declare('Listening', text('PATH', UNIX_PATH_BYTES_MAX), '', 'Unix socket of the Redis protocol; empty = off.', {
    redis: ['unixsocket'],
  }),
  unixMode: declare('Listening', fileMode(), 0o700, 'Permissions of the unix socket.', { redis: ['unixsocketperm'] }),
  tcpBacklog: declare('Listening', integer(1, 65_535), 511, 'Length of the accept queue of each listener.', {
    redis: ['tcp-backlog'],
  }),
  workers: declare(
    'Listening',
    countOrAuto(64),
    1,
    'Threads that serve clients; auto = the cores this process may use less one, at least 1.',
    { redis: ['io-threads'] },
  ),

  dram: declare(
    'Memory',
    size(DRAM_BYTES_MIN, TIB),
    128 * MIB,
    'Size of the DRAM tier: metadata and hot items. The default shrinks to half of a smaller container memory limit.',
    { live: true },
  ),
  pool: declare('Memory', text('PATH', 4096), './data', 'Folder of the pool: control file and capacity tier.', {
    redis: ['dir'],
  }),
  capacity: declare('Memory', size(16 * MIB, 16 * TIB, true), GIB, 'Size of the capacity tier; 0 = none.', {
    live: true,
  }),
  growthRoom: declare(
    'Memory',
    integer(1, 64),
    4,
    'How many times its size each tier of a new pool can become by CONFIG SET. Costs 32 bytes of DRAM for each MiB of that.',
  ),
  tier: declare(
    'Memory',
    oneOf('auto', 'dax', 'numa', 'file', 'none'),
    'auto',
    'Kind of the capacity tier: a DAX file system, a NUMA node (CXL, PMEM), an ordinary file, or none. auto = dax where the pool lies on one, else file.',
  ),
  numaNode: declare('Memory', integer(-1, 1023), -1, 'NUMA node of the capacity tier, for tier numa; -1 = not set.'),
  durability: declare(
    'Memory',
    oneOf('volatile', 'warm', 'durable'),
    'volatile',
    'What survives a reboot of the machine: volatile = nothing (a restart of the process keeps all), warm = what lies in the capacity tier, at most a second old, durable = every write that was answered (see appendfsync).',
  ),
  ...durableSchema,
  maxmemory: declare(
    'Memory',
    size(1, 16 * TIB, true),
    0,
    'Most bytes of data, both tiers together; 0 = what the tiers hold.',
    { live: true, redis: ['maxmemory'] },
  ),
  maxmemoryPolicy: declare(
    'Memory',
    oneOf(
      'noeviction',
      'allkeys-lru',
      'allkeys-lfu',
      'allkeys-random',
      'volatile-lru',
      'volatile-lfu',
      'volatile-random',
      'volatile-ttl',
    ),
    'allkeys-lru',
    'What to evict when memory is full.',
    { live: true, redis: ['maxmemory-policy'] },
  ),
  hugepages: declare(
    'Memory',
    oneOf('auto', 'yes', 'no'),
    'auto',
    'Huge pages for the tiers: auto and yes ask the kernel for them and go on without; no does not ask.',
  ),
  emulate: declare(
    'Memory',
    oneOf('no', 'optane', 'optane-1', 'optane-4'),
    'no',
    'For measuring without the hardware: accesses to the capacity tier take the time that they would on Optane modules (six interleaved, one, four), by published figures.',
  ),
  shards: declare(
    'Memory',
    powerOfTwo(SHARD_COUNT_MIN, SHARD_COUNT_MAX),
    256,
    'Parts of the key space, each with its own lock. Another number than the pool has begins it anew.',
  ),
  databases: declare('Memory', integer(1, 16), 16, 'Databases that SELECT can reach.', { redis: ['databases'] }),

  ...clientSchema,

  notifyKeyspaceEvents: declare(
    'Observation and tuning',
    eventClasses(),
    0,
    'Keyspace events to send: K and E say where to, g $ l s h z x e t d n m what, A all but n and m; empty = none.',
    { live: true, redis: ['notify-keyspace-events'] },
  ),
  trackingTableMaxKeys: declare(
    'Observation and tuning',
    integer(0, 2 ** 31 - 1),
    1_000_000,
    'Keys that one worker remembers for CLIENT TRACKING; beyond it, keys are invalidated early. 0 = no limit.',
    { live: true, redis: ['tracking-table-max-keys'] },
  ),
  slowlogLogSlowerThan: declare(
    'Observation and tuning',
    integer(-1, 2 ** 40, 'MICROSECONDS'),
    10_000,
    'SLOWLOG keeps commands slower than this; 0 = all, -1 = none.',
    { live: true, redis: ['slowlog-log-slower-than'] },
  ),
  slowlogMaxLen: declare('Observation and tuning', integer(0, 65_536), 128, 'Entries that SLOWLOG keeps.', {
    live: true,
    redis: ['slowlog-max-len'],
  }),
  latencyMonitorThreshold: declare(
    'Observation and tuning',
    integer(0, 2 ** 31 - 1, 'MS'),
    0,
    'LATENCY records events slower than this; 0 = off.',
    { live: true, redis: ['latency-monitor-threshold'] },
  ),
  latencyTracking: declare(
    'Observation and tuning',
    yesNo(),
    true,
    'Keeps the distribution of latencies of each command (LATENCY HISTOGRAM, INFO latencystats).',
    { live: true, redis: ['latency-tracking'] },
  ),
  latencyTrackingInfoPercentiles: declare(
    'Observation and tuning',
    percentiles(),
    [50, 99, 99.9],
    'Percentiles that INFO latencystats shows.',
    { live: true, redis: ['latency-tracking-info-percentiles'] },
  ),
  hz: declare('Observation and tuning', integer(1, 500), 10, 'Rounds of background work (expiry) per second.', {
    live: true,
    redis: ['hz'],
  }),
  lfuLogFactor: declare(
    'Observation and tuning',
    integer(0, 2_147_483_647),
    10,
    'How many uses it takes for the counter of the *-lfu policies to grow; 0 = one.',
    { live: true, redis: ['lfu-log-factor'] },
  ),
  lfuDecayTime: declare(
    'Observation and tuning',
    integer(0, 2_147_483_647, 'MINUTES'),
    1,
    'Minutes after which the counter of the *-lfu policies falls by one; 0 = never.',
    { live: true, redis: ['lfu-decay-time'] },
  ),
  redisSetting: declare(
    'Observation and tuning',
    acceptedLines(),
    [],
    'A parameter of Redis without a counterpart here, such as repl-timeout: kept for CONFIG GET, without effect. May be given several times; in a file as an array.',
    { isHidden: true },
  ),
  ...encodingSchema,
  loglevel: declare(
    'Observation and tuning',
    oneOf('debug', 'verbose', 'notice', 'warning', 'nothing'),
    'notice',
    'How much to print.',
    { live: true, redis: ['loglevel'] },
  ),

  ...rdbSchema,
  ...memcachedSchema,
};

export const settingKeys = Object.keys(schema) as readonly SettingKey[];

/** memcachedPort -> memcached-port: the flag is this after '--', the TOML key is this. */
export function settingName(key: SettingKey): string {
  return key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** memcachedPort -> ENTRESOL_MEMCACHED_PORT. */
export function environmentName(key: SettingKey): string {
  return `ENTRESOL_${settingName(key).replaceAll('-', '_').toUpperCase()}`;
}

const keyByName: ReadonlyMap<string, SettingKey> = new Map(settingKeys.map((key) => [settingName(key), key]));

export function settingKeyOf(name: string): SettingKey | undefined {
  return keyByName.get(name);
}

export const settingNames: readonly string[] = [...keyByName.keys()];

/** The defaults, before the machine has its say. */
export function defaultSettings(): Settings {
  const entries = settingKeys.map((key) => [key, schema[key].default]);
  return Object.fromEntries(entries) as Settings;
}

/** Parses `value` as the setting's kind and stores it. Throws ValueError and changes nothing then. */
export function assignText<K extends SettingKey>(settings: Settings, key: K, value: string): void {
  settings[key] = schema[key].kind.parse(value);
}

/** Throws ValueError unless the setting holds a value that its kind accepts. */
export function checkSetting(settings: Settings, key: SettingKey): void {
  assignText({ ...settings }, key, formatSetting(settings, key));
}

/** The canonical text of one setting. */
export function formatSetting<K extends SettingKey>(settings: Settings, key: K): string {
  return schema[key].kind.format(settings[key]);
}

/**
 * The counters that INFO, stats and the metrics page sum: one SharedArrayBuffer, one row for each worker.
 *
 *   row w: | COUNTERS doubles (index: Counter) | COMMANDS x (calls, microseconds, rejected, failed)
 *          | COMMANDS x latency buckets (layout/latency-buckets) | slab classes (layout/class-counters) | padding |
 *   after the rows: | names of further error codes (error-names) | shared Int32 words (index: SharedWord), changed with Atomics only |
 *
 * The invariant: a row is written by its worker alone (plain adds, no atomics; a 64-bit aligned double never tears on
 * the platforms we run on) and read by anyone. A row survives the worker that wrote it, so totals never go back.
 */

import { CLASS_DOUBLES, ClassCounter } from './class-counters.js';
import { ERROR_NAMES_BYTES, ErrorNames } from './error-names.js';
import { LatencyBucket } from './latency-buckets.js';
import { SlabClass } from './superblock.js';

/** Indices of one row's plain counters. Gauges (connections, heldBytes) are set, the rest only grow. */
export const enum Counter {
  /** Connections open now (gauge). */
  connections = 0,
  connectionsAccepted = 1,
  /** Refused: maxclients, protected mode. */
  connectionsRejected = 2,
  connectionsIdleClosed = 3,
  connectionsOutputLimitClosed = 4,
  connectionsInputLimitClosed = 5,
  commands = 6,
  bytesIn = 7,
  bytesOut = 8,
  /** Key look-ups of reading commands. */
  hits = 9,
  misses = 10,
  errorReplies = 11,
  protocolErrors = 12,
  authFailures = 13,
  /** What the clients hold outside the store: see server/client-memory (gauge). */
  heldBytes = 14,
  turns = 15,
  /** Turns that handled no event. */
  idleTurns = 16,
  slowCommands = 17,
  /** Clients that wait for an answer of the control plane or are paused (gauge). */
  suspendedClients = 18,
  backgroundMicroseconds = 19,
  // memcached's own; the RESP side leaves them alone.
  cmdGet = 20,
  cmdSet = 21,
  cmdFlush = 22,
  cmdTouch = 23,
  cmdMeta = 24,
  getHits = 25,
  getMisses = 26,
  getExpired = 27,
  getFlushed = 28,
  deleteHits = 29,
  deleteMisses = 30,
  incrHits = 31,
  incrMisses = 32,
  decrHits = 33,
  decrMisses = 34,
  casHits = 35,
  casMisses = 36,
  casBadval = 37,
  touchHits = 38,
  touchMisses = 39,
  storeTooLarge = 40,
  storeNoMemory = 41,
  authCmds = 42,
  authErrors = 43,
  connectionYields = 44,
  datagrams = 45,
  /** Bytes that the two Lua interpreters hold (gauges): of single scripts, of functions. */
  luaScriptBytes = 46,
  luaFunctionBytes = 47,
  /** Error replies by code: protocol/resp/error-codes.ts says which; room for 16. */
  errorsByCode = 48,
  /** Lines for watching clients: written by this worker, sent to clients, skipped because a client reads too slowly. */
  logWritten = 64,
  logSent = 65,
  logSkipped = 66,
  /** Lines that were not even given to the control plane: too many at once. */
  logDropped = 67,
  /** This worker's part of SharedWord.watchers and the words behind it (gauges). */
  watchers = 68,
  /** Requests refused for their user's rights. */
  deniedCommands = 69,
  deniedKeys = 70,
  deniedChannels = 71,
  /** Clients that subscribe to something, clients that track, keys and prefixes that are tracked (gauges). */
  pubsubClients = 80,
  trackingClients = 81,
  trackedKeys = 82,
  trackedPrefixes = 83,
  /** Clients whose commands wait for the end of CLIENT PAUSE (gauge). */
  pausedClients = 84,
  /** Clients that wait in a blocking command (gauge). */
  blockedClients = 85,
  /** Of heldBytes what commands keep for their clients, as they count it; values on their way in that lie in the store (gauges). */
  clientHeapBytes = 86,
  clientParkedBytes = 87,
  /** What messages, tracking and waits take of the worker's heap, for whichever clients (gauge). */
  messageBytes = 88,
  /** While clients hold more than maxmemory-clients: what the one holds that is next to go (gauge). */
  largestClientBytes = 89,
  evictedClients = 90,
  /** Pairs of a tracked key and a client (gauge). */
  trackedItems = 91,
  /** Channels and shard channels that clients of this worker subscribe to (gauges). */
  pubsubChannels = 92,
  pubsubShardChannels = 93,
  /** Error replies with other codes: layout/error-names says which; ERROR_NAMES_MAX of them. */
  otherErrors = 96,
  COUNT = 144,
}

/** Words of one command's statistics in a row. */
export const enum CommandStat {
  calls = 0,
  microseconds = 1,
  /** Refused before it ran (arity, auth, out of memory ...). */
  rejected = 2,
  /** Ran and replied with an error. */
  failed = 3,
  WORDS = 4,
}

/** Words that any worker changes, with Atomics. */
export const enum SharedWord {
  /** Connections of all workers, for maxclients. */
  connections = 0,
  /** Last client id given out. */
  clientId = 1,
  /** Last slow-log entry id given out. */
  slowLogId = 2,
  /** memcached: clients that watch, and how many of them watch what. */
  watchers = 3,
  watchEvictions = 4,
  watchFetchers = 5,
  watchMutations = 6,
  watchConnections = 7,
  /** Lines given to watchers so far (memcached's gid). */
  logLines = 8,
  /** memcached: counting by key prefix is on; lru_crawler commands are answered. */
  prefixCounting = 9,
  lruCrawler = 10,
  lruCrawlerStarts = 11,
  /** Entries of ACL LOG made so far, all workers. */
  accessLogId = 12,
  /** A file of Redis is being written (one of Saving), since when, and how the last one ended. Times are Unix seconds. */
  saving = 13,
  savingSinceS = 14,
  savedAtS = 15,
  saveFailed = 16,
  /** Seconds that the last BGSAVE took + 1; 0 = there was none. */
  saveSeconds = 17,
  saves = 18,
  /** Changes of the store (modulo 2^32) when the last one began. */
  savedChanges = 19,
  /** How the last BGREWRITEAOF ended, and the seconds that it took + 1; 0 = there was none. */
  rewriteFailed = 20,
  rewriteSeconds = 21,
  /** Asked for while another file is written: a BGREWRITEAOF, a BGSAVE. */
  rewriteScheduled = 22,
  saveScheduled = 23,
  /** Connections to other servers that MIGRATE keeps. */
  migrationSockets = 24,
  COUNT = 25,
}

/** SharedWord.saving. */
export const enum Saving {
  NO = 0,
  BACKGROUND = 1,
  /** SAVE: everybody waits. */
  FOREGROUND = 2,
  /** BGREWRITEAOF. */
  REWRITE = 3,
}

/** SharedWord.watchers to watchConnections. */
export const WATCH_GAUGES = 5;

/** Commands that can be counted one by one: more than Redis and its modules name. */
export const COMMANDS_MAX = 512;

const LATENCY_AT = Counter.COUNT + COMMANDS_MAX * CommandStat.WORDS;
const LATENCY_DOUBLES = COMMANDS_MAX * LatencyBucket.COUNT;
const CLASSES_AT = LATENCY_AT + LATENCY_DOUBLES;
/** 1.4 MiB, of which the latencies of commands that are never called stay untouched pages. */
const ROW_DOUBLES = alignUp(CLASSES_AT + CLASS_DOUBLES, 16);

function alignUp(value: number, unit: number): number {
  return Math.ceil(value / unit) * unit;
}

/** Makes the block for `workerCount` workers. Plain data: hand the SharedArrayBuffer to the threads. */
export function createCounterBlock(workerCount: number): SharedArrayBuffer {
  return new SharedArrayBuffer(workerCount * ROW_DOUBLES * 8 + ERROR_NAMES_BYTES + SharedWord.COUNT * 4);
}

/** One worker's row. Hot path: `row.values[Counter.hits]++`. */
export class CounterRow {
  readonly values: Float64Array;
  /** Index commandId * CommandStat.WORDS + CommandStat.x. */
  readonly commandStats: Float64Array;
  /** Calls in each latency bucket: index commandId * LatencyBucket.COUNT + bucket. */
  readonly latencies: Float64Array;
  /** Index slab class * ClassCounter.WORDS + ClassCounter.x. */
  readonly classes: Float64Array;
  readonly shared: Int32Array;
  readonly errorNames: ErrorNames;

  constructor(block: SharedArrayBuffer, workerIndex: number) {
    const rowOffset = workerIndex * ROW_DOUBLES * 8;
    this.values = new Float64Array(block, rowOffset, Counter.COUNT);
    this.commandStats = new Float64Array(block, rowOffset + Counter.COUNT * 8, COMMANDS_MAX * CommandStat.WORDS);
    this.latencies = new Float64Array(block, rowOffset + LATENCY_AT * 8, LATENCY_DOUBLES);
    this.classes = new Float64Array(block, rowOffset + CLASSES_AT * 8, CLASS_DOUBLES);
    this.shared = new Int32Array(block, block.byteLength - SharedWord.COUNT * 4, SharedWord.COUNT);
    this.errorNames = namesIn(block);
  }
}

function namesIn(block: SharedArrayBuffer): ErrorNames {
  return new ErrorNames(block, block.byteLength - SharedWord.COUNT * 4 - ERROR_NAMES_BYTES);
}

/** Sums over all rows, for whoever reports; `reset` subtracts a baseline, so that rows keep their single writer. */
export class CounterTotals {
  readonly workerCount: number;
  readonly errorNames: ErrorNames;
  readonly #rows: CounterRow[] = [];
  readonly #shared: Int32Array;
  /** What a reset left behind; shared, so that a reset by one worker shows in all. Same shape as a row. */
  readonly #baseline: Float64Array;

  constructor(block: SharedArrayBuffer, baseline: SharedArrayBuffer) {
    this.workerCount = Math.floor((block.byteLength - SharedWord.COUNT * 4 - ERROR_NAMES_BYTES) / (ROW_DOUBLES * 8));
    this.errorNames = namesIn(block);
    for (let worker = 0; worker < this.workerCount; worker++) this.#rows.push(new CounterRow(block, worker));
    this.#shared = new Int32Array(block, block.byteLength - SharedWord.COUNT * 4, SharedWord.COUNT);
    this.#baseline = new Float64Array(baseline);
  }

  /** Sum of one counter over the workers, since the last reset (gauges: now). */
  total(counter: Counter): number {
    let sum = -this.#baseline[counter];
    for (const row of this.#rows) sum += row.values[counter];
    return sum;
  }

  /** One worker's own counter since it started (resets do not touch it). */
  ofWorker(worker: number, counter: Counter): number {
    return this.#rows[worker].values[counter];
  }

  commandTotal(commandId: number, stat: CommandStat): number {
    const index = commandId * CommandStat.WORDS + stat;
    let sum = -this.#baseline[Counter.COUNT + index];
    for (const row of this.#rows) sum += row.commandStats[index];
    return sum;
  }

  /** Calls of a command in each latency bucket. */
  latencyTotals(commandId: number): Float64Array {
    const first = commandId * LatencyBucket.COUNT;
    const counts = new Float64Array(LatencyBucket.COUNT);
    for (let i = 0; i < LatencyBucket.COUNT; i++) {
      counts[i] = -this.#baseline[LATENCY_AT + first + i];
      for (const row of this.#rows) counts[i] += row.latencies[first + i];
    }
    return counts;
  }

  /** Of one slab class. */
  classTotal(slabClass: number, counter: ClassCounter): number {
    const index = slabClass * ClassCounter.WORDS + counter;
    let sum = -this.#baseline[CLASSES_AT + index];
    for (const row of this.#rows) sum += row.classes[index];
    return sum;
  }

  /** Of all slab classes, and of what lies in none. */
  classSum(counter: ClassCounter): number {
    let sum = 0;
    for (let slabClass = 0; slabClass <= SlabClass.MAX; slabClass++) sum += this.classTotal(slabClass, counter);
    return sum;
  }

  /** Seconds since the last use of the item that a class evicted last; 0 = it has evicted none since the last reset. */
  lastEvictedIdleS(slabClass: number): number {
    const index = slabClass * ClassCounter.WORDS;
    let latestMs = this.#baseline[CLASSES_AT + index + ClassCounter.lastEvictedAtMs];
    let idleS = 0;
    for (const { classes } of this.#rows) {
      if (classes[index + ClassCounter.lastEvictedAtMs] <= latestMs) continue;
      latestMs = classes[index + ClassCounter.lastEvictedAtMs];
      idleS = classes[index + ClassCounter.lastEvictedIdleS];
    }
    return idleS;
  }

  sharedWord(word: SharedWord): number {
    return Atomics.load(this.#shared, word);
  }

  /** CONFIG RESETSTAT, stats reset: everything but the gauges starts from zero. */
  reset(): void {
    for (let counter = 0; counter < Counter.COUNT; counter++) {
      if (isGauge(counter)) continue;
      let sum = 0;
      for (const row of this.#rows) sum += row.values[counter];
      this.#baseline[counter] = sum;
    }
    for (let index = 0; index < COMMANDS_MAX * CommandStat.WORDS; index++) {
      let sum = 0;
      for (const row of this.#rows) sum += row.commandStats[index];
      this.#baseline[Counter.COUNT + index] = sum;
    }
    for (let index = 0; index < LATENCY_DOUBLES; index++) {
      let sum = 0;
      for (const row of this.#rows) sum += row.latencies[index];
      if (sum !== this.#baseline[LATENCY_AT + index]) this.#baseline[LATENCY_AT + index] = sum;
    }
    this.#resetClasses();
  }

  #resetClasses(): void {
    for (let index = 0; index < CLASS_DOUBLES; index++) {
      const isTime = index % ClassCounter.WORDS === ClassCounter.lastEvictedAtMs;
      let value = 0;
      for (const { classes } of this.#rows) value = isTime ? Math.max(value, classes[index]) : value + classes[index];
      this.#baseline[CLASSES_AT + index] = value;
    }
  }
}

/** Shared baseline for `CounterTotals`, all zero. */
export function createCounterBaseline(): SharedArrayBuffer {
  return new SharedArrayBuffer(ROW_DOUBLES * 8);
}

/** They belong to the worker that lives: a new one starts at 0, and a reset leaves them. */
export const GAUGES: readonly Counter[] = [
  Counter.connections,
  Counter.heldBytes,
  Counter.suspendedClients,
  Counter.luaScriptBytes,
  Counter.luaFunctionBytes,
  Counter.blockedClients,
  Counter.pausedClients,
  Counter.pubsubClients,
  Counter.pubsubChannels,
  Counter.pubsubShardChannels,
  Counter.trackingClients,
  Counter.trackedKeys,
  Counter.trackedItems,
  Counter.trackedPrefixes,
  Counter.clientHeapBytes,
  Counter.clientParkedBytes,
  Counter.messageBytes,
  Counter.largestClientBytes,
];

function isGauge(counter: Counter): boolean {
  if (counter >= Counter.watchers && counter < Counter.watchers + WATCH_GAUGES) return true;
  return GAUGES.includes(counter);
}

/**
 * What command handlers may ask of the server around them: other workers, the control plane, the two logs.
 *
 * Handlers see this interface only; the server implements it (src/server/worker-control.ts), the embedded library does
 * without. The invariant: a question that other threads must answer never blocks the worker. The asking client is
 * suspended (client.suspended = true: the driver stops feeding it after the current command, the server stops reading
 * it) and `answer` runs in a later turn, with the reply writer positioned on that client's output. A client that is gone
 * by then gets no call.
 */
import type { Settings } from '../config/index.js';
import type { AccessEntry, AccessEvent } from './acl/access.js';

/** One connection as CLIENT LIST and `stats conns` show it. */
export interface ClientRow {
  readonly worker: number;
  readonly id: number;
  readonly address: string;
  readonly localAddress: string;
  readonly fd: number;
  readonly name: string;
  readonly kind: 'redis' | 'memcached';
  readonly user: string;
  readonly ageSeconds: number;
  readonly idleSeconds: number;
  readonly db: number;
  /** Letters as in Redis: N normal, x in MULTI, b blocked, c closing, P pub/sub, U unix socket ... */
  readonly flags: string;
  /** Commands queued by MULTI, -1 outside. */
  readonly multi: number;
  readonly watch: number;
  /** Bytes of the request that waits for an answer. */
  readonly queryBytes: number;
  /** An incomplete request: its bytes, and the memory they lie in. */
  readonly inputBytes: number;
  readonly inputMemoryBytes: number;
  /** A value on its way straight into the store. */
  readonly parkedBytes: number;
  /** What MULTI has queued. */
  readonly transactionBytes: number;
  /** Channels, patterns and shard channels that it subscribes to; absent: none. */
  readonly subscriptions?: number;
  readonly patterns?: number;
  readonly shardSubscriptions?: number;
  /** Client that gets its invalidations; 0 = itself, absent or -1: it does not track. */
  readonly redirect?: number;
  readonly respVersion: number;
  readonly outputQueuedBytes: number;
  /** Pieces of what is queued, and the memory of those that are copies (others are sent out of the store). */
  readonly outputChunks: number;
  readonly outputMemoryBytes: number;
  /** All memory that is the client's. */
  readonly memoryBytes: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly commands: number;
  readonly lastCommand: string;
  readonly libraryName: string;
  readonly libraryVersion: string;
  /** memcached's name for what the connection does. */
  readonly state?: string;
}

/** Which clients: every field given must match. */
export interface ClientFilter {
  readonly ids?: readonly number[];
  readonly notIds?: readonly number[];
  readonly address?: string;
  readonly localAddress?: string;
  readonly user?: string;
  readonly type?: string;
  readonly name?: string;
  readonly maxAgeSeconds?: number;
  /** Skip the client that asks (its id). */
  readonly exceptId?: number;
}

export interface SlowLogEntry {
  readonly id: number;
  readonly unixSeconds: number;
  readonly microseconds: number;
  /** Arguments as bytes, shortened as Redis does (32 arguments, 128 bytes each). */
  readonly argv: readonly Uint8Array[];
  readonly address: string;
  readonly clientName: string;
}

export interface LatencySample {
  readonly unixSeconds: number;
  readonly milliseconds: number;
}

export interface LatencyEvent {
  readonly event: string;
  /** Oldest first, at most 160. */
  readonly samples: readonly LatencySample[];
  readonly maxMilliseconds: number;
}

/** What `stats detail dump` shows of one key prefix. */
export interface PrefixCounts {
  readonly prefix: string;
  gets: number;
  hits: number;
  sets: number;
  deletes: number;
}

/** A line for clients that watch; `kind` is one of commands/memcached/watch.ts. */
export interface WatchLine {
  readonly kind: number;
  readonly text: string;
}

/** Questions that every worker answers about itself: topic -> [question, answer of one worker]. */
export interface WorkerTopics {
  /** For ACL LOG: one of this worker's own clients. */
  clientDescribe: [question: { readonly conn: number }, answer: ClientRow];
  /** Closes the clients whose users are no more; those that wait for what they may no longer have get an error. */
  usersChanged: [question: null, answer: true];
  clientList: [question: ClientFilter, answer: readonly ClientRow[]];
  /** Answer: how many were killed. */
  clientKill: [question: ClientFilter, answer: number];
  /** PUBSUB CHANNELS and SHARDCHANNELS: names that clients of the worker subscribe to. Byte strings. */
  channels: [question: { readonly pattern: string | null; readonly isShard: boolean }, answer: readonly string[]];
  /** Answer: the worker's participant number if the client of that id is its, else -1. */
  clientSeat: [question: { readonly id: number }, answer: number];
  /** CLIENT UNBLOCK. Answer: whether this worker's client of that id was blocked. */
  clientUnblock: [question: { readonly id: number; readonly withError: boolean }, answer: boolean];
  /** Commands of all (or only writing) clients wait until that moment; `untilMs` 0 = unpause. Wall-clock milliseconds. */
  clientPause: [question: { readonly untilMs: number; readonly writesOnly: boolean }, answer: true];
  slowLogGet: [question: { readonly count: number }, answer: readonly SlowLogEntry[]];
  slowLogLength: [question: null, answer: number];
  slowLogReset: [question: null, answer: true];
  /** ACL LOG: the entries changed last first. */
  accessLogGet: [question: null, answer: readonly AccessEntry[]];
  accessLogReset: [question: null, answer: true];
  latencyGet: [question: { readonly event: string }, answer: readonly LatencyEvent[]];
  /** Gets, hits, sets and deletes by key prefix. */
  memcachedPrefixes: [question: null, answer: readonly PrefixCounts[]];
  memcachedPrefixesReset: [question: null, answer: true];
  /** Empty list: all. Answer: the events that there were. */
  latencyReset: [question: { readonly events: readonly string[] }, answer: readonly string[]];
}

/** One question of WorkerTopics. */
export interface WorkerQuestion {
  readonly topic: keyof WorkerTopics;
  readonly question: unknown;
}

/** Questions that the main thread alone answers. Answers: null = done, text = the error (without the RESP '-'). */
export interface MainTopics {
  /** CONFIG SET: all or nothing; every worker has the new values before the answer comes. Names are Redis's or ours. */
  configSet: [question: readonly (readonly [name: string, value: string])[], answer: string | null];
  configRewrite: [question: null, answer: string | null];
  /** ACL SETUSER, DELUSER, LOAD, SAVE: every worker has the change before the answer comes. Texts are byte strings. */
  userSet: [question: { readonly name: string; readonly rules: readonly string[] }, answer: string | null];
  /** Answer: how many there were. */
  usersRemove: [question: readonly string[], answer: number];
  usersLoad: [question: null, answer: string | null];
  usersSave: [question: null, answer: string | null];
  /** Answers only when it fails: otherwise the connection closes. `saves` null: if there is a schedule of saves. */
  shutdown: [
    question: { readonly abort: boolean; readonly saves: boolean | null; readonly isForced: boolean },
    answer: string | null,
  ];
  migrate: [question: MigrateQuestion, answer: MigrateAnswer];
}

/** Keys for another server. */
export interface MigrateQuestion {
  readonly host: string;
  readonly port: string;
  readonly db: number;
  /** Of silence. */
  readonly timeoutMs: number;
  /** Words behind AUTH; null = none is sent. */
  readonly auth: readonly Uint8Array[] | null;
  /** RESTORE commands as they are sent, and how many they are. */
  readonly requests: Uint8Array;
  readonly count: number;
}

export interface MigrateAnswer {
  /** Which of the commands have succeeded, as far as their replies have come. */
  readonly acknowledged: readonly boolean[];
  /** What the client is told; '' = all have succeeded. */
  readonly error: string;
}

/** The client object as far as the control plane needs it. */
export interface Asker {
  readonly id: number;
  readonly conn: number;
  suspended: boolean;
}

export interface Control {
  /** The settings as they are now; CONFIG SET changes the object in place. */
  readonly settings: Readonly<Settings>;
  readonly workerIndex: number;
  readonly workerCount: number;
  /** Wall-clock milliseconds when the server (not this worker) started. */
  readonly startedAtMs: number;

  /** Asks every worker (this one too); `answers` has one element for each worker that lives. */
  askWorkers<T extends keyof WorkerTopics>(
    asker: Asker,
    topic: T,
    question: WorkerTopics[T][0],
    answer: (answers: readonly WorkerTopics[T][1][]) => void,
  ): void;
  /** Asks every worker but this one several questions; `answers` has, for each of them, one element for each worker that lives. */
  askOthers(
    asker: Asker,
    questions: readonly WorkerQuestion[],
    answer: (answers: readonly (readonly unknown[])[]) => void,
  ): void;
  /** This worker's own answer, at once: for EXEC. */
  askHere<T extends keyof WorkerTopics>(asker: Asker, topic: T, question: WorkerTopics[T][0]): WorkerTopics[T][1];
  /** CONFIG SET inside EXEC: this worker has the values at once, the others before the reply leaves. Null = done, else the error. */
  setConfigHere(asker: Asker, pairs: MainTopics['configSet'][0]): string | null;
  askMain<T extends keyof MainTopics>(
    asker: Asker,
    topic: T,
    question: MainTopics[T][0],
    answer: (answer: MainTopics[T][1]) => void,
  ): void;

  /** Takes over a topic that the server itself knows nothing of. */
  provide<T extends keyof WorkerTopics>(topic: T, answer: (question: WorkerTopics[T][0]) => WorkerTopics[T][1]): void;

  /** BGSAVE, BGREWRITEAOF. The caller has set SharedWord.saving; whoever saves sets it back. */
  startSave(): void;

  // ---- memcached's watch
  /** Gives a line to the watching clients of all workers, at the end of the turn. */
  publishLine(line: WatchLine): void;
  /** What to do with the lines of all workers. */
  onLines(listener: (lines: readonly WatchLine[]) => void): void;
  /** Runs `write` with the output on that client; not for a client that is gone. */
  writeTo(asker: Asker, write: () => void): void;
  /** Bytes written to the client that its socket has not taken. */
  unsentBytes(asker: Asker): number;
  /** The client's descriptor, as `stats conns` numbers connections. */
  descriptorOf(asker: Asker): number;

  /**
   * CLIENT PAUSE ... WRITE is in force: writing commands must wait. The driver stops before such a command, calls
   * waitForUnpause and consumes nothing of it; it comes again when the pause is over. (A pause of all commands is the
   * server's own business: it stops feeding.)
   */
  readonly isWritePaused: boolean;
  waitForUnpause(asker: Asker): void;
  /** The same for a request that must wait for a key which a long one reads: it comes again a millisecond later. */
  waitForHold(asker: Asker): void;

  /**
   * A script of this worker has run for longer than the limit: one turn for everybody else, who get BUSY. Called again and again; true =
   * the server is to stop. `endServing` before the script replies.
   */
  serveDuringScript(): boolean;
  endServing(): void;

  /** True when a command that took so long belongs in the slow log. */
  isSlow(microseconds: number): boolean;
  recordSlow(microseconds: number, argv: readonly Uint8Array[], address: string, clientName: string): void;
  /** A request was refused for its user's rights, or a login failed: for ACL LOG. */
  recordAccess(asker: Asker, event: AccessEvent): void;
  /** A line for the server's log (redis.log). */
  log(level: 'debug' | 'verbose' | 'notice' | 'warning', message: string): void;
  /** Keeps the sample if the latency monitor is on and it is above the threshold. */
  recordLatency(event: string, milliseconds: number): void;
}

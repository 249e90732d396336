/**
 * The declaration of a command: everything dispatch, COMMAND (DOCS), ACL categories and key extraction know about it.
 *
 * A family file exports `readonly CommandSpec[]`; table.ts compiles them. A handler runs with its keys locked, never locks,
 * never suspends halfway, and writes exactly one reply. Invariant: `keys` names every argument that is a key, because
 * the executor locks exactly those.
 *
 *   export const strings: readonly CommandSpec[] = [
 *     {
 *       name: 'get', arity: 2, flags: Flag.READONLY | Flag.FAST, categories: Category.STRING,
 *       keys: [keyAt(1, KeyUse.RO | KeyUse.ACCESS)],
 *       since: '1.0.0', group: 'string', summary: '...', complexity: 'O(1)',
 *       args: [keyArg('key')], run: get,
 *     },
 *   ];
 */
import type { ArgumentSpec } from './arguments.js';
import type { Context } from './context.js';

/** Behaviour flags, in Redis's terms (COMMAND INFO shows them in lower case). */
export const enum Flag {
  WRITE = 1 << 0,
  READONLY = 1 << 1,
  /** Refused when memory is full under the policy. */
  DENYOOM = 1 << 2,
  ADMIN = 1 << 3,
  PUBSUB = 1 << 4,
  NOSCRIPT = 1 << 5,
  BLOCKING = 1 << 6,
  LOADING = 1 << 7,
  STALE = 1 << 8,
  SKIP_MONITOR = 1 << 9,
  SKIP_SLOWLOG = 1 << 10,
  ASKING = 1 << 11,
  /** O(1) or O(log n). */
  FAST = 1 << 12,
  /** Works before authentication. */
  NO_AUTH = 1 << 13,
  MAY_REPLICATE = 1 << 14,
  NO_MULTI = 1 << 15,
  MOVABLE_KEYS = 1 << 16,
  ALLOW_BUSY = 1 << 17,
  NO_MANDATORY_KEYS = 1 << 18,
  PROTECTED = 1 << 19,
  NO_ASYNC_LOADING = 1 << 20,
  /** Ours: runs at once inside MULTI instead of being queued (EXEC, DISCARD, WATCH ...). Not shown. */
  NOT_QUEUED = 1 << 21,
  /** Ours: changes the database of later commands, so that EXEC cannot know their keys beforehand. Not shown. */
  CHANGES_DB = 1 << 22,
  /** Ours: walks the key space, taking locks itself: EXEC runs it under the gate. Not shown. */
  SCANS = 1 << 23,
  /** Ours: asks all workers. Where there are several, EXEC does so before it runs, and scripts may not. Not shown. */
  ASKS = 1 << 24,
}

/** ACL categories. The executor adds @read, @write, @fast, @slow, @admin, @dangerous and so on from the flags, as Redis does. */
export const enum Category {
  NONE = 0,
  KEYSPACE = 1 << 0,
  READ = 1 << 1,
  WRITE = 1 << 2,
  SET = 1 << 3,
  SORTEDSET = 1 << 4,
  LIST = 1 << 5,
  HASH = 1 << 6,
  STRING = 1 << 7,
  BITMAP = 1 << 8,
  HYPERLOGLOG = 1 << 9,
  GEO = 1 << 10,
  STREAM = 1 << 11,
  PUBSUB = 1 << 12,
  ADMIN = 1 << 13,
  FAST = 1 << 14,
  SLOW = 1 << 15,
  BLOCKING = 1 << 16,
  DANGEROUS = 1 << 17,
  CONNECTION = 1 << 18,
  TRANSACTION = 1 << 19,
  SCRIPTING = 1 << 20,
}

/** What a command does to the keys of one KeySpec. */
export const enum KeyUse {
  /** Read-only, read-write, overwrite without reading, remove: exactly one of the four. */
  RO = 1 << 0,
  RW = 1 << 1,
  OW = 1 << 2,
  RM = 1 << 3,
  /** Returns or uses the value; changes it; adds to it; deletes from it. */
  ACCESS = 1 << 4,
  UPDATE = 1 << 5,
  INSERT = 1 << 6,
  DELETE = 1 << 7,
  NOT_KEY = 1 << 8,
  INCOMPLETE = 1 << 9,
  VARIABLE_FLAGS = 1 << 10,
}

/** Where keys stand among the arguments: where to begin, and how many there are from there. */
export interface KeySpec {
  readonly use: number;
  readonly begin:
    | { readonly index: number }
    /** Behind this word, searched from argument `from` on (negative: from the end backwards). */
    | { readonly keyword: string; readonly from: number }
    /** Nobody can say before it runs (SORT's BY and GET), or `findKeys` alone can. */
    | { readonly isUnknown: true };
  readonly find: /** `last` relative to the begin (negative: to the end of the arguments); `limit` n: only the first 1/n of the rest. */
    | { readonly last: number; readonly step: number; readonly limit: number }
    /** The number of keys stands at begin + countAt, the first key at begin + firstAt. */
    | { readonly countAt: number; readonly firstAt: number; readonly step: number }
    | { readonly isUnknown: true };
}

/** One key, argument `index`. */
export function keyAt(index: number, use: number): KeySpec {
  return { use, begin: { index }, find: { last: 0, step: 1, limit: 0 } };
}

/** Keys from argument `index` to the end (`last` -1, -2 = all but one ...) or to argument `index + last`, every `step`-th. */
export function keysFrom(index: number, use: number, last = -1, step = 1): KeySpec {
  return { use, begin: { index }, find: { last, step, limit: 0 } };
}

/** The number of keys is argument `index`, the keys follow. */
export function keysCounted(index: number, use: number): KeySpec {
  return { use, begin: { index }, find: { countAt: 0, firstAt: 1, step: 1 } };
}

/** The key behind a word, which is searched from argument `from` on. */
export function keyBehind(keyword: string, from: number, use: number): KeySpec {
  return { use, begin: { keyword, from }, find: { last: 0, step: 1, limit: 0 } };
}

/** Keys that only the running command knows. */
export function keysUnknown(use: number): KeySpec {
  return { use, begin: { isUnknown: true }, find: { isUnknown: true } };
}

export type CommandGroup =
  | 'generic'
  | 'string'
  | 'bitmap'
  | 'list'
  | 'set'
  | 'sorted-set'
  | 'hash'
  | 'stream'
  | 'hyperloglog'
  | 'geo'
  | 'pubsub'
  | 'transactions'
  | 'connection'
  | 'server'
  | 'scripting'
  | 'cluster';

export interface CommandSpec {
  /** Lower case; of a subcommand only its own word. */
  readonly name: string;
  /** Number of words, command name included; negative: at least so many. A subcommand counts its container's name too. */
  readonly arity: number;
  readonly flags: number;
  readonly categories: number;
  readonly keys?: readonly KeySpec[];
  /** Keys that no KeySpec can say (SORT ... STORE): calls `add` with each key's argument index. Replaces `keys` in extraction. */
  readonly findKeys?: (context: Context, add: (argument: number, use: number) => void) => void;

  /** For KeyUse.VARIABLE_FLAGS: what this very request does to its keys (SET with and without GET). */
  readonly variableUse?: (context: Context) => number;

  /** For Flag.MAY_REPLICATE: false when this very request will not (a script that says so). */
  readonly mayReplicate?: (context: Context) => boolean;

  readonly since: string;
  readonly group: CommandGroup;
  readonly summary: string;
  readonly complexity: string;
  readonly args?: readonly ArgumentSpec[];
  /** COMMAND DOCS: 'deprecated' with what replaces it and since when. */
  readonly deprecated?: { readonly since: string; readonly replacedBy: string };
  readonly history?: readonly (readonly [version: string, change: string])[];
  /** COMMAND INFO tips, such as 'nondeterministic_output'. */
  readonly tips?: readonly string[];

  readonly subcommands?: readonly CommandSpec[];
  /** Runs alone, under the store gate: keys unknown beforehand, or the whole store. */
  readonly exclusive?: true;
  /** True when this very request must run alone: its further keys follow from what it reads (SORT's BY and GET). */
  readonly runsAlone?: (context: Context) => boolean;
  /**
   * Argument that may be received straight into a staged item when it is large. Then the driver has staged it for key
   * argument 1 (`stage` is not called, context.largeStaged is true), and `run` must not look at that argument.
   */
  readonly largeArgument?: number;
  /** Further locks, for keys in another database (MOVE, COPY): calls context.keyspace.lockSet.add. */
  readonly extraLocks?: (context: Context) => void;
  /**
   * What a call makes of its one key, word 1, follows from what the key had, the words and the time alone: the effect log may keep the command
   * instead of the key's state.
   */
  readonly repeatable?: true | ((context: Context) => boolean);
  /** Every call is timed unless FAST or this is false; FAST ones are sampled. */
  readonly timed?: false;

  /**
   * Before the locks: allocate and fill. False = an error has been written; `run` is not called. An item that `run` does
   * not commit is given back by the executor.
   */
  readonly stage?: (context: Context) => boolean;
  /** With Flag.ASKS, when `run` does more than that: asks what `run` will. */
  readonly asks?: (context: Context) => void;
  /** Absent only on a container without a form of its own (CONFIG). */
  readonly run?: (context: Context) => void;
}

/**
 * What the main thread and a worker say to each other: one MessagePort per worker, plain data only.
 *
 * The worker reads its port after a wake-up of its pump, so whoever posts to a worker wakes it (WorkerThread.post). The
 * invariant: every ask gets exactly one answer or the death of the asked worker, and every reply belongs to one ask.
 */
import type { MessagePort } from 'node:worker_threads';
import type { UserChange } from '../commands/acl/users.js';
import type { MainTopics, WatchLine, WorkerQuestion } from '../commands/control.js';
import type { LogLevel, Settings } from '../config/index.js';

/** Kinds of listeners: the pump reports the kind with each connection. */
export const enum ListenerKind {
  REDIS = 0,
  MEMCACHED = 1,
  REDIS_UNIX = 2,
  MEMCACHED_UDP = 3,
  MEMCACHED_UNIX = 4,
}

/** What a worker's end of the control plane starts with. */
export interface ControlStart {
  readonly workerIndex: number;
  readonly workerCount: number;
  readonly settings: Settings;
  readonly startedAtMs: number;
  /** All users at this moment; see Users. */
  readonly users: UserChange;
  readonly port: MessagePort;
}

export type Level = Exclude<LogLevel, 'nothing'>;

export type ToWorker =
  | { readonly type: 'ask'; readonly askId: number; readonly questions: readonly WorkerQuestion[] }
  | { readonly type: 'reply'; readonly askId: number; readonly reply: unknown }
  | { readonly type: 'settings'; readonly askId: number; readonly changes: Partial<Settings> }
  | { readonly type: 'users'; readonly askId: number; readonly change: UserChange }
  | { readonly type: 'lines'; readonly from: number; readonly lines: readonly WatchLine[] }
  | { readonly type: 'stop'; readonly graceMs: number };

/** An error as plain data, with what the command line shows of it. */
export interface ErrorReport {
  readonly message: string;
  readonly code?: string;
  readonly errno?: number;
  readonly syscall?: string;
  readonly path?: string;
  readonly stack?: string;
}

export type ToMain =
  /** Listeners answer: the first turn of the loop is done. */
  | { readonly type: 'ready'; readonly wakeFd: number }
  | { readonly type: 'failed'; readonly error: ErrorReport }
  | { readonly type: 'log'; readonly level: Level; readonly message: string }
  | { readonly type: 'answer'; readonly askId: number; readonly answer: unknown }
  | { readonly type: 'lines'; readonly lines: readonly WatchLine[] }
  /** BGSAVE or BGREWRITEAOF, as SharedWord.saving says. */
  | { readonly type: 'save' }
  | {
      readonly type: 'askWorkers';
      readonly askId: number;
      readonly questions: readonly WorkerQuestion[];
      /** Not the worker that asks. */
      readonly othersOnly: boolean;
    }
  | { readonly type: 'askMain'; readonly askId: number; readonly topic: keyof MainTopics; readonly question: unknown };

export function reportOf(error: unknown): ErrorReport {
  if (!(error instanceof Error)) return { message: String(error) };
  const { code, errno, syscall, path } = error as Partial<ErrorReport>;
  return { message: error.message, code, errno, syscall, path, stack: error.stack };
}

/** The error again on the other side, with its code. */
export function errorOf(report: ErrorReport): Error {
  const error = new Error(report.message);
  for (const [name, value] of Object.entries(report)) {
    if (value !== undefined && name !== 'message') Object.assign(error, { [name]: value });
  }
  return error;
}

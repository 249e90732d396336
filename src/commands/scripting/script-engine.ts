/**
 * One Lua interpreter with all that connects it to the commands: an executor of its own, whose replies go back into the script.
 *
 * A worker has two: single scripts and libraries of functions live apart. The gate is held while a script runs (its command is
 * exclusive), so its commands run without further locks. Invariant: at most one script runs in a worker at a time, and `run` of a
 * finished script means nothing.
 */
import { Bytes, NO_ARENA } from '../../layout/bytes.js';
import { Counter } from '../../layout/counters.js';
import { ScriptWord } from '../../layout/shared-scripts.js';
import { addon } from '../../native/addon.js';
import { EngineWord, type LuaEngine, LuaOperation, LuaReplyFlag, openLua } from '../../native/lua.js';
import { Output } from '../../protocol/output.js';
import { Reply } from '../../protocol/resp/reply.js';
import { decide, Verdict } from '../acl/check.js';
import { Client } from '../clients/client.js';
import { REDIS_VERSION } from '../clients/connection.js';
import type { Context } from '../context.js';
import { countErrors } from '../error-counts.js';
import { Executor } from '../executor.js';
import { byteString } from '../numbers.js';
import { deniesWrites } from '../persistence/disk-error.js';
import type { Scripting } from './scripting.js';
import { mayWrite, ScriptFlag } from './shebang.js';

/** Memory of one interpreter: beyond it scripts get 'not enough memory'. */
const LUA_BYTES_MAX = 1024 * 1024 * 1024;
const LOG_LEVELS = ['debug', 'verbose', 'notice', 'warning'] as const;

/** What the running script may do and has done: one object an engine, set anew for each run. */
export interface ScriptRun {
  readonly outer: Executor;
  readonly isFunction: boolean;
  /** It may call DEBUG: a test wants replies of all types. */
  mayDebug: boolean;
  isReadOnly: boolean;
  hasWritten: boolean;
  /** Memory was over the limit when the script began, and it did not say that it may run then. */
  isShortOfMemory: boolean;
  /** A save in the background has failed. */
  isDeniedWrites: boolean;
  /** Monotonic milliseconds. */
  startedAtMs: number;
}

export class ScriptEngine {
  readonly lua: LuaEngine;
  readonly run: ScriptRun;

  private readonly scripting: Scripting;
  private readonly executor: Executor;
  private readonly client: Client;
  private readonly output: Output;
  private readonly reply: Reply;
  private readonly words: Int32Array;
  private data: Bytes;
  /** Copies of arguments that do not lie in an arena (queued by MULTI, inline). */
  private copies: Bytes | null = null;
  /** A part of the script's reply has gone to the client already. */
  private hasFlushed = false;
  private runs = 0;

  constructor(scripting: Scripting, outer: Executor, forFunctions: boolean) {
    this.scripting = scripting;
    this.run = {
      outer,
      isFunction: forFunctions,
      mayDebug: false,
      isReadOnly: false,
      hasWritten: false,
      isShortOfMemory: false,
      isDeniedWrites: false,
      startedAtMs: 0,
    };
    this.lua = openLua({
      forFunctions,
      bytesMax: LUA_BYTES_MAX,
      version: REDIS_VERSION,
      call: () => this.operate(),
      interrupt: () => this.scripting.interrupt(this),
      flush: () => this.flush(),
    });
    this.words = new Int32Array(addon.wrapArena(this.lua.wordsArena));
    this.data = new Bytes(addon.wrapArena(this.lua.dataArena), this.lua.dataArena);
    const replyBytes = new Bytes(addon.wrapArena(this.lua.replyArena), this.lua.replyArena);
    this.output = new Output(replyBytes, new Int32Array(8), () => this.lua.spill(this.output.position), false);
    this.reply = new Reply(this.output);
    this.executor = new Executor(outer.environment, outer.table, this.reply);
    this.executor.context.inTransaction = true;
    this.client = new Client(0, -1, '', outer.environment.users.default);
    this.client.authenticated = true;
  }

  /** Runs script or function `id` with the request's keys and arguments (from word 3 on), and replies. */
  execute(context: Context, id: number, keyCount: number, flags: number, isReadOnly: boolean): void {
    const { run, client } = this;
    run.mayDebug = this.scripting.shared.get(ScriptWord.allowsDebug) !== 0;
    run.isReadOnly = isReadOnly || !mayWrite(flags);
    run.hasWritten = false;
    const allowsOom = (flags & (ScriptFlag.COMPATIBLE | ScriptFlag.ALLOW_OOM)) === ScriptFlag.ALLOW_OOM;
    run.isShortOfMemory = !allowsOom && isOutOfMemory(context);
    run.isDeniedWrites = deniesWrites(context.environment);
    run.startedAtMs = addon.monotonicMs();
    client.db = context.client.db;
    // The script may do what its caller may.
    client.user = context.client.user;
    client.unrestrictedAt = context.client.unrestrictedAt;
    client.noTouch = context.client.noTouch;
    const { pool } = context.keyspace;
    pool.ignoresLimit = allowsOom;
    try {
      const bytes = this.enter(context, id, keyCount);
      if ((this.runs++ & PUBLISH_MASK) === 0) this.publishMemory();
      this.scripting.replies();
      this.finish(context.reply, bytes);
    } catch (error) {
      this.scripting.replies();
      throw error;
    } finally {
      pool.ignoresLimit = false;
    }
  }

  private publishMemory(): void {
    const counter = this.run.isFunction ? Counter.luaFunctionBytes : Counter.luaScriptBytes;
    this.executor.environment.counters.values[counter] = this.lua.memory();
  }

  private enter(context: Context, id: number, keyCount: number): number {
    const argumentCount = context.argc - 3 - keyCount;
    const limitMs = context.environment.settings.busyReplyThreshold;
    const resp = context.reply.protocol;
    if (context.input.arena !== NO_ARENA) {
      const { args, first, input } = context;
      return this.lua.run(id, args, first + 6, keyCount, argumentCount, input.arena, resp, limitMs);
    }
    const pairs = this.copyArguments(context, 3);
    return this.lua.run(id, pairs, 0, keyCount, argumentCount, this.copies!.arena, resp, limitMs);
  }

  /** The script's reply, or what is left of it after `flush`. */
  private finish(reply: Reply, bytes: number): void {
    const data = this.currentData();
    const isError = data.u8[0] === 0x2d && bytes > 0 && !this.hasFlushed;
    this.hasFlushed = false;
    if (!isError) return reply.output.range(data, 0, bytes);
    const text = byteString(data, 1, bytes - 3);
    if ((this.words[EngineWord.replyFlags] & LuaReplyFlag.IS_COUNTED) === 0) return reply.error(text);
    // The driver counts every error that goes out; this one has been counted already.
    this.executor.environment.counters.values[Counter.errorReplies]--;
    reply.errorCounted(text);
  }

  /** Errors of a script's commands count where they come up, whatever the script makes of them. */
  private countErrors(count: number): void {
    const { counters } = this.executor.environment;
    counters.values[Counter.errorReplies] += count;
    countErrors(counters, this.reply);
  }

  private flush(): number {
    this.hasFlushed = true;
    this.scripting.replies();
    this.run.outer.context.reply.output.range(this.currentData(), 0, this.words[EngineWord.flushed]);
    return 0;
  }

  /** The data arena moves when it grows. */
  private currentData(): Bytes {
    const arena = this.words[EngineWord.dataArena];
    if (this.data.arena !== arena) this.data = new Bytes(addon.wrapArena(arena), arena);
    return this.data;
  }

  /** What the script asks for. */
  private operate(): number {
    const operation = this.words[EngineWord.operation];
    const data = this.currentData();
    if (operation === LuaOperation.LOG) return this.log(data);
    const { context } = this.executor;
    context.bind(this.client, data, this.words, EngineWord.ARGUMENTS, this.words[EngineWord.count]);
    if (operation === LuaOperation.MAY_CALL) return this.mayCall();
    const errorsBefore = this.reply.errorCount;
    this.reply.protocol = this.words[EngineWord.scriptResp];
    this.client.protocol = this.reply.protocol;
    this.output.restart();
    this.executor.executeInScript(this.run);
    if (this.reply.errorCount !== errorsBefore) this.countErrors(this.reply.errorCount - errorsBefore);
    return this.output.position;
  }

  /** redis.acl_check_cmd. */
  private mayCall(): number {
    const command = this.executor.lookup();
    if (command === null) return -1;
    return decide(this.client.user, command, this.executor.context).verdict === Verdict.ALLOWED ? 1 : 0;
  }

  private log(data: Bytes): number {
    const offset = this.words[EngineWord.ARGUMENTS];
    const text = Buffer.from(data.u8.buffer, offset, this.words[EngineWord.ARGUMENTS + 1]).toString('utf8');
    this.executor.environment.control?.log(LOG_LEVELS[this.words[EngineWord.level]], text);
    return 0;
  }

  /** Copies the request's words from `from` on; their pairs. Slow path. */
  private copyArguments(context: Context, from: number): Int32Array {
    let total = 0;
    for (let i = from; i < context.argc; i++) total += context.argLength(i);
    const copies = this.copiesFor(total);
    const pairs = new Int32Array((context.argc - from) * 2);
    let used = 0;
    for (let i = from; i < context.argc; i++) {
      const offset = context.argOffset(i);
      const length = context.argLength(i);
      copies.u8.set(context.input.u8.subarray(offset, offset + length), used);
      pairs[(i - from) * 2] = used;
      pairs[(i - from) * 2 + 1] = length;
      used += length;
    }
    return pairs;
  }

  /** One word of a request where the interpreter can read it: (arena, offset). */
  locate(context: Context, i: number): { readonly arena: number; readonly offset: number } {
    if (context.input.arena !== NO_ARENA) return { arena: context.input.arena, offset: context.argOffset(i) };
    const length = context.argLength(i);
    const copies = this.copiesFor(length);
    copies.u8.set(context.input.u8.subarray(context.argOffset(i), context.argOffset(i) + length), 0);
    return { arena: copies.arena, offset: 0 };
  }

  private copiesFor(bytes: number): Bytes {
    if (this.copies === null || this.copies.length < bytes) {
      if (this.copies !== null) addon.releaseArena(this.copies.arena);
      const arena = addon.allocateArena(Math.max(COPIES_BYTES_MIN, bytes), {});
      this.copies = new Bytes(addon.wrapArena(arena), arena);
    }
    return this.copies;
  }

  close(): void {
    this.lua.close();
    if (this.copies !== null) addon.releaseArena(this.copies.arena);
    this.copies = null;
  }
}

const COPIES_BYTES_MIN = 64 * 1024;
/** The memory that INFO shows is looked at once in 64 runs. */
const PUBLISH_MASK = 63;

/** Over maxmemory: then Redis refuses what could take more. */
export function isOutOfMemory(context: Context): boolean {
  return context.keyspace.pool.isOverLimit;
}

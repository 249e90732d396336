/**
 * The typed door to the Lua part of the addon: one engine is one Lua 5.1 interpreter of this thread.
 *
 * An engine knows no commands. redis.call comes out through the `call` callback: the arguments lie in the data arena, their offsets and
 * lengths in the words; the callback returns how many bytes of RESP it left in the reply arena. See native/addon/lua_engine.h.
 */
import { addon } from './addon.js';

/** Words of the header in the words arena; native/addon/lua_engine.h has the same list. */
export const enum EngineWord {
  operation = 0,
  /** Arguments of the call. */
  count = 1,
  /** The data arena's number: it changes when the arena grows. */
  dataArena = 2,
  /** redis.setresp. */
  scriptResp = 3,
  replyFlags = 4,
  /** Level of redis.log, 0 debug to 3 warning. */
  level = 5,
  /** Bytes of the reply in the data arena that flush must take. */
  flushed = 6,
  /** (offset, length) pairs from here on. */
  ARGUMENTS = 16,
}

/** What the call callback is asked for. */
export const enum LuaOperation {
  /** redis.call and redis.pcall. */
  CALL = 0,
  /** redis.acl_check_cmd: the callback returns 1, 0, or -1 when there is no such command. */
  MAY_CALL = 1,
  /** redis.log. */
  LOG = 2,
}

export const enum LuaReplyFlag {
  IS_ERROR = 1,
  /** The error was a command's, which has counted it. */
  IS_COUNTED = 2,
}

/** A function that a library has registered: name, description, flags (bit i: SCRIPT_FLAGS[i]), number for run(). */
export type LoadedFunction = readonly [name: string, description: string | null, flags: number, id: number];

export interface LuaEngine {
  readonly wordsArena: number;
  readonly dataArena: number;
  readonly replyArena: number;
  /** The number of a script that was defined, by its body or (byDigest 1) its digest; -1 = none. */
  find(byDigest: 0 | 1, arena: number, offset: number, length: number): number;
  /** Compiles a script under a number; null, or the compiler's message. `skipped` bytes at the start are no Lua. */
  define(id: number, digest: string, body: Buffer, skipped: number): string | null;
  /**
   * Runs a script or function. Keys, then arguments: (offset, length) pairs in an arena from pairs[first] on. Returns how many bytes of its
   * reply stand in the data arena (what did not fit has gone to `flush`). Throws when a callback threw.
   */
  run(
    id: number,
    pairs: Int32Array,
    first: number,
    keyCount: number,
    argumentCount: number,
    arena: number,
    clientResp: number,
    slowAfterMs: number,
  ): number;
  /** The reply arena is full: keeps its first bytes until the command has replied. */
  spill(bytes: number): void;
  /** Runs a library's code, which registers functions: these, or the error's text. */
  load(code: Buffer, skipped: number, isLimited: boolean): readonly LoadedFunction[] | string;
  /** Drops a function of a library that is gone. */
  forget(id: number): void;
  /** Bytes that the interpreter holds. */
  memory(): number;
  close(): void;
}

export interface LuaCallbacks {
  readonly call: () => number;
  /** Asked every so often once a script has run for slowAfterMs: 1 = end it. */
  readonly interrupt: () => number;
  /** The data arena is full of reply bytes: take EngineWord.flushed of them. */
  readonly flush: () => number;
}

export interface LuaOptions extends LuaCallbacks {
  /** Libraries of functions, or single scripts. */
  readonly forFunctions: boolean;
  readonly bytesMax: number;
  /** Redis's, as scripts see it: '7.2.4'. */
  readonly version: string;
}

type CreateLua = (
  forFunctions: boolean,
  bytesMax: number,
  version: string,
  versionNumber: number,
  call: LuaCallbacks['call'],
  interrupt: LuaCallbacks['interrupt'],
  flush: LuaCallbacks['flush'],
) => LuaEngine;

const createLua = (addon as { readonly createLua?: CreateLua }).createLua;

/** False where the addon was built without Lua. */
export const hasLua = createLua !== undefined;

export function openLua(options: LuaOptions): LuaEngine {
  if (createLua === undefined) throw new Error('the addon was built without Lua');
  const { forFunctions, bytesMax, version, call, interrupt, flush } = options;
  const [major, minor, patch] = version.split('.').map(Number);
  return createLua(forFunctions, bytesMax, version, (major << 16) | (minor << 8) | patch, call, interrupt, flush);
}

/**
 * Scripting of one worker: the interpreters, made when the first script comes, and what becomes of scripts that take long.
 *
 * Invariant: what scripts there are is decided by the shared records alone; interpreters are made anew whenever these have changed.
 */
import { ScriptWord, SharedScripts, SlowScript } from '../../layout/shared-scripts.js';
import type { Reply } from '../../protocol/resp/reply.js';
import type { Executor } from '../executor.js';
import { FunctionLibraries } from './function-libraries.js';
import { ScriptCache } from './script-cache.js';
import type { ScriptEngine } from './script-engine.js';

const UNKILLABLE =
  'UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.';
/** What everybody else is told while a script or a function takes long. */
export const BUSY_SCRIPT = 'BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.';
export const BUSY_FUNCTION = 'BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.';

export class Scripting {
  readonly shared: SharedScripts;
  readonly cache: ScriptCache;
  readonly libraries: FunctionLibraries;

  private readonly workerIndex: number;

  constructor(shared: SharedArrayBuffer, executor: Executor, workerIndex: number, libraryPath: string) {
    this.shared = new SharedScripts(shared);
    this.cache = new ScriptCache(this, executor);
    this.libraries = new FunctionLibraries(this, executor, libraryPath);
    this.workerIndex = workerIndex;
  }

  /** A script has run longer than the limit, and is asked again every so often: 1 = it must end. */
  interrupt(engine: ScriptEngine): number {
    const { shared } = this;
    const { run } = engine;
    if (shared.get(ScriptWord.slowWorker) === 0) {
      shared.set(ScriptWord.kill, 0);
      shared.set(ScriptWord.slowWorker, this.workerIndex + 1);
    }
    const flags = (run.isFunction ? SlowScript.IS_FUNCTION : 0) | (run.hasWritten ? SlowScript.HAS_WRITTEN : 0);
    shared.set(ScriptWord.slowFlags, flags);
    return shared.get(ScriptWord.kill) !== 0 && !run.hasWritten ? 1 : 0;
  }

  /** SCRIPT KILL and FUNCTION KILL: asks for the end of the script that takes long. */
  kill(reply: Reply, wantsFunction: boolean): void {
    const { shared } = this;
    if (shared.get(ScriptWord.slowWorker) === 0) return reply.error('NOTBUSY No scripts in execution right now.');
    const flags = shared.get(ScriptWord.slowFlags);
    if ((flags & SlowScript.HAS_WRITTEN) !== 0) return reply.error(UNKILLABLE);
    const isFunction = (flags & SlowScript.IS_FUNCTION) !== 0;
    if (isFunction !== wantsFunction) return reply.error(isFunction ? BUSY_FUNCTION : BUSY_SCRIPT);
    shared.set(ScriptWord.kill, 1);
    reply.ok();
  }

  /** After every script. */
  ended(): void {
    if (this.shared.get(ScriptWord.slowWorker) === this.workerIndex + 1) this.shared.set(ScriptWord.slowWorker, 0);
  }

  /** Memory of the interpreters in bytes. */
  get luaBytes(): number {
    return this.cache.luaBytes + this.libraries.luaBytes;
  }
}

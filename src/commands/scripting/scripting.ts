/**
 * Scripting of one worker: the interpreters, made when the first script comes, and what becomes of scripts that take long.
 *
 * Invariant: what scripts there are is decided by the shared records alone; interpreters are made anew whenever these have changed.
 */
import { type RunningScript, ScriptWord, SharedScripts, SlowScript } from '../../layout/shared-scripts.js';
import { SlowHolder } from '../../layout/superblock.js';
import type { Reply } from '../../protocol/resp/reply.js';
import { BUSY_FUNCTION, BUSY_SCRIPT } from '../errors.js';
import type { Executor } from '../executor.js';
import { FunctionLibraries } from './function-libraries.js';
import { ScriptCache } from './script-cache.js';
import type { ScriptEngine, ScriptRun } from './script-engine.js';

const UNKILLABLE =
  'UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.';
const KILL_HINT = 'SCRIPT KILL or FUNCTION KILL ends it, unless it has written';

export class Scripting {
  readonly shared: SharedScripts;
  readonly cache: ScriptCache;
  readonly libraries: FunctionLibraries;

  private readonly executor: Executor;
  private readonly workerIndex: number;

  constructor(shared: SharedArrayBuffer, executor: Executor, workerIndex: number, libraryPath: string) {
    this.shared = new SharedScripts(shared);
    this.cache = new ScriptCache(this, executor);
    this.libraries = new FunctionLibraries(this, executor, libraryPath);
    this.executor = executor;
    this.workerIndex = workerIndex;
    // A worker of this number that was ended in the middle of a script has left this behind.
    if (this.shared.get(ScriptWord.slowWorker) === workerIndex + 1) this.shared.set(ScriptWord.slowWorker, 0);
  }

  /** A script has run longer than the limit, and is asked again every so often: 1 = it must end. */
  interrupt(engine: ScriptEngine): number {
    const { shared } = this;
    const { run } = engine;
    if (shared.get(ScriptWord.slowWorker) !== this.workerIndex + 1) this.announce(engine);
    const flags = (run.isFunction ? SlowScript.IS_FUNCTION : 0) | (run.hasWritten ? SlowScript.HAS_WRITTEN : 0);
    shared.set(ScriptWord.slowFlags, flags);
    const mustStop = this.executor.environment.control?.serveDuringScript() === true;
    return (mustStop || shared.get(ScriptWord.kill) !== 0) && !run.hasWritten ? 1 : 0;
  }

  /** From now on everybody else gets BUSY, the clients of this worker as well. */
  private announce({ run }: ScriptEngine): void {
    const { shared } = this;
    const { gate } = this.executor.environment.keyspace;
    const holder = run.isFunction ? SlowHolder.FUNCTION : SlowHolder.SCRIPT;
    shared.set(ScriptWord.kill, 0);
    shared.running = describe(run);
    shared.set(ScriptWord.slowWorker, this.workerIndex + 1);
    gate.announceSlow(holder);
    gate.shutOutBy = holder;
    const { control } = this.executor.environment;
    control?.log('warning', `a ${run.isFunction ? 'function' : 'script'} runs for longer than the limit: ${KILL_HINT}`);
  }

  /** A script that was slow is about to reply. */
  replies(): void {
    if (this.shared.get(ScriptWord.slowWorker) !== this.workerIndex + 1) return;
    this.shared.set(ScriptWord.slowWorker, 0);
    const { keyspace, control } = this.executor.environment;
    keyspace.gate.shutOutBy = SlowHolder.NONE;
    control?.endServing();
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
}

const SHOWN_WORDS = 32;
const SHOWN_BYTES = 128;

function describe(run: ScriptRun): RunningScript {
  const { context } = run.outer;
  const command: string[] = [];
  for (let i = 0; i < context.argc && i < SHOWN_WORDS; i++) command.push(context.argString(i).slice(0, SHOWN_BYTES));
  return { name: command[1], command, startedAtMs: run.startedAtMs };
}

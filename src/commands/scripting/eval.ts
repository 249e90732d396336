/**
 * EVAL EVALSHA EVAL_RO EVALSHA_RO: run a script.
 *
 * A script may touch keys that it has not declared, so it runs alone, under the store gate. What it has changed is rolled back when its
 * worker dies, as far as the undo journal reaches: a script of many writes keeps the first of them, as a long EXEC does.
 */
import { hasLua } from '../../native/lua.js';
import { integerArg, keyArg, optional, stringArg } from '../arguments.js';
import type { Context } from '../context.js';
import { NOT_INTEGER } from '../errors.js';
import { tellMonitorsOfScript } from '../messaging/attention.js';
import { deniesWrites, SCRIPTS_DENIED } from '../persistence/disk-error.js';
import { Category, type CommandSpec, Flag, KeyUse, keysCounted } from '../spec.js';
import { NO_SCRIPT } from './script-cache.js';
import { isOutOfMemory } from './script-engine.js';
import type { Scripting } from './scripting.js';
import { mayWrite, ScriptFlag, scriptShebang } from './shebang.js';

const NO_LUA =
  'ERR this build has no Lua: install liblua5.1-0-dev (Debian, Ubuntu) and build the addon again (npm run build:native)';
const NO_SERVER = 'ERR scripts need the server; the embedded library has none';

/** The worker's scripting, or null after an error reply. */
export function scriptingOf(context: Context): Scripting | null {
  const { scripting } = context.environment;
  if (scripting === undefined || !hasLua) {
    context.reply.error(hasLua ? NO_SERVER : NO_LUA);
    return null;
  }
  return scripting();
}

/** The number of keys, argument 2; -1 after an error reply. */
export function keyCountOf(context: Context, notInteger: string): number {
  const { reply } = context;
  const count = context.argInteger(2);
  if (Number.isNaN(count)) reply.error(notInteger);
  else if (count > context.argc - 3) reply.error("ERR Number of keys can't be greater than number of args");
  else if (count < 0) reply.error("ERR Number of keys can't be negative");
  else return count;
  return -1;
}

/** False after the error reply of a script that may not run here and now. */
export function mayRun(context: Context, flags: number, isReadOnly: boolean): boolean {
  if ((flags & ScriptFlag.COMPATIBLE) !== 0) return true;
  if (isReadOnly && (flags & ScriptFlag.NO_WRITES) === 0) {
    context.reply.error('ERR Can not execute a script with write flag using *_ro command.');
    return false;
  }
  if ((flags & ScriptFlag.NO_WRITES) === 0 && deniesWrites(context.environment)) {
    context.reply.error(SCRIPTS_DENIED);
    return false;
  }
  if ((flags & (ScriptFlag.ALLOW_OOM | ScriptFlag.NO_WRITES)) === 0 && isOutOfMemory(context)) {
    context.reply.error("OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'");
    return false;
  }
  return true;
}

/** Whether the script of this request may write: yes, unless its first line says that it does not. */
function mayReplicate(context: Context, byDigest: boolean): boolean {
  if (context.argc < 2) return true;
  const known = byDigest ? context.environment.scripting?.().cache.bodyOf(context.argString(1)) : context.argString(1);
  if (known === undefined) return true;
  const shebang = scriptShebang(known);
  return typeof shebang === 'string' || mayWrite(shebang.flags);
}

function run(context: Context, byDigest: boolean, isReadOnly: boolean): void {
  tellMonitorsOfScript(context);
  const scripting = scriptingOf(context);
  if (scripting === null) return;
  if (byDigest && context.argLength(1) !== 40) return context.reply.error(NO_SCRIPT);
  const keyCount = keyCountOf(context, NOT_INTEGER);
  if (keyCount < 0) return;
  const { cache } = scripting;
  const id = byDigest ? cache.byDigest(context) : cache.byBody(context);
  if (id < 0) return;
  const flags = cache.flags[id];
  if (!mayRun(context, flags, isReadOnly)) return;
  cache.open().execute(context, id, keyCount, flags, isReadOnly);
}

function spec(name: string, first: string, byDigest: boolean, isReadOnly: boolean, since: string): CommandSpec {
  const common = Flag.NOSCRIPT | Flag.SKIP_MONITOR | Flag.NO_MANDATORY_KEYS | Flag.STALE;
  const use = isReadOnly ? KeyUse.RO | KeyUse.ACCESS : KeyUse.RW | KeyUse.ACCESS | KeyUse.UPDATE;
  return {
    name,
    arity: -3,
    flags: common | (isReadOnly ? Flag.READONLY : Flag.MAY_REPLICATE),
    categories: Category.SCRIPTING,
    keys: [keysCounted(2, use)],
    since,
    group: 'scripting',
    summary: `Runs a Lua script${byDigest ? ' by its SHA1 digest' : ''}${isReadOnly ? ' that only reads' : ''}.`,
    complexity: 'Depends on the script that is executed.',
    args: [
      stringArg(first),
      integerArg('numkeys'),
      optional(keyArg('key', { multiple: true })),
      optional(stringArg('arg', { multiple: true })),
    ],
    exclusive: true,
    mayReplicate: (context) => mayReplicate(context, byDigest),
    run: (context) => run(context, byDigest, isReadOnly),
  };
}

export const evals: readonly CommandSpec[] = [
  spec('eval', 'script', false, false, '2.6.0'),
  spec('evalsha', 'sha1', true, false, '2.6.0'),
  spec('eval_ro', 'script', false, true, '7.0.0'),
  spec('evalsha_ro', 'sha1', true, true, '7.0.0'),
];

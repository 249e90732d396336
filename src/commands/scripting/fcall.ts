/**
 * FCALL FCALL_RO: call a function of a library.
 *
 * As scripts, functions run alone under the store gate. Invariant: the function is the one that the libraries hold now.
 */
import { integerArg, keyArg, optional, stringArg } from '../arguments.js';
import type { Context } from '../context.js';
import { tellMonitorsOfScript } from '../messaging/attention.js';
import { Category, type CommandSpec, Flag, KeyUse, keysCounted } from '../spec.js';
import { keyCountOf, mayRun, scriptingOf } from './eval.js';
import { mayWrite } from './shebang.js';

/** Whether the function may write: yes, unless it was registered as one that does not. */
function mayReplicate(context: Context): boolean {
  if (context.argc < 2) return true;
  const known = context.environment.scripting?.().libraries.known(context.argString(1));
  return known === undefined || mayWrite(known.flags);
}

function run(context: Context, isReadOnly: boolean): void {
  tellMonitorsOfScript(context);
  const scripting = scriptingOf(context);
  if (scripting === null) return;
  const called = scripting.libraries.find(context.argString(1));
  if (called === undefined) return context.reply.error('ERR Function not found');
  const keyCount = keyCountOf(context, 'ERR Bad number of keys provided');
  if (keyCount < 0 || !mayRun(context, called.flags, isReadOnly)) return;
  scripting.libraries.open().execute(context, called.id, keyCount, called.flags, isReadOnly);
}

function spec(name: string, isReadOnly: boolean): CommandSpec {
  const common = Flag.NOSCRIPT | Flag.SKIP_MONITOR | Flag.NO_MANDATORY_KEYS | Flag.STALE;
  const use = isReadOnly ? KeyUse.RO | KeyUse.ACCESS : KeyUse.RW | KeyUse.ACCESS | KeyUse.UPDATE;
  return {
    name,
    arity: -3,
    flags: common | (isReadOnly ? Flag.READONLY : Flag.MAY_REPLICATE),
    categories: Category.SCRIPTING,
    keys: [keysCounted(2, use)],
    since: '7.0.0',
    group: 'scripting',
    summary: isReadOnly ? 'Calls a function that only reads.' : 'Calls a function of a library.',
    complexity: 'Depends on the function that is executed.',
    args: [
      stringArg('function'),
      integerArg('numkeys'),
      optional(keyArg('key', { multiple: true })),
      optional(stringArg('arg', { multiple: true })),
    ],
    exclusive: true,
    mayReplicate,
    run: (context) => run(context, isReadOnly),
  };
}

export const fcalls: readonly CommandSpec[] = [spec('fcall', false), spec('fcall_ro', true)];

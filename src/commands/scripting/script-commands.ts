/**
 * SCRIPT: the cache of scripts, and the end of one that takes too long.
 *
 * What changes the cache runs under the store gate. Invariant: after SCRIPT FLUSH no worker finds an old script.
 */
import { oneOf, stringArg, tokenArg } from '../arguments.js';
import type { Context } from '../context.js';
import { helpCommand } from '../server/help.js';
import { Category, type CommandSpec, Flag } from '../spec.js';
import { scriptingOf } from './eval.js';

function load(context: Context): void {
  const scripting = scriptingOf(context);
  if (scripting === null) return;
  const digest = scripting.cache.load(context, Buffer.from(context.argBytes(2)));
  if (digest !== null) context.reply.bulkString(digest);
}

function exists(context: Context): void {
  const scripting = scriptingOf(context);
  if (scripting === null) return;
  context.reply.array(context.argc - 2);
  for (let i = 2; i < context.argc; i++) context.reply.integer(scripting.cache.exists(context.argString(i)) ? 1 : 0);
}

function flush(context: Context): void {
  const scripting = scriptingOf(context);
  if (scripting === null) return;
  if (context.argc > 3 || (context.argc === 3 && !context.argIs(2, 'SYNC') && !context.argIs(2, 'ASYNC'))) {
    return context.reply.error('ERR SCRIPT FLUSH only support SYNC|ASYNC option');
  }
  scripting.cache.flush();
  context.reply.ok();
}

function kill(context: Context): void {
  scriptingOf(context)?.kill(context.reply, false);
}

/** There is no debugger. Switching it off is what it is anyway. */
function debug(context: Context): void {
  if (context.argIs(2, 'NO')) return context.reply.ok();
  if (context.argIs(2, 'YES') || context.argIs(2, 'SYNC')) {
    return context.reply.error('ERR the Lua debugger is not supported');
  }
  context.reply.error('ERR Use SCRIPT DEBUG YES/SYNC/NO');
}

export const FLUSH_MODE = oneOf('flush-type', [tokenArg('ASYNC'), tokenArg('SYNC')], { optional: true });

function sub(name: string, arity: number, flags: number, since: string, summary: string): CommandSpec {
  const common = { categories: Category.SCRIPTING, since, group: 'scripting', complexity: 'O(1)' } as const;
  return { ...common, name, arity, flags: flags | Flag.NOSCRIPT, summary };
}

export const scriptCommands: readonly CommandSpec[] = [
  {
    name: 'script',
    arity: -2,
    flags: 0,
    categories: Category.NONE,
    since: '2.6.0',
    group: 'scripting',
    summary: 'A container for commands about scripts.',
    complexity: 'Depends on subcommand.',
    subcommands: [
      {
        ...sub('load', 3, Flag.STALE, '2.6.0', 'Keeps a script and returns its SHA1 digest.'),
        complexity: 'O(N), N being the length of the script',
        args: [stringArg('script')],
        exclusive: true,
        run: load,
      },
      {
        ...sub('exists', -3, 0, '2.6.0', 'Tells which scripts are kept.'),
        complexity: 'O(N), N being the number of scripts asked for',
        args: [stringArg('sha1', { multiple: true })],
        exclusive: true,
        run: exists,
      },
      {
        ...sub('flush', -2, 0, '2.6.0', 'Forgets all scripts.'),
        complexity: 'O(N), N being the number of scripts kept',
        args: [FLUSH_MODE],
        exclusive: true,
        run: flush,
      },
      {
        ...sub('kill', 2, Flag.ALLOW_BUSY, '2.6.0', 'Ends the running script if it has not written.'),
        run: kill,
      },
      {
        ...sub('debug', 3, 0, '3.2.0', 'Accepted for switching debugging off; there is no debugger.'),
        args: [oneOf('mode', [tokenArg('YES'), tokenArg('SYNC'), tokenArg('NO')])],
        run: debug,
      },
      helpCommand('script', 'scripting', Category.SCRIPTING, '5.0.0'),
    ],
  },
];

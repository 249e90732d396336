/**
 * FUNCTION: libraries of functions.
 *
 * Invariant: what changes or reads the libraries runs under the store gate; what is about a function that runs does not.
 */
import { type RunningScript, ScriptWord, SlowScript } from '../../layout/shared-scripts.js';
import { addon } from '../../native/addon.js';
import { oneOf, optional, patternArg, stringArg, tokenArg } from '../arguments.js';
import type { Context } from '../context.js';
import { BUSY_SCRIPT } from '../errors.js';
import { globMatchesText } from '../glob.js';
import { helpCommand } from '../server/help.js';
import { Category, type CommandSpec, Flag } from '../spec.js';
import { scriptingOf } from './eval.js';
import { ENGINE_NAME, type Library, type LibraryFunction, type RestorePolicy } from './function-libraries.js';
import { FLUSH_MODE } from './script-commands.js';
import { SCRIPT_FLAGS } from './shebang.js';

function load(context: Context): void {
  const { argc, reply } = context;
  const scripting = scriptingOf(context);
  if (scripting === null) return;
  let replaces = false;
  for (let i = 2; i < argc - 1; i++) {
    if (!context.argIs(i, 'REPLACE')) return reply.error(`ERR Unknown option given: ${context.argString(i)}`);
    replaces = true;
  }
  const result = scripting.libraries.load(Buffer.from(context.argBytes(argc - 1)), replaces);
  if ('error' in result) reply.error(result.error);
  else reply.bulkString(result.name);
}

function badSubcommand(context: Context): string {
  return `ERR unknown subcommand or wrong number of arguments for '${context.argString(1)}'. Try FUNCTION HELP.`;
}

/** OK, or the error. */
function replyOutcome(context: Context, error: string | null): void {
  if (error === null) context.reply.ok();
  else context.reply.error(error);
}

function remove(context: Context): void {
  const scripting = scriptingOf(context);
  if (scripting !== null) replyOutcome(context, scripting.libraries.remove(context.argString(2)));
}

function flush(context: Context): void {
  const scripting = scriptingOf(context);
  if (scripting === null) return;
  if (context.argc > 3) return context.reply.error(badSubcommand(context));
  if (context.argc === 3 && !context.argIs(2, 'SYNC') && !context.argIs(2, 'ASYNC')) {
    return context.reply.error('ERR FUNCTION FLUSH only supports SYNC|ASYNC option');
  }
  replyOutcome(context, scripting.libraries.flush());
}

// ---- LIST

interface ListOptions {
  readonly pattern: string | null;
  readonly withCode: boolean;
}

function listOptions(context: Context): ListOptions | string {
  let pattern: string | null = null;
  let withCode = false;
  for (let i = 2; i < context.argc; i++) {
    if (!withCode && context.argIs(i, 'WITHCODE')) {
      withCode = true;
    } else if (pattern === null && context.argIs(i, 'LIBRARYNAME')) {
      if (i === context.argc - 1) return 'ERR library name argument was not given';
      pattern = context.argString(++i);
    } else {
      return `ERR Unknown argument ${context.argString(i)}`;
    }
  }
  return { pattern, withCode };
}

function list(context: Context): void {
  const { reply } = context;
  const options = listOptions(context);
  if (typeof options === 'string') return reply.error(options);
  const scripting = scriptingOf(context);
  if (scripting === null) return;
  const { pattern, withCode } = options;
  const shown = scripting.libraries
    .list()
    .filter(({ name }) => pattern === null || globMatchesText(pattern, name, true));
  reply.array(shown.length);
  for (const library of shown) replyLibrary(context, library, withCode);
}

function replyLibrary({ reply }: Context, library: Library, withCode: boolean): void {
  reply.map(withCode ? 4 : 3);
  reply.bulkString('library_name');
  reply.bulkString(library.name);
  reply.bulkString('engine');
  reply.bulkString(ENGINE_NAME);
  reply.bulkString('functions');
  reply.array(library.functions.length);
  for (const one of library.functions) {
    reply.map(3);
    reply.bulkString('name');
    reply.bulkString(one.name);
    reply.bulkString('description');
    if (one.description === null) reply.nil();
    else reply.bulkString(one.description);
    reply.bulkString('flags');
    const flags = flagNames(one);
    reply.set(flags.length);
    for (const flag of flags) reply.simple(flag);
  }
  if (!withCode) return;
  reply.bulkString('library_code');
  reply.bulkArray(library.code);
}

function flagNames({ flags }: LibraryFunction): readonly string[] {
  return SCRIPT_FLAGS.filter((_, bit) => (flags & (1 << bit)) !== 0);
}

// ---- DUMP, RESTORE, STATS, KILL

function dump(context: Context): void {
  const scripting = scriptingOf(context);
  if (scripting !== null) context.reply.bulkArray(scripting.libraries.dump());
}

const POLICIES: readonly RestorePolicy[] = ['append', 'replace', 'flush'];

function restore(context: Context): void {
  const scripting = scriptingOf(context);
  if (scripting === null) return;
  if (context.argc > 4) return context.reply.error(badSubcommand(context));
  let policy: RestorePolicy | undefined = 'append';
  if (context.argc > 3) policy = POLICIES.find((name) => context.argIs(3, name.toUpperCase()));
  if (policy === undefined) {
    return context.reply.error('ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.');
  }
  replyOutcome(context, scripting.libraries.restore(Buffer.from(context.argBytes(2)), policy));
}

function stats(context: Context): void {
  const { reply } = context;
  const scripting = scriptingOf(context);
  if (scripting === null) return;
  const { shared } = scripting;
  const isBusy = shared.get(ScriptWord.slowWorker) !== 0;
  if (isBusy && (shared.get(ScriptWord.slowFlags) & SlowScript.IS_FUNCTION) === 0) return reply.error(BUSY_SCRIPT);
  reply.map(2);
  reply.bulkString('running_script');
  if (isBusy) replyRunning(context, shared.running);
  else reply.nil();
  reply.bulkString('engines');
  reply.map(1);
  reply.bulkString(ENGINE_NAME);
  reply.map(2);
  reply.bulkString('libraries_count');
  reply.integer(scripting.libraries.list().length);
  reply.bulkString('functions_count');
  reply.integer(scripting.libraries.functionCount);
}

function replyRunning({ reply }: Context, running: RunningScript): void {
  reply.map(3);
  reply.bulkString('name');
  reply.bulkString(running.name);
  reply.bulkString('command');
  reply.array(running.command.length);
  for (const word of running.command) reply.bulkString(word);
  reply.bulkString('duration_ms');
  reply.integer(Math.floor(addon.monotonicMs() - running.startedAtMs));
}

function kill(context: Context): void {
  scriptingOf(context)?.kill(context.reply, true);
}

// ---- declarations

function sub(name: string, arity: number, flags: number, summary: string): CommandSpec {
  const common = { categories: Category.SCRIPTING, since: '7.0.0', group: 'scripting' } as const;
  const complexity = 'O(N), N being the length of the code concerned';
  return { ...common, name, arity, flags: flags | Flag.NOSCRIPT, summary, complexity };
}

export const functionCommands: readonly CommandSpec[] = [
  {
    name: 'function',
    arity: -2,
    flags: 0,
    categories: Category.NONE,
    since: '7.0.0',
    group: 'scripting',
    summary: 'A container for commands about libraries of functions.',
    complexity: 'Depends on subcommand.',
    subcommands: [
      {
        ...sub('load', -3, Flag.DENYOOM | Flag.WRITE, 'Adds a library.'),
        args: [tokenArg('REPLACE', { optional: true }), stringArg('function-code')],
        exclusive: true,
        run: load,
      },
      {
        ...sub('delete', 3, Flag.WRITE, 'Deletes a library and its functions.'),
        args: [stringArg('library-name')],
        exclusive: true,
        run: remove,
      },
      {
        ...sub('flush', -2, Flag.WRITE, 'Deletes all libraries.'),
        args: [FLUSH_MODE],
        exclusive: true,
        run: flush,
      },
      {
        ...sub('list', -2, 0, 'Describes the libraries.'),
        args: [
          optional(patternArg('library-name-pattern', { token: 'LIBRARYNAME' })),
          tokenArg('WITHCODE', { optional: true }),
        ],
        exclusive: true,
        run: list,
      },
      { ...sub('dump', 2, 0, 'Returns all libraries as one payload.'), exclusive: true, run: dump },
      {
        ...sub('restore', -3, Flag.DENYOOM | Flag.WRITE, 'Adds the libraries of a payload.'),
        args: [
          stringArg('serialized-value'),
          oneOf('policy', [tokenArg('FLUSH'), tokenArg('APPEND'), tokenArg('REPLACE')], { optional: true }),
        ],
        exclusive: true,
        run: restore,
      },
      {
        ...sub('stats', 2, Flag.ALLOW_BUSY, 'Tells what runs and how many functions there are.'),
        run: stats,
      },
      { ...sub('kill', 2, Flag.ALLOW_BUSY, 'Ends the running function if it has not written.'), run: kill },
      helpCommand('function', 'scripting', Category.SCRIPTING, '7.0.0'),
    ],
  },
];

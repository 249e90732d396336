/**
 * COMMAND: what the server knows about its own commands, all of it from the declarations.
 */
import { type ArgumentSpec, oneOf, optional, patternArg, stringArg } from '../arguments.js';
import type { Command } from '../command.js';
import { KeyMode } from '../command.js';
import type { Context } from '../context.js';
import { SYNTAX } from '../errors.js';
import { globMatchesText } from '../glob.js';
import { extractKeys } from '../keys.js';
import { Category, type CommandSpec, Flag } from '../spec.js';
import { categoryBit, replyCommandDocs, replyCommandInfo, replyKeyUses } from './command-docs.js';
import { helpCommand } from './help.js';

const FLAGS = Flag.LOADING | Flag.STALE;

function all(context: Context): void {
  const { commands } = context.executor.table;
  context.reply.array(commands.length);
  for (const command of commands) replyCommandInfo(context.reply, command);
}

function count(context: Context): void {
  context.reply.integer(context.executor.table.commands.length);
}

function info(context: Context): void {
  if (context.argc === 2) return all(context);
  const { reply } = context;
  reply.array(context.argc - 2);
  for (let i = 2; i < context.argc; i++) {
    const command = context.executor.table.findByName(context.argString(i));
    if (command === null) reply.nil();
    else replyCommandInfo(reply, command);
  }
}

function docs(context: Context): void {
  const { reply } = context;
  const { table } = context.executor;
  let shown: readonly Command[] = table.commands;
  if (context.argc > 2) {
    const found: Command[] = [];
    for (let i = 2; i < context.argc; i++) {
      const command = table.findByName(context.argString(i));
      if (command !== null) found.push(command);
    }
    shown = found;
  }
  reply.map(shown.length);
  for (const command of shown) {
    reply.bulkString(command.fullName);
    replyCommandDocs(reply, command);
  }
}

function list(context: Context): void {
  const { reply } = context;
  let accepts: (command: Command) => boolean;
  if (context.argc === 2) {
    accepts = () => true;
  } else {
    if (context.argc !== 5 || !context.argIs(2, 'FILTERBY')) return reply.error(SYNTAX);
    const value = context.argString(4);
    if (context.argIs(3, 'MODULE')) accepts = () => false;
    else if (context.argIs(3, 'ACLCAT')) accepts = (command) => (command.categories & categoryBit(value)) !== 0;
    else if (context.argIs(3, 'PATTERN')) accepts = (command) => globMatchesText(value, command.fullName, true);
    else return reply.error(SYNTAX);
  }
  const shown = context.executor.table.all.filter(accepts);
  reply.array(shown.length);
  for (const command of shown) reply.bulkString(command.fullName);
}

function getKeys(context: Context): void {
  keysOf(context, false);
}

function getKeysAndFlags(context: Context): void {
  keysOf(context, true);
}

function keysOf(context: Context, withFlags: boolean): void {
  const { reply } = context;
  context.shift(2);
  const command = context.executor.lookup();
  if (command === null) return reply.error('ERR Invalid command specified');
  if (command.keyMode === KeyMode.NONE) return reply.error('ERR The command has no key arguments');
  if (!command.accepts(context.argc)) return reply.error('ERR Invalid number of arguments specified for command');
  const found = extractKeys(context, command);
  if (found <= 0) {
    if (command.has(Flag.NO_MANDATORY_KEYS)) return reply.array(0);
    return reply.error('ERR Invalid arguments specified for command');
  }
  const variable = command.spec.variableUse?.(context);
  reply.array(found);
  for (let k = 0; k < found; k++) {
    const argument = context.keyArguments[k];
    if (withFlags) reply.array(2);
    reply.bulk(context.input, context.argOffset(argument), context.argLength(argument));
    if (withFlags) replyKeyUses(reply, variable ?? context.keyUses[k]);
  }
}

function sub(
  name: string,
  arity: number,
  since: string,
  summary: string,
  args: readonly ArgumentSpec[],
  run: (context: Context) => void,
  tips?: readonly string[],
): CommandSpec {
  const categories = Category.CONNECTION;
  const complexity = 'O(N), N being the number of commands or arguments concerned';
  return { name, arity, flags: FLAGS, categories, since, group: 'server', summary, complexity, args, run, tips };
}

const UNORDERED = ['nondeterministic_output_order'];
const COMMAND_NAMES = optional(stringArg('command-name', { multiple: true }));
const COMMAND_LINE = [stringArg('command'), optional(stringArg('arg', { multiple: true }))];

export const introspection: readonly CommandSpec[] = [
  {
    name: 'command',
    arity: -1,
    flags: FLAGS,
    categories: Category.CONNECTION,
    since: '2.8.13',
    group: 'server',
    summary: 'Describes all commands.',
    complexity: 'O(N), N being the number of commands',
    tips: UNORDERED,
    run: all,
    subcommands: [
      sub('count', 2, '2.8.13', 'Returns the number of commands.', [], count),
      sub('info', -2, '2.8.13', 'Describes commands for programs.', [COMMAND_NAMES], info, UNORDERED),
      sub('docs', -2, '7.0.0', 'Describes commands for people.', [COMMAND_NAMES], docs, UNORDERED),
      sub(
        'list',
        -2,
        '7.0.0',
        'Returns the names of commands.',
        [
          oneOf(
            'filterby',
            [
              stringArg('module-name', { token: 'MODULE' }),
              stringArg('category', { token: 'ACLCAT' }),
              patternArg('pattern', { token: 'PATTERN' }),
            ],
            { token: 'FILTERBY', optional: true },
          ),
        ],
        list,
        UNORDERED,
      ),
      sub('getkeys', -3, '2.8.13', 'Returns the keys among the arguments of a command.', COMMAND_LINE, getKeys),
      sub(
        'getkeysandflags',
        -3,
        '7.0.0',
        'Returns the keys among the arguments of a command and what it does to them.',
        COMMAND_LINE,
        getKeysAndFlags,
      ),
      helpCommand('command', 'server', Category.CONNECTION, '5.0.0'),
    ],
  },
];

/**
 * CONFIG: reading settings here, changing them through the main thread, which tells every worker.
 */
import { configGet } from '../../config/index.js';
import { blockArg, stringArg } from '../arguments.js';
import type { Context } from '../context.js';
import { SYNTAX } from '../errors.js';
import { Category, type CommandSpec, Flag } from '../spec.js';
import { helpCommand } from './help.js';

const ADMIN = Flag.ADMIN | Flag.NOSCRIPT | Flag.LOADING | Flag.STALE;
const ALL_NODES = ['request_policy:all_nodes', 'response_policy:all_succeeded'];

function get(context: Context): void {
  const { reply } = context;
  const patterns: string[] = [];
  for (let i = 2; i < context.argc; i++) patterns.push(context.argUtf8(i));
  const pairs = configGet(context.environment.settings, patterns);
  reply.map(pairs.length / 2);
  for (const text of pairs) reply.bulkUtf8(text);
}

function set(context: Context): void {
  const { reply } = context;
  if (context.argc % 2 !== 0) return reply.error(SYNTAX);
  const pairs: [string, string][] = [];
  for (let i = 2; i < context.argc; i += 2) pairs.push([context.argUtf8(i), context.argUtf8(i + 1)]);
  const { control } = context.environment;
  // EXEC cannot wait for the other threads; its reply can.
  if (context.inTransaction && control !== null) return finish(context, control.setConfigHere(context.client, pairs));
  context.askMain('configSet', pairs, (error) => finish(context, error));
}

function rewrite(context: Context): void {
  context.askMain('configRewrite', null, (error) => finish(context, error));
}

function finish(context: Context, error: string | null): void {
  if (error === null) context.reply.ok();
  else context.reply.error(error);
}

function resetStat(context: Context): void {
  context.environment.totals.reset();
  // What the store counts: keys that have expired, were evicted ...
  context.keyspace.resetStats();
  context.reply.ok();
}

export const configCommands: readonly CommandSpec[] = [
  {
    name: 'config',
    arity: -2,
    flags: 0,
    categories: Category.NONE,
    since: '2.0.0',
    group: 'server',
    summary: 'Commands about the configuration.',
    complexity: 'Depends on the subcommand',
    subcommands: [
      {
        name: 'get',
        arity: -3,
        flags: ADMIN,
        categories: Category.NONE,
        since: '2.0.0',
        group: 'server',
        summary: 'Returns the parameters whose names match the patterns.',
        complexity: 'O(N), N being the number of parameters',
        args: [stringArg('parameter', { multiple: true })],
        history: [['7.0.0', 'Several patterns may be given.']],
        run: get,
      },
      {
        name: 'set',
        arity: -4,
        flags: ADMIN,
        categories: Category.NONE,
        since: '2.0.0',
        group: 'server',
        summary: 'Changes parameters, all of them or none.',
        complexity: 'O(N), N being the number of parameters',
        args: [blockArg('data', [stringArg('parameter'), stringArg('value')], { multiple: true })],
        history: [['7.0.0', 'Several parameters may be set at once.']],
        tips: ALL_NODES,
        run: set,
      },
      {
        name: 'rewrite',
        arity: 2,
        flags: ADMIN | Flag.NO_MULTI,
        categories: Category.NONE,
        since: '2.8.0',
        group: 'server',
        summary: 'Writes the current parameters into the configuration file.',
        complexity: 'O(1)',
        tips: ALL_NODES,
        run: rewrite,
      },
      {
        name: 'resetstat',
        arity: 2,
        flags: ADMIN,
        categories: Category.NONE,
        since: '2.0.0',
        group: 'server',
        summary: 'Sets the statistics of INFO to zero.',
        complexity: 'O(1)',
        tips: ALL_NODES,
        run: resetStat,
      },
      helpCommand('config', 'server', Category.NONE, '5.0.0'),
    ],
  },
];

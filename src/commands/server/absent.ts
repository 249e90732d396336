/**
 * Commands of parts of Redis that this server runs without: cluster, replicas, modules. They answer as a Redis server that
 * has them switched off, so that programs which ask first go on.
 */
import { type ArgumentSpec, blockArg, integerArg, oneOf, optional, stringArg, tokenArg } from '../arguments.js';
import type { Context } from '../context.js';
import { Category, type CommandGroup, type CommandSpec, Flag } from '../spec.js';
import { helpCommand } from './help.js';

const STALE = Flag.STALE;
const LOADING = Flag.LOADING | Flag.STALE;
const ADMIN = Flag.ADMIN | Flag.STALE;
const CHANGES = ADMIN | Flag.NO_ASYNC_LOADING;
const REPLICATION = CHANGES | Flag.NOSCRIPT;
const MODULES = Flag.ADMIN | Flag.NOSCRIPT;

function noCluster(context: Context): void {
  context.reply.error('ERR This instance has cluster support disabled');
}

function replicaOf(context: Context): void {
  // It follows nobody.
  if (context.argIs(1, 'NO') && context.argIs(2, 'ONE')) return context.reply.ok();
  context.reply.error('ERR this version cannot be a replica');
}

function failover(context: Context): void {
  context.reply.error('ERR FAILOVER requires connected replicas.');
}

function moduleList(context: Context): void {
  context.reply.array(0);
}

function noModules(context: Context): void {
  context.reply.error('ERR Error loading the extension. This server has no modules.');
}

function lolwut(context: Context): void {
  context.reply.verbatim('txt', 'Two floors, and a floor between them.\n');
}

function declare(
  name: string,
  arity: number,
  flags: number,
  since: string,
  summary: string,
  args: readonly ArgumentSpec[],
  run: (context: Context) => void,
  group: CommandGroup = 'cluster',
): CommandSpec {
  const categories = Category.NONE;
  return { name, arity, flags, categories, since, group, summary, complexity: 'O(1)', args, run };
}

/** What answers otherwise at another time. */
const CHANGING = new Set(
  'bumpepoch count-failure-reports getkeysinslot info links myshardid nodes replicas shards slaves slots'.split(' '),
);

/** A subcommand of CLUSTER. */
function cluster(
  name: string,
  arity: number,
  flags: number,
  since: string,
  args: readonly ArgumentSpec[] = [],
): CommandSpec {
  const spec = declare(name, arity, flags, since, 'Needs a cluster.', args, noCluster);
  return CHANGING.has(name) ? { ...spec, tips: ['nondeterministic_output'] } : spec;
}

/** READONLY and the like. */
function connection(name: string, flags: number): CommandSpec {
  const spec = declare(name, 1, flags | Flag.FAST, '3.0.0', 'Needs a cluster.', [], noCluster);
  return { ...spec, categories: Category.CONNECTION };
}

const NODE = [stringArg('node-id')];
const SLOTS = [integerArg('slot', { multiple: true })];
const RANGES = [blockArg('range', [integerArg('start-slot'), integerArg('end-slot')], { multiple: true })];
const SLOT_STATE = oneOf('subcommand', [
  stringArg('importing', { token: 'IMPORTING' }),
  stringArg('migrating', { token: 'MIGRATING' }),
  stringArg('node', { token: 'NODE' }),
  tokenArg('STABLE'),
]);
const MASTER = [
  oneOf('args', [
    blockArg('host-port', [stringArg('host'), integerArg('port')]),
    blockArg('no-one', [tokenArg('NO'), tokenArg('ONE')]),
  ]),
];

export const absentParts: readonly CommandSpec[] = [
  connection('asking', 0),
  connection('readonly', LOADING),
  connection('readwrite', LOADING),
  {
    name: 'cluster',
    arity: -2,
    flags: 0,
    categories: Category.NONE,
    since: '3.0.0',
    group: 'cluster',
    summary: 'Commands about the cluster, which this server is not part of.',
    complexity: 'Depends on the subcommand',
    subcommands: [
      cluster('addslots', -3, CHANGES, '3.0.0', SLOTS),
      cluster('addslotsrange', -4, CHANGES, '7.0.0', RANGES),
      cluster('bumpepoch', 2, CHANGES, '3.0.0'),
      cluster('count-failure-reports', 3, ADMIN, '3.0.0', NODE),
      cluster('countkeysinslot', 3, STALE, '3.0.0', [integerArg('slot')]),
      cluster('delslots', -3, CHANGES, '3.0.0', SLOTS),
      cluster('delslotsrange', -4, CHANGES, '7.0.0', RANGES),
      cluster('failover', -2, CHANGES, '3.0.0', [
        optional(oneOf('options', [tokenArg('FORCE'), tokenArg('TAKEOVER')])),
      ]),
      cluster('flushslots', 2, CHANGES, '3.0.0'),
      cluster('forget', 3, CHANGES, '3.0.0', NODE),
      cluster('getkeysinslot', 4, STALE, '3.0.0', [integerArg('slot'), integerArg('count')]),
      cluster('info', 2, STALE, '3.0.0'),
      cluster('keyslot', 3, STALE, '3.0.0', [stringArg('key')]),
      cluster('links', 2, STALE, '7.0.0'),
      cluster('meet', -4, CHANGES, '3.0.0', [
        stringArg('ip'),
        integerArg('port'),
        optional(integerArg('cluster-bus-port', { since: '4.0.0' })),
      ]),
      cluster('myid', 2, STALE, '3.0.0'),
      cluster('myshardid', 2, STALE, '7.2.0'),
      cluster('nodes', 2, STALE, '3.0.0'),
      cluster('replicas', 3, ADMIN, '5.0.0', NODE),
      cluster('replicate', 3, CHANGES, '3.0.0', NODE),
      cluster('reset', -2, ADMIN | Flag.NOSCRIPT, '3.0.0', [
        optional(oneOf('reset-type', [tokenArg('HARD'), tokenArg('SOFT')])),
      ]),
      cluster('saveconfig', 2, CHANGES, '3.0.0'),
      cluster('set-config-epoch', 3, CHANGES, '3.0.0', [integerArg('config-epoch')]),
      cluster('setslot', -4, CHANGES, '3.0.0', [integerArg('slot'), SLOT_STATE]),
      cluster('shards', 2, LOADING, '7.0.0'),
      {
        ...cluster('slaves', 3, ADMIN, '3.0.0', NODE),
        deprecated: { since: '5.0.0', replacedBy: '`CLUSTER REPLICAS`' },
      },
      { ...cluster('slots', 2, LOADING, '3.0.0'), deprecated: { since: '7.0.0', replacedBy: '`CLUSTER SHARDS`' } },
      helpCommand('cluster', 'cluster', Category.NONE, '5.0.0'),
    ],
  },
  declare(
    'replicaof',
    3,
    REPLICATION,
    '5.0.0',
    'Makes this server a replica, or independent.',
    MASTER,
    replicaOf,
    'server',
  ),
  {
    ...declare(
      'slaveof',
      3,
      REPLICATION,
      '1.0.0',
      'Makes this server a replica, or independent.',
      MASTER,
      replicaOf,
      'server',
    ),
    deprecated: { since: '5.0.0', replacedBy: '`REPLICAOF`' },
  },
  declare(
    'failover',
    -1,
    ADMIN | Flag.NOSCRIPT,
    '6.2.0',
    'Hands over to a replica.',
    [
      blockArg('target', [stringArg('host'), integerArg('port'), optional(tokenArg('FORCE'))], {
        token: 'TO',
        optional: true,
      }),
      optional(tokenArg('ABORT')),
      integerArg('milliseconds', { token: 'TIMEOUT', optional: true }),
    ],
    failover,
    'server',
  ),
  {
    name: 'module',
    arity: -2,
    flags: 0,
    categories: Category.NONE,
    since: '4.0.0',
    group: 'server',
    summary: 'Commands about modules, of which there are none.',
    complexity: 'Depends on the subcommand',
    subcommands: [
      {
        ...declare('list', 2, MODULES, '4.0.0', 'Returns the loaded modules.', [], moduleList, 'server'),
        tips: ['nondeterministic_output_order'],
      },
      declare(
        'load',
        -3,
        MODULES | Flag.NO_ASYNC_LOADING | Flag.PROTECTED,
        '4.0.0',
        'Loads a module.',
        [stringArg('path'), stringArg('arg', { optional: true, multiple: true })],
        noModules,
        'server',
      ),
      declare(
        'unload',
        3,
        MODULES | Flag.NO_ASYNC_LOADING | Flag.PROTECTED,
        '4.0.0',
        'Unloads a module.',
        [stringArg('name')],
        (context) => context.reply.error('ERR Error unloading module: no such module with that name'),
        'server',
      ),
      helpCommand('module', 'server', Category.NONE, '5.0.0'),
    ],
  },
  {
    ...declare(
      'lolwut',
      -1,
      Flag.READONLY | Flag.FAST,
      '5.0.0',
      'Says something.',
      [integerArg('version', { token: 'VERSION', optional: true })],
      lolwut,
      'server',
    ),
  },
];

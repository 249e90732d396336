/**
 * MEMORY: what a key takes, what the store takes, and what to do about it.
 */
import { integerArg, keyArg } from '../arguments.js';
import type { Context } from '../context.js';
import { NOT_INTEGER, SYNTAX } from '../errors.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt } from '../spec.js';
import { helpCommand } from './help.js';
import { human } from './info.js';
import { memoryFigures } from './memory-figures.js';

function usage(context: Context): void {
  const { reply } = context;
  for (let i = 3; i < context.argc; i += 2) {
    if (!context.argIs(i, 'SAMPLES') || i + 1 === context.argc) return reply.error(SYNTAX);
    const samples = context.argInteger(i + 1);
    if (Number.isNaN(samples)) return reply.error(NOT_INTEGER);
    if (samples < 0) return reply.error(SYNTAX);
  }
  if (!context.find(context.keyHash, 2)) return reply.nil();
  reply.integer(context.keyspace.memoryUsage);
}

function stats(context: Context): void {
  const { reply, keyspace } = context;
  const s = keyspace.stats();
  const { used, peak, overhead, live, paged, clients } = memoryFigures(context, s);
  const integers: readonly (readonly [string, number])[] = [
    ['peak.allocated', peak],
    ['total.allocated', used],
    ['startup.allocated', 0],
    ['replication.backlog', 0],
    ['clients.slaves', 0],
    ['clients.normal', clients],
    ['overhead.total', overhead],
    ['keys.count', s.items],
    ['keys.bytes-per-key', s.items === 0 ? 0 : Math.floor(used / s.items)],
    ['dataset.bytes', live],
    ['allocator.allocated', live],
    ['allocator.active', paged],
    ['allocator.resident', paged],
    ['allocator-fragmentation.bytes', paged - live],
    ['fragmentation.bytes', paged - live],
    ['dram.bytes', s.dramBytes],
    ['dram.free', s.dramFreeBytes],
    ['capacity.bytes', s.capacityBytes],
    ['capacity.free', s.capacityFreeBytes],
  ];
  const doubles: readonly (readonly [string, number])[] = [
    ['dataset.percentage', used === 0 ? 0 : (live / used) * 100],
    ['peak.percentage', peak === 0 ? 100 : (used / peak) * 100],
    ['allocator-fragmentation.ratio', live === 0 ? 1 : paged / live],
    ['fragmentation', live === 0 ? 1 : paged / live],
  ];
  reply.map(integers.length + doubles.length);
  for (const [name, value] of integers) {
    reply.bulkString(name);
    reply.integer(value);
  }
  for (const [name, value] of doubles) {
    reply.bulkString(name);
    reply.double(value);
  }
}

function doctor(context: Context): void {
  const s = context.keyspace.stats();
  const live = s.slabUsedBytes + s.largeBytes + s.logLiveBytes;
  const paged = s.slabBytes + s.largeBytes + s.logBytes;
  const advice: string[] = [];
  if (s.outOfMemory > 0) {
    advice.push(
      `${s.outOfMemory} writes were refused for want of memory: enlarge the tiers or choose an evicting policy.`,
    );
  }
  if (s.evicted > s.stored / 2 && s.stored > 1000) {
    advice.push(`${s.evicted} of ${s.stored} stored items were evicted: the data is larger than the store.`);
  }
  if (paged > 0 && live / paged < 0.7) {
    advice.push(`pages are only ${Math.round((live / paged) * 100)} % full; reclaim is behind or sizes have shifted.`);
  }
  if (s.capacityBytes > 0 && s.capacityFreeBytes / s.capacityBytes < 0.05) {
    advice.push('the capacity tier has less than 5 % free: reclaim works hard and wears the medium.');
  }
  const summary = `${s.items} items in ${human(s.usedBytes)}, ${human(s.metadataBytes)} of it metadata.`;
  context.reply.verbatim('txt', [summary, ...(advice.length > 0 ? advice : ['No problem found.'])].join('\n'));
}

function mallocStats(context: Context): void {
  context.reply.bulkString('Stats not supported for the current allocator');
}

/** Freed pages go back to the page pool at once. */
function purge(context: Context): void {
  context.reply.ok();
}

const TIPS = ['nondeterministic_output', 'request_policy:all_shards', 'response_policy:special'];
const PLAIN = { categories: Category.NONE, since: '4.0.0', group: 'server' } as const;

export const memoryCommands: readonly CommandSpec[] = [
  {
    ...PLAIN,
    name: 'memory',
    arity: -2,
    flags: 0,
    summary: 'Commands about memory.',
    complexity: 'Depends on the subcommand',
    subcommands: [
      {
        ...PLAIN,
        name: 'usage',
        arity: -3,
        flags: Flag.READONLY,
        keys: [keyAt(2, KeyUse.RO)],
        summary: 'Returns the bytes that a key and its value take, metadata included.',
        complexity: 'O(1)',
        args: [keyArg('key'), integerArg('count', { token: 'SAMPLES', optional: true })],
        run: usage,
      },
      {
        ...PLAIN,
        name: 'stats',
        arity: 2,
        flags: 0,
        summary: 'Returns how the memory of the store is used.',
        complexity: 'O(N), N being the number of pages',
        tips: TIPS,
        run: stats,
      },
      {
        ...PLAIN,
        name: 'doctor',
        arity: 2,
        flags: 0,
        summary: 'Says in words what is wrong with the memory, if anything is.',
        complexity: 'O(N), N being the number of pages',
        tips: TIPS,
        run: doctor,
      },
      {
        ...PLAIN,
        name: 'malloc-stats',
        arity: 2,
        flags: 0,
        summary: 'Returns statistics of the allocator.',
        complexity: 'O(1)',
        tips: TIPS,
        run: mallocStats,
      },
      {
        ...PLAIN,
        name: 'purge',
        arity: 2,
        flags: 0,
        summary: 'Gives unused memory back.',
        complexity: 'O(1)',
        tips: ['request_policy:all_shards', 'response_policy:all_succeeded'],
        run: purge,
      },
      helpCommand('memory', 'server', Category.NONE, '4.0.0'),
    ],
  },
];

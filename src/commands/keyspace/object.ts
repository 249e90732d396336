/**
 * OBJECT: how a value is kept and when it was used. The words are Redis's, so that tools which look at them go on working: there is
 * one way of keeping strings here, and two of keeping collections (packed in one item, a tree), which change over at the same limits.
 */
import { Encoding, ItemType } from '../../layout/item.js';
import { HashMark, isPacked, marksOf, SetMark } from '../../store/collections/forms.js';
import { keyArg } from '../arguments.js';
import type { Context } from '../context.js';
import { parseInteger } from '../numbers.js';
import { helpCommand } from '../server/help.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt } from '../spec.js';

const NO_LFU =
  'ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.';
const LFU =
  'ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.';
/** Redis keeps strings up to this long in one piece with their header. */
const EMBEDDED_MAX_BYTES = 44;
/** '-9223372036854775808' */
const INTEGER_MAX_BYTES = 20;

/** The key, argument 2; else replies that there is none. Looking does not count as use. */
function findObject(context: Context): boolean {
  if (context.find(context.keyHash, 2)) {
    context.seen();
    return true;
  }
  // No event: to look at a key from outside is not to read it.
  context.countMiss();
  context.reply.nil();
  return false;
}

function encoding(context: Context): void {
  if (findObject(context)) context.reply.bulkString(encodingName(context));
}

/** The encoding that Redis would show for the found item. */
export function encodingName(context: Context): string {
  const { keyspace } = context;
  if (keyspace.type !== ItemType.STRING) return collectionEncoding(context);
  if ((keyspace.encoding & Encoding.RAW) !== 0) return 'raw';
  const length = keyspace.valueLength;
  const maybeInteger = length <= INTEGER_MAX_BYTES && (keyspace.encoding & Encoding.TEXT) === 0;
  if (maybeInteger && !Number.isNaN(parseInteger(keyspace.value, keyspace.valueOffset, length))) return 'int';
  return length <= EMBEDDED_MAX_BYTES ? 'embstr' : 'raw';
}

function collectionEncoding(context: Context): string {
  const { keyspace } = context;
  const packed = isPacked(keyspace);
  switch (keyspace.type) {
    case ItemType.HASH:
      if (!packed) return 'hashtable';
      return (marksOf(keyspace) & HashMark.EXPIRES) === 0 ? 'listpack' : 'listpackex';
    case ItemType.SET:
      if ((marksOf(keyspace) & SetMark.INTEGERS) !== 0) return 'intset';
      return packed ? 'listpack' : 'hashtable';
    case ItemType.ZSET:
      return packed ? 'listpack' : 'skiplist';
    case ItemType.LIST:
      return packed ? 'listpack' : 'quicklist';
    case ItemType.STREAM:
      return 'stream';
    default:
      throw new Error(`an item of unknown type ${keyspace.type}`);
  }
}

function refCount(context: Context): void {
  if (findObject(context)) context.reply.integer(1);
}

function isLfu(context: Context): boolean {
  return context.environment.settings.maxmemoryPolicy.endsWith('-lfu');
}

function idleTime(context: Context): void {
  if (!findObject(context)) return;
  if (isLfu(context)) context.reply.error(LFU);
  else context.reply.integer(context.keyspace.accessAgeS);
}

function freq(context: Context): void {
  if (!findObject(context)) return;
  if (isLfu(context)) context.reply.integer(context.keyspace.frequency);
  else context.reply.error(NO_LFU);
}

const COMMON = {
  arity: 3,
  flags: Flag.READONLY,
  categories: Category.KEYSPACE,
  keys: [keyAt(2, KeyUse.RO)],
  group: 'generic',
  complexity: 'O(1)',
  args: [keyArg('key')],
} as const;

export const objects: readonly CommandSpec[] = [
  {
    name: 'object',
    arity: -2,
    flags: 0,
    categories: Category.NONE,
    since: '2.2.3',
    group: 'generic',
    summary: 'Commands that look at how values are kept.',
    complexity: 'Depends on the subcommand.',
    subcommands: [
      {
        ...COMMON,
        name: 'encoding',
        since: '2.2.3',
        summary: 'Returns the name of the encoding that Redis would use.',
        tips: ['nondeterministic_output'],
        run: encoding,
      },
      {
        ...COMMON,
        name: 'freq',
        since: '4.0.0',
        summary: 'Returns how often a key is used, as the LFU policies count.',
        tips: ['nondeterministic_output'],
        run: freq,
      },
      {
        ...COMMON,
        name: 'idletime',
        since: '2.2.3',
        summary: 'Returns the seconds since a key was last used.',
        tips: ['nondeterministic_output'],
        run: idleTime,
      },
      {
        ...COMMON,
        name: 'refcount',
        since: '2.2.3',
        summary: 'Returns the number of references to a value, which is one.',
        tips: ['nondeterministic_output'],
        run: refCount,
      },
      helpCommand('object', 'generic', Category.KEYSPACE, '6.2.0'),
    ],
  },
];

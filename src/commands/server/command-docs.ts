/**
 * Rendering of declarations for COMMAND INFO and COMMAND DOCS: flags, categories, key specs, arguments.
 */
import type { Reply } from '../../protocol/resp/reply.js';
import type { ArgumentSpec } from '../arguments.js';
import type { Command } from '../command.js';
import { Category, Flag, type KeySpec, KeyUse } from '../spec.js';

/** In Redis's order; what it hides is not here. */
const FLAG_NAMES: readonly (readonly [Flag, string])[] = [
  [Flag.WRITE, 'write'],
  [Flag.READONLY, 'readonly'],
  [Flag.DENYOOM, 'denyoom'],
  [Flag.ADMIN, 'admin'],
  [Flag.PUBSUB, 'pubsub'],
  [Flag.NOSCRIPT, 'noscript'],
  [Flag.BLOCKING, 'blocking'],
  [Flag.LOADING, 'loading'],
  [Flag.STALE, 'stale'],
  [Flag.SKIP_MONITOR, 'skip_monitor'],
  [Flag.SKIP_SLOWLOG, 'skip_slowlog'],
  [Flag.ASKING, 'asking'],
  [Flag.FAST, 'fast'],
  [Flag.NO_AUTH, 'no_auth'],
  [Flag.NO_MANDATORY_KEYS, 'no_mandatory_keys'],
  [Flag.NO_ASYNC_LOADING, 'no_async_loading'],
  [Flag.NO_MULTI, 'no_multi'],
  [Flag.MOVABLE_KEYS, 'movablekeys'],
  [Flag.ALLOW_BUSY, 'allow_busy'],
];

/** Name of the category with bit i. */
export const CATEGORY_NAMES: readonly string[] = [
  'keyspace',
  'read',
  'write',
  'set',
  'sortedset',
  'list',
  'hash',
  'string',
  'bitmap',
  'hyperloglog',
  'geo',
  'stream',
  'pubsub',
  'admin',
  'fast',
  'slow',
  'blocking',
  'dangerous',
  'connection',
  'transaction',
  'scripting',
];

const USE_NAMES: readonly (readonly [KeyUse, string])[] = [
  [KeyUse.RO, 'RO'],
  [KeyUse.RW, 'RW'],
  [KeyUse.OW, 'OW'],
  [KeyUse.RM, 'RM'],
  [KeyUse.ACCESS, 'access'],
  [KeyUse.UPDATE, 'update'],
  [KeyUse.INSERT, 'insert'],
  [KeyUse.DELETE, 'delete'],
  [KeyUse.NOT_KEY, 'not_key'],
  [KeyUse.INCOMPLETE, 'incomplete'],
  [KeyUse.VARIABLE_FLAGS, 'variable_flags'],
];

/** The category of this name as a bit, 0 = unknown. */
export function categoryBit(name: string): number {
  const index = CATEGORY_NAMES.indexOf(name.toLowerCase());
  return index < 0 ? Category.NONE : 1 << index;
}

function names(reply: Reply, list: readonly string[]): void {
  reply.set(list.length);
  for (const name of list) reply.simple(name);
}

export function replyKeyUses(reply: Reply, use: number): void {
  names(
    reply,
    USE_NAMES.filter(([bit]) => (use & bit) !== 0).map(([, name]) => name),
  );
}

/** The ten fields of COMMAND INFO. */
export function replyCommandInfo(reply: Reply, command: Command): void {
  const { spec } = command;
  const [first, last, step] = legacyRange(command.keys);
  reply.array(10);
  reply.bulkString(command.fullName);
  reply.integer(command.arity);
  names(
    reply,
    FLAG_NAMES.filter(([bit]) => (command.flags & bit) !== 0).map(([, name]) => name),
  );
  reply.integer(first);
  reply.integer(last);
  reply.integer(step);
  names(
    reply,
    CATEGORY_NAMES.filter((_, bit) => (command.categories & (1 << bit)) !== 0).map((name) => `@${name}`),
  );
  const tips = spec.tips ?? [];
  reply.set(tips.length);
  for (const tip of tips) reply.bulkString(tip);
  reply.set(command.keys.length);
  for (const key of command.keys) replyKeySpec(reply, key);
  reply.set(command.subcommands.length);
  for (const sub of command.subcommands) replyCommandInfo(reply, sub);
}

/** First key, last key and step of old: one range if the specs with fixed positions make one. */
function legacyRange(keys: readonly KeySpec[]): readonly [number, number, number] {
  let range: readonly [number, number, number] = [0, 0, 0];
  for (const { begin, find } of keys) {
    if (!('index' in begin) || !('last' in find)) continue;
    const last = find.last < 0 ? find.last : begin.index + find.last;
    if (range[0] === 0) range = [begin.index, last, find.step];
    else if (range[2] === 1 && find.step === 1 && range[1] === begin.index - 1) range = [range[0], last, 1];
  }
  return range;
}

function replyKeySpec(reply: Reply, key: KeySpec): void {
  const { begin, find } = key;
  reply.map(3);
  reply.bulkString('flags');
  replyKeyUses(reply, key.use);
  reply.bulkString('begin_search');
  if ('index' in begin) typed(reply, 'index', [['index', begin.index]]);
  else if ('isUnknown' in begin) typed(reply, 'unknown', []);
  else
    typed(reply, 'keyword', [
      ['keyword', begin.keyword],
      ['startfrom', begin.from],
    ]);
  reply.bulkString('find_keys');
  if ('last' in find) {
    typed(reply, 'range', [
      ['lastkey', find.last],
      ['keystep', find.step],
      ['limit', find.limit],
    ]);
  } else if ('isUnknown' in find) {
    typed(reply, 'unknown', []);
  } else {
    typed(reply, 'keynum', [
      ['keynumidx', find.countAt],
      ['firstkey', find.firstAt],
      ['keystep', find.step],
    ]);
  }
}

function typed(reply: Reply, type: string, spec: readonly (readonly [string, string | number])[]): void {
  reply.map(2);
  reply.bulkString('type');
  reply.bulkString(type);
  reply.bulkString('spec');
  reply.map(spec.length);
  for (const [name, value] of spec) {
    reply.bulkString(name);
    if (typeof value === 'number') reply.integer(value);
    else reply.bulkString(value);
  }
}

/** The map of COMMAND DOCS for one command. */
export function replyCommandDocs(reply: Reply, command: Command): void {
  const { spec } = command;
  const { deprecated, history, args } = spec;
  const hasArgs = args !== undefined && args.length > 0;
  reply.map(
    4 + (deprecated ? 3 : 0) + (history ? 1 : 0) + (hasArgs ? 1 : 0) + (command.subcommands.length > 0 ? 1 : 0),
  );
  field(reply, 'summary', spec.summary);
  field(reply, 'since', spec.since);
  field(reply, 'group', spec.group);
  field(reply, 'complexity', spec.complexity);
  if (deprecated) {
    reply.bulkString('doc_flags');
    names(reply, ['deprecated']);
    field(reply, 'deprecated_since', deprecated.since);
    field(reply, 'replaced_by', deprecated.replacedBy);
  }
  if (history) {
    reply.bulkString('history');
    reply.set(history.length);
    for (const [version, change] of history) {
      reply.array(2);
      reply.bulkString(version);
      reply.bulkUtf8(change);
    }
  }
  if (hasArgs) {
    reply.bulkString('arguments');
    replyArguments(reply, args);
  }
  if (command.subcommands.length > 0) {
    reply.bulkString('subcommands');
    reply.map(command.subcommands.length);
    for (const sub of command.subcommands) {
      reply.bulkString(sub.fullName);
      replyCommandDocs(reply, sub);
    }
  }
}

function replyArguments(reply: Reply, args: readonly ArgumentSpec[]): void {
  reply.array(args.length);
  for (const argument of args) {
    const nested = argument.type === 'oneof' || argument.type === 'block';
    const flags: string[] = [];
    if (argument.optional) flags.push('optional');
    if (argument.multiple) flags.push('multiple');
    if (argument.multipleToken) flags.push('multiple_token');
    const fields = [argument.keySpec !== undefined, argument.token !== undefined, argument.since !== undefined];
    reply.map(3 + fields.filter(Boolean).length + (flags.length > 0 ? 1 : 0));
    field(reply, 'name', argument.name);
    field(reply, 'type', argument.type);
    if (!nested) field(reply, 'display_text', argument.name);
    if (argument.keySpec !== undefined) {
      reply.bulkString('key_spec_index');
      reply.integer(argument.keySpec);
    }
    if (argument.token !== undefined) field(reply, 'token', argument.token);
    if (argument.since !== undefined) field(reply, 'since', argument.since);
    if (flags.length > 0) {
      reply.bulkString('flags');
      names(reply, flags);
    }
    if (nested) {
      reply.bulkString('arguments');
      replyArguments(reply, argument.args ?? []);
    }
  }
}

function field(reply: Reply, name: string, value: string): void {
  reply.bulkString(name);
  reply.bulkUtf8(value);
}

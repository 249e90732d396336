/**
 * DEBUG: the subcommands that test-suites use. Only for connections from this machine.
 */
import { isLocalPeer, parseSize } from '../../config/index.js';
import { ScriptWord } from '../../layout/shared-scripts.js';
import { Super } from '../../layout/superblock.js';
import { stringArg } from '../arguments.js';
import type { Context } from '../context.js';
import { NO_SUCH_KEY, NOT_FLOAT, NOT_INTEGER } from '../errors.js';
import { globMatchesText } from '../glob.js';
import { encodingName } from '../keyspace/object.js';
import { debugLoadAof, debugReload } from '../persistence/debug-reload.js';
import { scriptingOf } from '../scripting/eval.js';
import { Category, type CommandSpec, Flag, KeyUse } from '../spec.js';
import { digestAll, digestValues } from './debug-digest.js';

const STRING_MATCH_MAX = 10_000_000;

interface Subcommand {
  readonly name: string;
  /** Words after the subcommand; negative: at least so many. */
  readonly args: number;
  readonly summary: string;
  readonly run: (context: Context) => void;
}

const SUBCOMMANDS: readonly Subcommand[] = [
  { name: 'CHANGE-REPL-ID', args: 0, summary: 'Accepted: there is no replication id.', run: ok },
  { name: 'DIGEST', args: 0, summary: 'Digest of all keys, for comparisons.', run: digestAll },
  { name: 'DIGEST-VALUE', args: -1, summary: 'Digests of the values of keys.', run: digestValues },
  { name: 'ERROR', args: 1, summary: 'Replies the given error.', run: error },
  { name: 'LOADAOF', args: 0, summary: 'Loads what BGREWRITEAOF has written in place of all keys.', run: debugLoadAof },
  { name: 'LOG', args: 1, summary: 'Writes a line into the server log.', run: log },
  { name: 'OBJECT', args: 1, summary: 'Shows how a value is kept.', run: object },
  { name: 'PAUSE-CRON', args: 1, summary: 'Accepted: limits hold at once.', run: ok },
  { name: 'PROTOCOL', args: 1, summary: 'Replies a value of the given type.', run: protocol },
  {
    name: 'QUICKLIST-PACKED-THRESHOLD',
    args: 1,
    summary: 'Accepted: elements of every size are kept the same way.',
    run: packedThreshold,
  },
  { name: 'RELOAD', args: 0, summary: 'Saves all keys into the RDB file and loads them again.', run: debugReload },
  { name: 'RELOAD', args: -1, summary: 'The same with MERGE, NOFLUSH, NOSAVE.', run: debugReload },
  {
    name: 'SET-ACTIVE-EXPIRE',
    args: 1,
    summary: 'Switches the background expiry on (1) or off (0).',
    run: setActiveExpire,
  },
  {
    name: 'SET-DISABLE-DENY-SCRIPTS',
    args: 1,
    summary: 'Lets scripts call DEBUG (1), or no longer (0).',
    run: setDisableDenyScripts,
  },
  { name: 'SLEEP', args: 1, summary: 'Stops this worker for some seconds.', run: sleep },
  {
    name: 'STRINGMATCH-LEN',
    args: 2,
    summary: 'Matches a pattern as long as the first number against a text as long as the second.',
    run: stringMatch,
  },
];

function debug(context: Context): void {
  const { reply } = context;
  if (!isLocalPeer(context.executor.hub.caller.address)) {
    return reply.error('ERR DEBUG command not allowed. It works for connections from this machine only.');
  }
  if (context.argIs(1, 'HELP') && context.argc === 2) return help(context);
  for (const { name, args, run } of SUBCOMMANDS) {
    const fits = args < 0 ? context.argc >= 2 - args : context.argc === 2 + args;
    if (fits && context.argIs(1, name)) return run(context);
  }
  const word = context.argString(1).slice(0, 128);
  reply.error(`ERR unknown subcommand or wrong number of arguments for '${word}'. Try DEBUG HELP.`);
}

function help({ reply }: Context): void {
  const lines = ['DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:'];
  for (const { name, summary } of SUBCOMMANDS) lines.push(name, `    ${summary}`);
  lines.push('HELP', '    Print this help.');
  reply.array(lines.length);
  for (const line of lines) reply.simple(line);
}

function ok({ reply }: Context): void {
  reply.ok();
}

function error(context: Context): void {
  context.reply.error(context.argString(2).replace(/[\r\n]/g, ' '));
}

function log(context: Context): void {
  context.environment.control?.log('warning', `DEBUG LOG: ${context.argUtf8(2)}`);
  context.reply.ok();
}

function packedThreshold(context: Context): void {
  const bytes = parseSize(context.argString(2));
  if (bytes === undefined || bytes >= 2 ** 32) {
    return context.reply.error('ERR argument must be a memory value bigger than 1 and smaller than 4gb');
  }
  context.reply.ok();
}

function stringMatch(context: Context): void {
  const [patternLength, textLength] = [context.argInteger(2), context.argInteger(3)];
  if (!(patternLength >= 0 && textLength >= 0 && patternLength + textLength <= STRING_MATCH_MAX)) {
    return context.reply.error(NOT_INTEGER);
  }
  const text = 'a'.repeat(textLength);
  context.reply.integer(
    globMatchesText('*a'.repeat(Math.ceil(patternLength / 2)).slice(0, patternLength), text, false) ? 1 : 0,
  );
}

/** One value of each reply type, for the tests of client libraries. */
function protocol(context: Context): void {
  const { reply } = context;
  const type = context.argString(2).toLowerCase();
  switch (type) {
    case 'string':
      return reply.bulkString('Hello World');
    case 'integer':
      return reply.integer(12345);
    case 'double':
      return reply.doubleText('3.141');
    case 'bignum':
      return reply.bigNumber(1234567999999999999999999999999999999n);
    case 'null':
      return reply.nil();
    case 'array':
      reply.array(3);
      for (let i = 0; i < 3; i++) reply.integer(i);
      return;
    case 'set':
      reply.set(3);
      for (let i = 0; i < 3; i++) reply.integer(i);
      return;
    case 'map':
      reply.map(3);
      for (let i = 0; i < 3; i++) {
        reply.integer(i);
        reply.boolean(i === 1);
      }
      return;
    case 'attrib':
      if (reply.protocol === 3) {
        reply.attribute(1);
        reply.bulkString('key-popularity');
        reply.array(2);
        reply.bulkString('key:123');
        reply.integer(90);
      }
      return reply.bulkString('Some real reply following the attribute');
    case 'push':
      if (reply.protocol < 3) return reply.error('ERR RESP2 is not supported by this command');
      reply.push(2);
      reply.bulkString('server-cpu-usage');
      reply.integer(42);
      return reply.bulkString('Some real reply following the push reply');
    case 'true':
      return reply.boolean(true);
    case 'false':
      return reply.boolean(false);
    case 'verbatim':
      return reply.verbatim('txt', 'This is a verbatim\nstring');
    default:
      reply.error(
        'ERR Wrong protocol type name. Please use one of the following: string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false',
      );
  }
}

/** Stops this worker, and nobody else: it is outside any batch meanwhile. A transaction keeps its locks. */
function sleep(context: Context): void {
  const seconds = context.argDouble(2);
  if (Number.isNaN(seconds)) return context.reply.error(NOT_FLOAT);
  if (!context.inTransaction) context.keyspace.leaveBatch();
  const word = new Int32Array(new SharedArrayBuffer(4));
  Atomics.wait(word, 0, 0, Math.max(0, seconds * 1000));
  if (!context.inTransaction) {
    context.keyspace.enterBatch();
    context.keyspace.refreshClock();
  }
  context.reply.ok();
}

function object(context: Context): void {
  const { keyspace, reply } = context;
  const { nowMs } = keyspace;
  // One that has expired is there until it is removed, which looking at it from outside does not.
  keyspace.nowMs = 0;
  const exists = context.find(context.keyHash, 2);
  keyspace.nowMs = nowMs;
  if (!exists) return reply.error(NO_SUCH_KEY);
  const access = Math.floor(context.nowMs / 1000) - keyspace.accessAgeS;
  reply.simple(
    `Value at:0x${keyspace.itemOffset.toString(16)} refcount:1 encoding:${encodingName(context)}` +
      ` serializedlength:${keyspace.valueLength} lru:${access & 0xffffff} lru_seconds_idle:${keyspace.accessAgeS}`,
  );
}

/** 0: expired keys stay until somebody asks for them. */
function setActiveExpire(context: Context): void {
  const on = context.argInteger(2);
  Atomics.store(context.keyspace.memory.ctl, Super.EXPIRY_PAUSED_WORD, on === 0 ? 1 : 0);
  context.reply.ok();
}

function setDisableDenyScripts(context: Context): void {
  const scripting = scriptingOf(context);
  if (scripting === null) return;
  scripting.shared.set(ScriptWord.allowsDebug, context.argInteger(2) === 0 ? 0 : 1);
  context.reply.ok();
}

export const debugCommands: readonly CommandSpec[] = [
  {
    name: 'debug',
    arity: -2,
    flags: Flag.ADMIN | Flag.NOSCRIPT | Flag.LOADING | Flag.STALE | Flag.PROTECTED,
    categories: Category.NONE,
    since: '1.0.0',
    group: 'server',
    summary: 'Commands for tests; DEBUG HELP lists them.',
    complexity: 'Depends on the subcommand',
    args: [stringArg('subcommand'), stringArg('argument', { optional: true, multiple: true })],
    findKeys: (context, add) => {
      if (context.argc === 3 && context.argIs(1, 'OBJECT')) add(2, KeyUse.RO);
      if (!context.argIs(1, 'DIGEST-VALUE')) return;
      for (let i = 2; i < context.argc; i++) add(i, KeyUse.RO);
    },
    run: debug,
  },
];

/**
 * DEBUG: the few subcommands that test-suites of clients use. Only for connections from this machine.
 */
import { isLoopback } from '../config/index.js';
import { Super } from '../layout/superblock.js';
import { stringArg } from './arguments.js';
import type { Context } from './context.js';
import { NO_SUCH_KEY, NOT_FLOAT } from './errors.js';
import { encodingName } from './object.js';
import { Category, type CommandSpec, Flag, KeyUse } from './spec.js';

function debug(context: Context): void {
  const { reply } = context;
  if (!isLocal(context.client.address)) {
    return reply.error('ERR DEBUG command not allowed. It works for connections from this machine only.');
  }
  if (context.argIs(1, 'SLEEP') && context.argc === 3) return sleep(context);
  if (context.argIs(1, 'OBJECT') && context.argc === 3) return object(context);
  if (context.argIs(1, 'SET-ACTIVE-EXPIRE') && context.argc === 3) return setActiveExpire(context);
  const word = context.argString(1).slice(0, 128);
  reply.error(`ERR unknown subcommand or wrong number of arguments for '${word}'. Try DEBUG HELP.`);
}

/** 'ip:port', '[ip6]:port', or the path of a unix socket. */
function isLocal(address: string): boolean {
  const colon = address.lastIndexOf(':');
  return address === '' || address.startsWith('/') || isLoopback(address.slice(0, colon).replace(/^\[|\]$/g, ''));
}

/** Stops this worker, and nobody else: it is outside any batch meanwhile. A transaction keeps its locks. */
function sleep(context: Context): void {
  const seconds = context.argDouble(2);
  if (Number.isNaN(seconds)) return context.reply.error(NOT_FLOAT);
  if (!context.inTransaction) context.keyspace.leaveBatch();
  const word = new Int32Array(new SharedArrayBuffer(4));
  Atomics.wait(word, 0, 0, Math.max(0, seconds * 1000));
  if (!context.inTransaction) context.keyspace.enterBatch();
  context.keyspace.refreshClock();
  context.reply.ok();
}

function object(context: Context): void {
  const { keyspace, reply } = context;
  if (!context.find(context.keyHash, 2)) return reply.error(NO_SUCH_KEY);
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

export const debugCommands: readonly CommandSpec[] = [
  {
    name: 'debug',
    arity: -2,
    flags: Flag.ADMIN | Flag.NOSCRIPT | Flag.LOADING | Flag.STALE | Flag.PROTECTED,
    categories: Category.NONE,
    since: '1.0.0',
    group: 'server',
    summary: 'Commands for tests: SLEEP, OBJECT, SET-ACTIVE-EXPIRE.',
    complexity: 'Depends on the subcommand',
    args: [stringArg('subcommand'), stringArg('argument', { optional: true, multiple: true })],
    findKeys: (context, add) => {
      if (context.argc === 3 && context.argIs(1, 'OBJECT')) add(2, KeyUse.RO);
    },
    run: debug,
  },
];

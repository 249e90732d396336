/**
 * Connection commands: AUTH HELLO PING ECHO QUIT RESET SELECT. (CLIENT has its own file.)
 *
 * Invariant: nothing here tells a client that has not authenticated anything about the server.
 */
import { Counter } from '../../layout/counters.js';
import { Closing } from '../../protocol/driver.js';
import { isLoggedIn } from '../acl/authorize.js';
import { DEFAULT_USER } from '../acl/users.js';
import { blockArg, integerArg, optional, stringArg } from '../arguments.js';
import type { Context } from '../context.js';
import { DB_OUT_OF_RANGE, NOT_INTEGER, SYNTAX, WRONG_PASSWORD, wrongArity } from '../errors.js';
import { Category, type CommandSpec, Flag } from '../spec.js';
import { Attention, type Client, ReplyMode } from './client.js';
import { endTransaction } from './client-memory.js';

/** The Redis version whose behaviour we follow; client libraries choose features by it. */
export const REDIS_VERSION = '7.2.4';
export const BAD_CLIENT_NAME = 'ERR Client names cannot contain spaces, newlines or special characters.';
const AUTH_WITHOUT_PASSWORD =
  'ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?';
const HELLO_WITHOUT_AUTH =
  'NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time';

const CONNECTION = Flag.LOADING | Flag.STALE | Flag.FAST;

// ---- authentication

function auth(context: Context): void {
  if (context.argc > 3) return context.reply.error(SYNTAX);
  const { users } = context.environment;
  if (context.argc === 2 && users.default.needsNoPassword) {
    return context.reply.error(AUTH_WITHOUT_PASSWORD);
  }
  const user = context.argc === 2 ? DEFAULT_USER : context.argString(1);
  if (authenticate(context, user, context.argBytes(context.argc - 1))) context.reply.ok();
}

/** Logs the client in, or replies WRONGPASS and counts and logs the attempt. */
function authenticate(context: Context, name: string, password: Uint8Array): boolean {
  const { client, environment } = context;
  const user = environment.users.get(name);
  if (user?.isEnabled === true && user.accepts(password)) {
    client.authenticated = true;
    client.user = user;
    client.unrestrictedAt = 0;
    return true;
  }
  environment.counters.values[Counter.authFailures]++;
  environment.control?.recordAccess(client, {
    reason: 'auth',
    context: client.transaction === null && !context.inTransaction ? 'toplevel' : 'multi',
    object: context.argString(0),
    username: name,
  });
  context.reply.error(WRONG_PASSWORD);
  return false;
}

function hello(context: Context): void {
  const { client, reply } = context;
  let version = client.protocol;
  if (context.argc >= 2) {
    version = context.argInteger(1);
    if (Number.isNaN(version)) return reply.error('ERR Protocol version is not an integer or out of range');
    if (version !== 2 && version !== 3) return reply.error('NOPROTO unsupported protocol version');
  }
  let credentials = 0;
  let name: string | null = null;
  for (let i = 2; i < context.argc; i++) {
    if (context.argIs(i, 'AUTH') && i + 2 < context.argc) {
      credentials = i + 1;
      i += 2;
    } else if (context.argIs(i, 'SETNAME') && i + 1 < context.argc) {
      name = context.argString(++i);
      if (!isPrintable(name)) return reply.error(BAD_CLIENT_NAME);
    } else {
      return reply.error(`ERR Syntax error in HELLO option '${context.argString(i)}'`);
    }
  }
  if (credentials > 0 && !authenticate(context, context.argString(credentials), context.argBytes(credentials + 1))) {
    return;
  }
  if (!isLoggedIn(context.environment, client)) return reply.error(HELLO_WITHOUT_AUTH);
  if (name !== null) client.name = name;
  client.protocol = version;
  reply.protocol = version;
  reply.map(7);
  reply.bulkString('server');
  reply.bulkString('redis');
  reply.bulkString('version');
  reply.bulkString(REDIS_VERSION);
  reply.bulkString('proto');
  reply.integer(version);
  reply.bulkString('id');
  reply.integer(client.id);
  reply.bulkString('mode');
  reply.bulkString('standalone');
  reply.bulkString('role');
  reply.bulkString('master');
  reply.bulkString('modules');
  reply.array(0);
}

/** Names and the like must not break the fields of CLIENT LIST. */
export function isPrintable(text: string): boolean {
  return /^[!-~]*$/.test(text);
}

// ---- the rest

function ping(context: Context): void {
  if (context.argc > 2) return context.reply.error(wrongArity('ping'));
  if ((context.client.attention & Attention.SUBSCRIBED) !== 0 && context.client.protocol === 2) {
    // It looks like a message to subscribers of the old protocol, who expect nothing else.
    context.reply.array(2);
    context.reply.bulkString('pong');
    if (context.argc === 1) context.reply.bulkString('');
    else context.reply.bulk(context.input, context.argOffset(1), context.argLength(1));
    return;
  }
  if (context.argc === 1) context.reply.simple('PONG');
  else context.reply.bulk(context.input, context.argOffset(1), context.argLength(1));
}

function echo(context: Context): void {
  context.reply.bulk(context.input, context.argOffset(1), context.argLength(1));
}

function quit(context: Context): void {
  context.reply.ok();
  context.client.closing = Closing.AFTER_REPLY;
}

function reset(context: Context): void {
  const { client } = context;
  context.executor.hub.reset(client);
  endTransaction(client, context.environment.counters.values);
  resetClient(client);
  const { users } = context.environment;
  client.authenticated = !users.needAuthentication;
  client.user = users.default;
  client.unrestrictedAt = 0;
  context.reply.output.unmuteIfMuted();
  context.reply.protocol = client.protocol;
  context.reply.simple('RESET');
}

function resetClient(client: Client): void {
  client.db = 0;
  client.protocol = 2;
  client.name = '';
  client.replyMode = ReplyMode.ON;
  client.noEvict = false;
  client.noTouch = false;
}

function select(context: Context): void {
  const db = context.argInteger(1);
  if (Number.isNaN(db)) return context.reply.error(NOT_INTEGER);
  if (db < 0 || db >= context.environment.settings.databases) return context.reply.error(DB_OUT_OF_RANGE);
  context.client.db = db;
  context.reply.ok();
}

export const connection: readonly CommandSpec[] = [
  {
    name: 'auth',
    arity: -2,
    flags: CONNECTION | Flag.NOSCRIPT | Flag.NO_AUTH | Flag.ALLOW_BUSY | Flag.SKIP_SLOWLOG,
    categories: Category.CONNECTION,
    since: '1.0.0',
    group: 'connection',
    summary: 'Logs the connection in with a password, or a user name and a password.',
    complexity: 'O(1)',
    args: [optional(stringArg('username', { since: '6.0.0' })), stringArg('password')],
    history: [['6.0.0', 'A user name may stand before the password.']],
    run: auth,
  },
  {
    name: 'hello',
    arity: -1,
    flags: CONNECTION | Flag.NOSCRIPT | Flag.NO_AUTH | Flag.ALLOW_BUSY | Flag.SKIP_SLOWLOG,
    categories: Category.CONNECTION,
    since: '6.0.0',
    group: 'connection',
    summary: 'Chooses the protocol version and returns facts about the server; can log in and name the connection too.',
    complexity: 'O(1)',
    args: [
      blockArg(
        'arguments',
        [
          integerArg('protover'),
          blockArg('auth', [stringArg('username'), stringArg('password')], { token: 'AUTH', optional: true }),
          stringArg('clientname', { token: 'SETNAME', optional: true }),
        ],
        { optional: true },
      ),
    ],
    history: [['6.2.0', 'The protocol version is optional.']],
    run: hello,
  },
  {
    name: 'ping',
    arity: -1,
    flags: Flag.FAST,
    categories: Category.CONNECTION,
    since: '1.0.0',
    group: 'connection',
    summary: 'Returns PONG, or the message it was given.',
    complexity: 'O(1)',
    args: [optional(stringArg('message'))],
    tips: ['request_policy:all_shards', 'response_policy:all_succeeded'],
    run: ping,
  },
  {
    name: 'echo',
    arity: 2,
    flags: CONNECTION,
    categories: Category.CONNECTION,
    since: '1.0.0',
    group: 'connection',
    summary: 'Returns the message it was given.',
    complexity: 'O(1)',
    args: [stringArg('message')],
    run: echo,
  },
  {
    name: 'quit',
    arity: -1,
    flags: CONNECTION | Flag.NOSCRIPT | Flag.NO_AUTH | Flag.ALLOW_BUSY | Flag.NOT_QUEUED,
    categories: Category.CONNECTION,
    since: '1.0.0',
    group: 'connection',
    summary: 'Closes the connection after the replies that are due.',
    complexity: 'O(1)',
    deprecated: { since: '7.2.0', replacedBy: 'just closing the connection' },
    run: quit,
  },
  {
    name: 'reset',
    arity: 1,
    flags: CONNECTION | Flag.NOSCRIPT | Flag.NO_AUTH | Flag.ALLOW_BUSY | Flag.NOT_QUEUED,
    categories: Category.CONNECTION,
    since: '6.2.0',
    group: 'connection',
    summary: 'Brings the connection back to the state of a new one.',
    complexity: 'O(1)',
    run: reset,
  },
  {
    name: 'select',
    arity: 2,
    flags: CONNECTION | Flag.CHANGES_DB,
    categories: Category.CONNECTION,
    since: '1.0.0',
    group: 'connection',
    summary: 'Chooses the database of the connection.',
    complexity: 'O(1)',
    args: [integerArg('index')],
    run: select,
  },
];

/**
 * CLIENT: what a connection may know and change about itself, and about others.
 *
 * Clients of other workers are asked through Control, so LIST, KILL, PAUSE and INFO answer in a later turn.
 */
import { type ArgumentSpec, integerArg, oneOf, optional, stringArg, tokenArg } from '../arguments.js';
import type { Context } from '../context.js';
import { NOT_INTEGER, SYNTAX, wrongArity } from '../errors.js';
import { helpCommand } from '../server/help.js';
import { Category, type CommandSpec, Flag } from '../spec.js';
import { ReplyMode } from './client.js';
import { clientLines, parseKillFilter, parseListFilter } from './client-list.js';
import { askForTarget, caching, getRedir, tracking, trackingInfo } from './client-tracking.js';
import { BAD_CLIENT_NAME, isPrintable } from './connection.js';

const PLAIN = Flag.NOSCRIPT | Flag.LOADING | Flag.STALE;
const ADMIN = PLAIN | Flag.ADMIN;
const ASKING = Flag.ASKS;

function id(context: Context): void {
  context.reply.integer(context.client.id);
}

function info(context: Context): void {
  const { reply } = context;
  context.askWorkers('clientList', { ids: [context.client.id] }, (answers) =>
    reply.verbatim('txt', clientLines(answers)),
  );
}

function list(context: Context): void {
  const { reply } = context;
  const filter = parseListFilter(context);
  if (filter === null) return;
  context.askWorkers('clientList', filter, (answers) => reply.verbatim('txt', clientLines(answers)));
}

function kill(context: Context): void {
  const { reply } = context;
  const isOldForm = context.argc === 3;
  const filter = isOldForm ? { address: context.argString(2) } : parseKillFilter(context);
  if (filter === null) return;
  context.askWorkers('clientKill', filter, (answers) => {
    const killed = answers.reduce((sum, count) => sum + count, 0);
    if (!isOldForm) reply.integer(killed);
    else if (killed === 0) reply.error('ERR No such client');
    else reply.ok();
  });
}

function getName(context: Context): void {
  const { name } = context.client;
  if (name === '') context.reply.nil();
  else context.reply.bulkString(name);
}

function setName(context: Context): void {
  const name = context.argString(2);
  if (!isPrintable(name)) return context.reply.error(BAD_CLIENT_NAME);
  context.client.name = name;
  context.reply.ok();
}

function setInfo(context: Context): void {
  const attribute = context.argString(2);
  const value = context.argString(3);
  const isName = context.argIs(2, 'LIB-NAME');
  if (!isName && !context.argIs(2, 'LIB-VER')) return context.reply.error(`ERR Unrecognized option '${attribute}'`);
  if (!isPrintable(value)) {
    return context.reply.error(`ERR ${attribute} cannot contain spaces, newlines or special characters.`);
  }
  if (isName) context.client.libraryName = value;
  else context.client.libraryVersion = value;
  context.reply.ok();
}

/** ON and OFF of argument 2, or an error reply and null. */
function onOff(context: Context): boolean | null {
  if (context.argIs(2, 'ON')) return true;
  if (context.argIs(2, 'OFF')) return false;
  context.reply.error(SYNTAX);
  return null;
}

function noEvict(context: Context): void {
  const on = onOff(context);
  if (on === null) return;
  context.client.noEvict = on;
  context.reply.ok();
}

function noTouch(context: Context): void {
  const on = onOff(context);
  if (on === null) return;
  context.client.noTouch = on;
  context.reply.ok();
}

function reply(context: Context): void {
  const { client } = context;
  if (context.argIs(2, 'ON')) {
    client.replyMode = ReplyMode.ON;
    context.reply.output.unmuteIfMuted();
    context.reply.ok();
  } else if (context.argIs(2, 'OFF')) {
    client.replyMode = ReplyMode.OFF;
  } else if (context.argIs(2, 'SKIP')) {
    if (client.replyMode !== ReplyMode.OFF) client.replyMode = ReplyMode.SKIP_NEXT;
  } else {
    context.reply.error(SYNTAX);
  }
}

function pause(context: Context): void {
  const { reply } = context;
  if (context.argc > 4) return reply.error(SYNTAX);
  const writesOnly = context.argc === 4 && context.argIs(3, 'WRITE');
  if (context.argc === 4 && !writesOnly && !context.argIs(3, 'ALL')) {
    return reply.error('ERR CLIENT PAUSE mode must be WRITE or ALL');
  }
  const milliseconds = context.argInteger(2);
  if (!Number.isSafeInteger(milliseconds)) return reply.error('ERR timeout is not an integer or out of range');
  if (milliseconds < 0) return reply.error('ERR timeout is negative');
  const untilMs = context.nowMs + milliseconds;
  context.askWorkers('clientPause', { untilMs, writesOnly }, () => reply.ok());
}

function unpause(context: Context): void {
  const { reply } = context;
  context.askWorkers('clientPause', { untilMs: 0, writesOnly: false }, () => reply.ok());
}

function unblock(context: Context): void {
  const { reply } = context;
  if (context.argc > 4) return reply.error(wrongArity('client|unblock'));
  const withError = context.argc === 4 && context.argIs(3, 'ERROR');
  if (context.argc === 4 && !withError && !context.argIs(3, 'TIMEOUT')) {
    return reply.error('ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR');
  }
  const clientId = context.argInteger(2);
  if (Number.isNaN(clientId)) return reply.error(NOT_INTEGER);
  context.askWorkers('clientUnblock', { id: clientId, withError }, (answers) =>
    reply.integer(answers.includes(true) ? 1 : 0),
  );
}

function sub(
  name: string,
  arity: number,
  flags: number,
  since: string,
  summary: string,
  args: readonly ArgumentSpec[],
  run: (context: Context) => void,
  complexity = 'O(1)',
  tips?: readonly string[],
): CommandSpec {
  const categories = Category.CONNECTION;
  return { name, arity, flags, categories, since, group: 'connection', summary, complexity, args, tips, run };
}

const ON_OFF = oneOf('enabled', [tokenArg('ON'), tokenArg('OFF')]);
const CHANGING = ['nondeterministic_output'];
const ALL_NODES = ['request_policy:all_nodes', 'response_policy:all_succeeded'];
const TRACKING_OPTIONS = [
  integerArg('client-id', { token: 'REDIRECT', optional: true }),
  stringArg('prefix', { token: 'PREFIX', optional: true, multiple: true, multipleToken: true }),
  tokenArg('BCAST', { optional: true }),
  tokenArg('OPTIN', { optional: true }),
  tokenArg('OPTOUT', { optional: true }),
  tokenArg('NOLOOP', { optional: true }),
];
const PER_CLIENT = 'O(N), N being the number of connections';
const LIST_TYPE = oneOf(
  'client-type',
  [tokenArg('normal'), tokenArg('master'), tokenArg('replica'), tokenArg('pubsub')],
  { token: 'TYPE', optional: true },
);
const KILL_TYPE = oneOf(
  'client-type',
  [
    tokenArg('normal'),
    tokenArg('master', { since: '3.2.0' }),
    tokenArg('slave'),
    tokenArg('replica', { since: '5.0.0' }),
    tokenArg('pubsub'),
  ],
  { token: 'TYPE', optional: true, since: '2.8.12' },
);
const KILL_FILTER = oneOf('filter', [
  stringArg('old-format'),
  oneOf(
    'new-format',
    [
      integerArg('client-id', { token: 'ID', optional: true, since: '2.8.12' }),
      KILL_TYPE,
      stringArg('username', { token: 'USER', optional: true }),
      stringArg('addr', { token: 'ADDR', optional: true }),
      stringArg('laddr', { token: 'LADDR', optional: true, since: '6.2.0' }),
      oneOf('skipme', [tokenArg('YES'), tokenArg('NO')], { token: 'SKIPME', optional: true }),
      integerArg('maxage', { token: 'MAXAGE', optional: true }),
    ],
    { multiple: true },
  ),
]);

export const clientCommands: readonly CommandSpec[] = [
  {
    name: 'client',
    arity: -2,
    flags: 0,
    categories: Category.NONE,
    since: '2.4.0',
    group: 'connection',
    summary: 'Commands about connections.',
    complexity: 'Depends on the subcommand',
    subcommands: [
      sub('id', 2, PLAIN, '5.0.0', 'Returns the id of this connection.', [], id),
      sub('info', 2, PLAIN | ASKING, '6.2.0', 'Describes this connection.', [], info, 'O(1)', CHANGING),
      sub(
        'list',
        -2,
        ADMIN | ASKING,
        '2.4.0',
        'Describes the open connections, one a line.',
        [LIST_TYPE, integerArg('client-id', { token: 'ID', optional: true, multiple: true })],
        list,
        PER_CLIENT,
        CHANGING,
      ),
      sub('kill', -3, ADMIN | ASKING, '2.4.0', 'Closes connections.', [KILL_FILTER], kill, PER_CLIENT),
      sub('getname', 2, PLAIN, '2.6.9', 'Returns the name of this connection.', [], getName),
      sub(
        'setname',
        3,
        PLAIN,
        '2.6.9',
        'Names this connection.',
        [stringArg('connection-name')],
        setName,
        'O(1)',
        ALL_NODES,
      ),
      sub(
        'setinfo',
        4,
        PLAIN,
        '7.2.0',
        'Tells the name or version of the client library.',
        [oneOf('attr', [stringArg('libname', { token: 'lib-name' }), stringArg('libver', { token: 'lib-ver' })])],
        setInfo,
        'O(1)',
        ALL_NODES,
      ),
      sub('no-evict', 3, ADMIN, '7.0.0', 'Keeps this connection when client memory is short.', [ON_OFF], noEvict),
      sub(
        'no-touch',
        3,
        PLAIN,
        '7.2.0',
        'Makes commands of this connection leave access statistics alone.',
        [ON_OFF],
        noTouch,
      ),
      sub(
        'reply',
        3,
        PLAIN,
        '3.2.0',
        'Switches replies on or off, or skips the next one.',
        [oneOf('action', [tokenArg('ON'), tokenArg('OFF'), tokenArg('SKIP')])],
        reply,
      ),
      sub(
        'pause',
        -3,
        ADMIN | ASKING,
        '3.0.0',
        'Makes commands wait for some milliseconds.',
        [integerArg('timeout'), optional(oneOf('mode', [tokenArg('WRITE'), tokenArg('ALL')]))],
        pause,
      ),
      sub('unpause', 2, ADMIN | ASKING, '6.2.0', 'Ends a pause.', [], unpause, PER_CLIENT),
      sub(
        'unblock',
        -3,
        ADMIN | ASKING,
        '5.0.0',
        'Wakes a connection that waits in a blocking command.',
        [integerArg('client-id'), optional(oneOf('unblock-type', [tokenArg('TIMEOUT'), tokenArg('ERROR')]))],
        unblock,
      ),
      {
        ...sub(
          'tracking',
          -3,
          PLAIN | ASKING,
          '6.0.0',
          'Controls client-side caching.',
          [ON_OFF, ...TRACKING_OPTIONS],
          tracking,
        ),
        asks: askForTarget,
      },
      sub('trackinginfo', 2, PLAIN, '6.2.0', 'Describes client-side caching of this connection.', [], trackingInfo),
      sub(
        'caching',
        3,
        PLAIN,
        '6.0.0',
        'Says whether the next command is cached.',
        [oneOf('mode', [tokenArg('YES'), tokenArg('NO')])],
        caching,
      ),
      sub('getredir', 2, PLAIN, '6.0.0', 'Returns who gets the invalidations of this connection.', [], getRedir),
      helpCommand('client', 'connection', Category.CONNECTION, '5.0.0'),
    ],
  },
];

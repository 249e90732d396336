/**
 * MIGRATE: keys to another server, which gets them by RESTORE, and away from here.
 *
 * The main thread speaks with that server, and meanwhile the client waits, not the worker: the request stays in the input, as in long-work, and
 * runs a second time when the answer is there. What has been changed in between is sent once more. Invariant: a key goes from here only when
 * the other server has said that it has it, as it is at that moment.
 */
import { Notify } from '../../store/change-feed.js';
import { blockArg, integerArg, keyArg, oneOf, optional, stringArg, tokenArg } from '../arguments.js';
import type { Context } from '../context.js';
import type { MigrateAnswer, MigrateQuestion } from '../control.js';
import { NOT_INTEGER, SYNTAX } from '../errors.js';
import { LongWork } from '../long-work.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt, keyBehind } from '../spec.js';
import { payloadOf } from './dump-payload.js';

const DEFAULT_TIMEOUT_MS = 1000;
/** How often keys that others change meanwhile are sent. */
const ROUNDS_MAX = 16;
const CANNOT_WAIT = 'ERR MIGRATE waits for another server, which a transaction or script cannot do';
const NO_SERVER = 'ERR this command needs the server';
const CHANGING = 'ERR keys were changed again and again while they were sent; they stay here, and are there as well';

interface Options {
  copies: boolean;
  replaces: boolean;
  /** Words of AUTH; null = none. */
  auth: readonly Uint8Array[] | null;
  /** Arguments that are keys. */
  firstKey: number;
  lastKey: number;
}

/** A MIGRATE that waits for its answer, or has it. */
class Migration extends LongWork {
  answer: MigrateAnswer | null = null;
  rounds = 1;
  /** What has been sent: arguments of keys, and the states that they had. */
  readonly sent: number[] = [];
  readonly signatures: number[] = [];
}

function migrate(context: Context): void {
  const { reply, client } = context;
  const options = readOptions(context);
  if (options === null) return;
  const timeoutMs = context.argInteger(5);
  const db = context.argInteger(4);
  if (Number.isNaN(timeoutMs) || Number.isNaN(db)) return reply.error(NOT_INTEGER);
  if (context.environment.control === null) return reply.error(NO_SERVER);
  if (context.inTransaction || context.isInScript) return reply.error(CANNOT_WAIT);
  const work = client.work instanceof Migration ? client.work : new Migration(0, false);
  const isAnswered = work.answer !== null;
  const changed = isAnswered ? settle(context, work, options) : null;
  if (isAnswered && changed === null) return;
  const parts = pack(context, work, options, changed ?? keysOf(options));
  if (parts.length === 0) return isAnswered ? reply.ok() : reply.simple('NOKEY');
  send(context, work, {
    host: context.argUtf8(1),
    port: context.argUtf8(2),
    db,
    timeoutMs: timeoutMs > 0 ? timeoutMs : DEFAULT_TIMEOUT_MS,
    auth: options.auth,
    requests: Buffer.concat(parts),
    count: work.sent.length,
  });
}

/** Null after an error reply. */
function readOptions(context: Context): Options | null {
  const options: Options = { copies: false, replaces: false, auth: null, firstKey: 3, lastKey: 3 };
  for (let i = 6; i < context.argc; i++) {
    const wordsLeft = context.argc - 1 - i;
    if (context.argIs(i, 'COPY')) options.copies = true;
    else if (context.argIs(i, 'REPLACE')) options.replaces = true;
    else if (context.argIs(i, 'AUTH') && wordsLeft >= 1) options.auth = [context.argBytes(++i)];
    else if (context.argIs(i, 'AUTH2') && wordsLeft >= 2) options.auth = [context.argBytes(++i), context.argBytes(++i)];
    else if (context.argIs(i, 'KEYS')) {
      if (context.argLength(3) !== 0) {
        context.reply.error('ERR When using MIGRATE KEYS option, the key argument must be set to the empty string');
        return null;
      }
      options.firstKey = i + 1;
      options.lastKey = context.argc - 1;
      break;
    } else {
      context.reply.error(SYNTAX);
      return null;
    }
  }
  return options;
}

function keysOf({ firstKey, lastKey }: Options): number[] {
  return Array.from({ length: lastKey - firstKey + 1 }, (_, k) => firstKey + k);
}

/** The state of the key in argument `i`, on which the cursor stands then; 0 = it is not there. */
function signatureOf(context: Context, i: number): number {
  const { keyspace, input, db } = context;
  return keyspace.watchSignature(context.hashOf(i), db, input, context.argOffset(i), context.argLength(i));
}

/**
 * The answer is there: what has arrived and is still the same goes from here. Returns what has changed meanwhile, or null when the request
 * has been replied to.
 */
function settle(context: Context, work: Migration, options: Options): number[] | null {
  const { reply, keyspace } = context;
  const { acknowledged, error } = work.answer as MigrateAnswer;
  const changed: number[] = [];
  for (const [s, i] of work.sent.entries()) {
    if (!acknowledged[s] || options.copies) continue;
    if (signatureOf(context, i) !== work.signatures[s]) {
      changed.push(i);
      continue;
    }
    keyspace.remove();
    context.notify(Notify.GENERIC, 'del', i);
  }
  if (error === '' && changed.length > 0 && work.rounds++ < ROUNDS_MAX) return changed;
  if (error !== '') reply.error(error);
  else if (changed.length > 0) reply.error(CHANGING);
  else reply.ok();
  return null;
}

/** A RESTORE for each of these keys that is there. */
function pack(context: Context, work: Migration, options: Options, keys: readonly number[]): Uint8Array[] {
  const { keyspace, nowMs } = context;
  const parts: Uint8Array[] = [];
  work.sent.length = 0;
  work.signatures.length = 0;
  // From the second time on they are there.
  const end = options.replaces || work.rounds > 1 ? '\r\n$7\r\nREPLACE\r\n' : '\r\n';
  const words = end === '\r\n' ? 4 : 5;
  for (const i of keys) {
    const signature = signatureOf(context, i);
    if (signature === 0) {
      context.miss();
      continue;
    }
    context.hit();
    const { expiryMs } = keyspace;
    const payload = payloadOf(context, context.hashOf(i), i);
    if (payload === null) continue;
    const ttl = String(expiryMs === 0 ? 0 : Math.max(1, expiryMs - nowMs));
    const key = context.argBytes(i);
    parts.push(
      Buffer.from(`*${words}\r\n$7\r\nRESTORE\r\n$${key.length}\r\n`),
      key,
      Buffer.from(`\r\n$${ttl.length}\r\n${ttl}\r\n$${payload.length}\r\n`),
      payload.bytes.u8.slice(0, payload.length),
      Buffer.from(end),
    );
    work.sent.push(i);
    work.signatures.push(signature);
  }
  return parts;
}

/** The client waits; when the answer is there, its request runs again. */
function send(context: Context, work: Migration, question: MigrateQuestion): void {
  work.answer = null;
  work.goesOn = true;
  context.client.work = work;
  context.askMain('migrate', question, (answer) => {
    work.answer = answer;
  });
}

function findKeys(context: Context, add: (argument: number, use: number) => void): void {
  for (let i = 6; i < context.argc; i++) {
    if (context.argIs(i, 'AUTH')) i += 1;
    else if (context.argIs(i, 'AUTH2')) i += 2;
    else if (context.argIs(i, 'KEYS')) {
      if (context.argLength(3) !== 0) return;
      for (let k = i + 1; k < context.argc; k++) add(k, USE);
      return;
    }
  }
  if (context.argc > 3) add(3, USE);
}

const USE = KeyUse.RW | KeyUse.ACCESS | KeyUse.DELETE;

export const migrations: readonly CommandSpec[] = [
  {
    name: 'migrate',
    arity: -6,
    flags: Flag.WRITE,
    categories: Category.KEYSPACE | Category.DANGEROUS,
    keys: [keyAt(3, USE), { ...keyBehind('KEYS', -2, USE | KeyUse.INCOMPLETE), find: { last: -1, step: 1, limit: 0 } }],
    findKeys,
    since: '2.6.0',
    group: 'generic',
    summary: 'Gives keys to another server; they go from here once they are there.',
    complexity: 'O(N) for a value of N bytes, here and there, and its way through the network',
    history: [
      ['3.0.0', 'COPY and REPLACE.'],
      ['3.0.6', 'KEYS.'],
      ['4.0.7', 'AUTH.'],
      ['6.0.0', 'AUTH2.'],
    ],
    tips: ['nondeterministic_output'],
    args: [
      stringArg('host'),
      integerArg('port'),
      oneOf('key-selector', [keyArg('key'), { ...tokenArg('""'), name: 'empty-string' }]),
      integerArg('destination-db'),
      integerArg('timeout'),
      optional(tokenArg('COPY', { since: '3.0.0' })),
      optional(tokenArg('REPLACE', { since: '3.0.0' })),
      oneOf(
        'authentication',
        [
          stringArg('auth', { token: 'AUTH', since: '4.0.7' }),
          blockArg('auth2', [stringArg('username'), stringArg('password')], { token: 'AUTH2', since: '6.0.0' }),
        ],
        { optional: true },
      ),
      keyArg('keys', { token: 'KEYS', keySpec: 1, optional: true, multiple: true, since: '3.0.6' }),
    ],
    run: migrate,
  },
];

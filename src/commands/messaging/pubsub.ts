/**
 * Pub/sub commands: SUBSCRIBE and its relatives, PUBLISH, PUBSUB, the sharded forms.
 *
 * Each name of a (un)subscribe command gets a reply of its own, a push in RESP3; subscriptions and delivery are messaging/
 * subscriptions' business. Counts that commands reply are those of all workers.
 */

import { Bytes } from '../../layout/bytes.js';
import { InterestKind } from '../../layout/interest.js';
import { type ArgumentSpec, optional, patternArg, stringArg } from '../arguments.js';
import type { Context } from '../context.js';
import { NO_MEMORY } from '../errors.js';
import { globMatches } from '../glob.js';
import { byteString } from '../numbers.js';
import { helpCommand } from '../server/help.js';
import { Category, type CommandSpec, Flag, KeyUse, keyAt, keysFrom } from '../spec.js';
import { Scope, type Subscribers } from './subscriptions.js';

const PUBSUB = Flag.PUBSUB | Flag.LOADING | Flag.STALE;
const SUBSCRIBES = PUBSUB | Flag.NOSCRIPT;

const SUBSCRIBE_WORDS = ['subscribe', 'psubscribe', 'ssubscribe'];
const UNSUBSCRIBE_WORDS = ['unsubscribe', 'punsubscribe', 'sunsubscribe'];

// ---- subscribing

function subscribeTo(context: Context, scope: Scope): void {
  const { client, reply, executor } = context;
  const { hub } = executor;
  for (let i = 1; i < context.argc; i++) {
    const name = context.argString(i);
    if (!hub.listen() || !hub.subscriptions.subscribe(client, scope, name)) return reply.error(NO_MEMORY);
    confirm(context, SUBSCRIBE_WORDS[scope], name, scope);
  }
  hub.attentionChanged(client);
}

function unsubscribeFrom(context: Context, scope: Scope): void {
  const { client, executor } = context;
  const { subscriptions } = executor.hub;
  const names: string[] = [];
  for (let i = 1; i < context.argc; i++) names.push(context.argString(i));
  if (names.length === 0) names.push(...subscriptions.namesOf(client, scope));
  for (const name of names) {
    subscriptions.unsubscribe(client, scope, name);
    confirm(context, UNSUBSCRIBE_WORDS[scope], name, scope);
  }
  if (names.length === 0) confirm(context, UNSUBSCRIBE_WORDS[scope], null, scope);
  executor.hub.attentionChanged(client);
}

function confirm({ client, reply }: Context, word: string, name: string | null, scope: Scope): void {
  const subscription = client.subscription!;
  // It goes out as messages do, whatever CLIENT REPLY says.
  reply.output.unmuteIfMuted();
  reply.push(3);
  reply.bulkString(word);
  if (name === null) reply.nil();
  else reply.bulkString(name);
  reply.integer(scope === Scope.SHARD ? subscription.shardChannels.size : subscription.count);
}

// ---- publishing

function publishOn(context: Context, kind: InterestKind.CHANNEL | InterestKind.SHARD_CHANNEL): void {
  const { input, executor } = context;
  const clients = executor.hub.subscriptions.publish(
    kind,
    input,
    context.argOffset(1),
    context.argLength(1),
    input,
    context.argOffset(2),
    context.argLength(2),
  );
  context.reply.integer(clients);
}

// ---- PUBSUB

/** Names that one worker's clients subscribe to, as its answer to the others. */
export function matchingNames(subscribers: Subscribers, pattern: string | null): string[] {
  if (pattern === null) return [...subscribers.keys()];
  const glob = Bytes.from(Buffer.from(pattern, 'latin1'));
  return [...subscribers.keys()].filter((name) => {
    const text = Bytes.from(Buffer.from(name, 'latin1'));
    return globMatches(glob, 0, glob.length, text, 0, text.length, false);
  });
}

function listChannels(context: Context, isShard: boolean): void {
  const { environment, executor } = context;
  const pattern = context.argc > 2 ? context.argString(2) : null;
  if ((environment.control?.workerCount ?? 1) === 1) {
    const { channels, shardChannels } = executor.hub.subscriptions;
    return replyNames(context, matchingNames(isShard ? shardChannels : channels, pattern));
  }
  context.askWorkers('channels', { pattern, isShard }, (answers) => replyNames(context, [...new Set(answers.flat())]));
}

function replyNames({ reply }: Context, names: readonly string[]): void {
  reply.array(names.length);
  for (const name of names) reply.bulkString(name);
}

function countSubscribers(context: Context, kind: InterestKind): void {
  const { reply, input, executor } = context;
  reply.array((context.argc - 2) * 2);
  for (let i = 2; i < context.argc; i++) {
    const offset = context.argOffset(i);
    const length = context.argLength(i);
    reply.bulkString(byteString(input, offset, length));
    reply.integer(executor.hub.subscriptions.subscribersOf(kind, input, offset, length));
  }
}

function countPatterns(context: Context): void {
  context.reply.integer(context.executor.hub.subscriptions.patternCount);
}

// ---- declarations

const CHANNELS = stringArg('channel', { multiple: true });
const SHARD_CHANNELS = stringArg('shardchannel', { multiple: true });

function command(
  name: string,
  arity: number,
  flags: number,
  since: string,
  summary: string,
  complexity: string,
  args: readonly ArgumentSpec[],
  run: (context: Context) => void,
  keys?: CommandSpec['keys'],
): CommandSpec {
  return {
    name,
    arity,
    flags,
    categories: Category.PUBSUB,
    since,
    group: 'pubsub',
    summary,
    complexity,
    args,
    run,
    keys,
  };
}

const PER_NAME = 'O(N), N being the number of names';
const PER_CLIENT = 'O(N+M), N being the subscribers of the channel and M the number of pattern subscriptions';

function sub(
  name: string,
  arity: number,
  since: string,
  summary: string,
  complexity: string,
  args: readonly ArgumentSpec[],
  run: (context: Context) => void,
  flags: number = PUBSUB,
): CommandSpec {
  return command(name, arity, flags, since, summary, complexity, args, run);
}

export const pubsub: readonly CommandSpec[] = [
  command(
    'subscribe',
    -2,
    SUBSCRIBES,
    '2.0.0',
    'Listens to the messages of channels.',
    PER_NAME,
    [CHANNELS],
    (context) => subscribeTo(context, Scope.CHANNEL),
  ),
  command(
    'unsubscribe',
    -1,
    SUBSCRIBES,
    '2.0.0',
    'Stops listening to channels, or to all.',
    PER_NAME,
    [optional(CHANNELS)],
    (context) => unsubscribeFrom(context, Scope.CHANNEL),
  ),
  command(
    'psubscribe',
    -2,
    SUBSCRIBES,
    '2.0.0',
    'Listens to the messages of all channels whose names match a pattern.',
    PER_NAME,
    [patternArg('pattern', { multiple: true })],
    (context) => subscribeTo(context, Scope.PATTERN),
  ),
  command(
    'punsubscribe',
    -1,
    SUBSCRIBES,
    '2.0.0',
    'Stops listening to patterns, or to all.',
    PER_NAME,
    [patternArg('pattern', { multiple: true, optional: true })],
    (context) => unsubscribeFrom(context, Scope.PATTERN),
  ),
  command(
    'publish',
    3,
    PUBSUB | Flag.FAST | Flag.MAY_REPLICATE,
    '2.0.0',
    'Sends a message to the subscribers of a channel; returns how many clients get it.',
    PER_CLIENT,
    [stringArg('channel'), stringArg('message')],
    (context) => publishOn(context, InterestKind.CHANNEL),
  ),
  command(
    'ssubscribe',
    -2,
    SUBSCRIBES,
    '7.0.0',
    'Listens to the messages of shard channels.',
    PER_NAME,
    [SHARD_CHANNELS],
    (context) => subscribeTo(context, Scope.SHARD),
    [keysFrom(1, KeyUse.NOT_KEY)],
  ),
  command(
    'sunsubscribe',
    -1,
    SUBSCRIBES,
    '7.0.0',
    'Stops listening to shard channels, or to all.',
    PER_NAME,
    [optional(SHARD_CHANNELS)],
    (context) => unsubscribeFrom(context, Scope.SHARD),
    [keysFrom(1, KeyUse.NOT_KEY)],
  ),
  command(
    'spublish',
    3,
    PUBSUB | Flag.FAST | Flag.MAY_REPLICATE,
    '7.0.0',
    'Sends a message to the subscribers of a shard channel; returns how many clients get it.',
    'O(N), N being the subscribers of the channel',
    [stringArg('shardchannel'), stringArg('message')],
    (context) => publishOn(context, InterestKind.SHARD_CHANNEL),
    [keyAt(1, KeyUse.NOT_KEY)],
  ),
  {
    name: 'pubsub',
    arity: -2,
    flags: 0,
    categories: Category.NONE,
    since: '2.8.0',
    group: 'pubsub',
    summary: 'Commands about pub/sub.',
    complexity: 'Depends on the subcommand',
    subcommands: [
      sub(
        'channels',
        -2,
        '2.8.0',
        'Returns the channels with subscribers.',
        'O(N), N being the number of channels',
        [patternArg('pattern', { optional: true })],
        (context) => listChannels(context, false),
        PUBSUB | Flag.ASKS,
      ),
      sub(
        'numsub',
        -2,
        '2.8.0',
        'Returns how many clients subscribe to each of these channels.',
        PER_NAME,
        [optional(CHANNELS)],
        (context) => countSubscribers(context, InterestKind.CHANNEL),
      ),
      sub('numpat', 2, '2.8.0', 'Returns how many patterns are subscribed to.', 'O(1)', [], countPatterns),
      sub(
        'shardchannels',
        -2,
        '7.0.0',
        'Returns the shard channels with subscribers.',
        'O(N), N being the number of shard channels',
        [patternArg('pattern', { optional: true })],
        (context) => listChannels(context, true),
        PUBSUB | Flag.ASKS,
      ),
      sub(
        'shardnumsub',
        -2,
        '7.0.0',
        'Returns how many clients subscribe to each of these shard channels.',
        PER_NAME,
        [optional(SHARD_CHANNELS)],
        (context) => countSubscribers(context, InterestKind.SHARD_CHANNEL),
      ),
      helpCommand('pubsub', 'pubsub', Category.NONE, '6.2.0'),
    ],
  },
];

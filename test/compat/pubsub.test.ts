/** Pub/sub against redis-server: replies, messages, subscriber mode, counts; several connections at once. */
import { it } from 'vitest';
import { compareConversations, type Line } from '../helpers/conversation.js';
import { describeWithRedis } from '../helpers/redis-oracle.js';

/** Both protocols: the same lines after HELLO 3 on every connection. */
const in3 = (lines: readonly Line[]): Line[] => {
  const names = [...new Set(lines.map(([name]) => name))];
  return [...names.map((name): Line => [name, 'HELLO 3']), ...lines];
};
/** HELLO's reply names the server and its version. */
const withoutHello = (text: string): string => text.replace(/^%7\r\n[\s\S]*?modules\r\n\*0\r\n/, '');

const TALK: readonly Line[] = [
  ['a', 'SUBSCRIBE one two one'],
  ['b', 'PSUBSCRIBE o* *o'],
  ['p', 'PUBLISH one hello'],
  ['p', ['PUBLISH', 'two', 'with\r\nline ends and \xff bytes']],
  ['p', 'PUBLISH three nobody'],
  ['p', ['PUBLISH', '', '']],
  ['a', 'UNSUBSCRIBE two nope'],
  ['p', 'PUBLISH two again'],
  ['b', 'SUBSCRIBE one'],
  ['p', 'PUBLISH one both'],
  ['b', 'PUNSUBSCRIBE'],
  ['b', 'PUNSUBSCRIBE'],
  ['b', 'UNSUBSCRIBE'],
  ['b', 'UNSUBSCRIBE'],
  ['p', 'PUBLISH one rest'],
  ['a', 'UNSUBSCRIBE'],
  ['p', 'PUBLISH one none'],
  ['a', 'GET k'],
  ['s', 'SSUBSCRIBE one two'],
  ['s', 'SUBSCRIBE one'],
  ['p', 'SPUBLISH one shard'],
  ['p', 'PUBLISH one plain'],
  ['p', 'SPUBLISH none x'],
  ['s', 'SUNSUBSCRIBE one'],
  ['s', 'SUNSUBSCRIBE'],
  ['s', 'SUNSUBSCRIBE'],
  ['p', 'SPUBLISH one x'],
];

describeWithRedis('pub/sub', (peers) => {
  it('subscribing, publishing, unsubscribing', () => compareConversations(peers, TALK));
  it('the same in RESP3', () => compareConversations(peers, in3(TALK), withoutHello));

  it('what a subscriber may do', () =>
    compareConversations(peers, [
      ['a', 'SUBSCRIBE c'],
      ['a', 'PING'],
      ['a', 'PING text'],
      ['a', 'GET k'],
      ['a', 'MULTI'],
      ['a', 'CONFIG GET maxmemory'],
      ['a', 'PUBLISH c x'],
      ['a', 'nope'],
      ['a', 'GET'],
      ['a', 'RESET'],
      ['a', 'GET k'],
      ['p', 'PUBLISH c x'],
      ['a', 'SSUBSCRIBE c'],
      ['a', 'GET k'],
      ['a', 'SUNSUBSCRIBE c'],
      ['a', 'GET k'],
      ['q', 'SUBSCRIBE c'],
      ['q', 'QUIT'],
      ['p', 'PUBLISH c x'],
    ]));

  it('PUBSUB', () =>
    compareConversations(peers, [
      ['a', 'SUBSCRIBE one'],
      ['b', 'SUBSCRIBE one'],
      ['b', 'PSUBSCRIBE x* y*'],
      ['a', 'PSUBSCRIBE x*'],
      ['a', 'SSUBSCRIBE s'],
      ['p', 'PUBSUB CHANNELS'],
      ['p', 'PUBSUB CHANNELS o*'],
      ['p', 'PUBSUB CHANNELS x*'],
      ['p', 'PUBSUB NUMSUB one two s'],
      ['p', 'PUBSUB NUMSUB'],
      ['p', 'PUBSUB NUMPAT'],
      ['p', 'PUBSUB SHARDCHANNELS'],
      ['p', 'PUBSUB SHARDCHANNELS x'],
      ['p', 'PUBSUB SHARDNUMSUB s one'],
      ['p', 'PUBSUB NUMPAT x'],
      ['p', 'PUBSUB'],
      ['p', 'PUBSUB NOPE'],
      ['p', 'SUBSCRIBE'],
      ['p', 'PUBLISH x'],
      ['p', 'MULTI'],
      ['p', 'PUBLISH one in-multi'],
      ['p', 'PUBSUB NUMSUB one'],
      ['p', 'EXEC'],
    ]));

  it('inside a transaction, and with replies switched off', () =>
    compareConversations(peers, [
      ['a', 'MULTI'],
      ['a', 'SUBSCRIBE x y'],
      ['a', 'PING'],
      ['a', 'EXEC'],
      ['p', 'PUBLISH x 1'],
      ['b', 'CLIENT REPLY OFF'],
      ['b', 'SUBSCRIBE x'],
      ['p', 'PUBLISH x 2'],
      ['b', 'UNSUBSCRIBE x'],
      ['b', 'CLIENT REPLY ON'],
    ]));

  it('messages of one pipeline', () =>
    compareConversations(peers, [
      ['a', 'SUBSCRIBE x'],
      ['b', 'PSUBSCRIBE *'],
      ['p', Array.from({ length: 200 }, (_, i) => `PUBLISH x ${i}`).join('\r\n')],
      ['p', ['PUBLISH', 'x', 'y'.repeat(300_000)]],
      ['p', ['PUBLISH', 'x', 'z'.repeat(5_000_000)]],
    ]));
});

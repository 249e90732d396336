/** Client-side caching and MONITOR against redis-server, several connections at once. */
import { it } from 'vitest';
import { compareConversations, type Line } from '../helpers/conversation.js';
import { describeWithRedis } from '../helpers/redis-oracle.js';

/** HELLO's reply names the server and its version; a monitor's lines begin with the time and name ports. */
const withoutHello = (text: string): string => text.replace(/%7\r\n[\s\S]*?modules\r\n\*0\r\n/g, '');
const withoutTimes = (text: string): string => text.replace(/\+\d+\.\d+ \[(\d+) [^\]]*\]/g, '+TIME [$1]');

/** Those of the control connection come when they come. */
const withoutBarriers = (text: string): string => text.replaceAll('+TIME [0] "PING"\r\n', '');

const client = (name: string, ...requests: string[]): Line[] => requests.map((request) => [name, request]);

describeWithRedis('client tracking', (peers) => {
  it('of keys that were read', () =>
    compareConversations(
      peers,
      [
        ...client('a', 'HELLO 3', 'CLIENT TRACKING on', 'GET k', 'MGET k x y', 'SET own 1', 'GET own'),
        ...client('w', 'SET k 1', 'SET k 2', 'DEL x', 'DEL none', 'EXPIRE k 100', 'SET unread 1'),
        ...client('a', 'GET k', 'SET own 2', 'GET own', 'GET own', 'INCR own'),
        ...client('w', 'EXPIRE k 200', 'PERSIST k', 'APPEND k x'),
        ...client('a', 'GET k', 'STRLEN y', 'CLIENT TRACKING off'),
        ...client('w', 'SET k 1', 'SET y 1'),
      ],
      withoutHello,
    ));

  it('of flushes', () =>
    compareConversations(
      peers,
      [
        ...client('a', 'HELLO 3', 'CLIENT TRACKING on', 'GET k'),
        ...client('b', 'HELLO 3', 'CLIENT TRACKING on BCAST', 'GET k'),
        ...client('w', 'FLUSHALL', 'SET k 1', 'FLUSHDB'),
        ...client('a', 'GET k', 'FLUSHDB'),
      ],
      withoutHello,
    ));

  it('with OPTIN, OPTOUT, NOLOOP', () =>
    compareConversations(
      peers,
      [
        ...client('a', 'HELLO 3', 'CLIENT TRACKING on OPTIN', 'GET x', 'CLIENT CACHING yes', 'GET k', 'GET y'),
        ...client('w', 'MSET x 1 k 1 y 1'),
        ...client('a', 'CLIENT CACHING yes', 'MULTI', 'GET x', 'GET y', 'EXEC', 'GET k'),
        ...client('w', 'MSET x 1 k 1 y 1'),
        ...client('b', 'HELLO 3', 'CLIENT TRACKING on OPTOUT', 'GET x', 'CLIENT CACHING no', 'GET k', 'GET y'),
        ...client('w', 'MSET x 1 k 1 y 1'),
        ...client('c', 'HELLO 3', 'CLIENT TRACKING on NOLOOP', 'GET x', 'SET x 5', 'GET x'),
        ...client('w', 'MSET x 1 k 1 y 1'),
      ],
      withoutHello,
    ));

  it('by prefix', () =>
    compareConversations(
      peers,
      [
        ...client('a', 'HELLO 3', 'CLIENT TRACKING on BCAST PREFIX user: PREFIX item:'),
        ...client('b', 'HELLO 3', 'CLIENT TRACKING on BCAST NOLOOP'),
        ...client('w', 'SET user:1 x', 'SET other x', 'MSET user:3 1 user:2 1 item:5 1 z 1', 'DEL user:1 nope'),
        ...client('b', 'SET user:9 x'),
        ...client(
          'a',
          'SET user:8 x',
          'CLIENT TRACKINGINFO',
          'CLIENT TRACKING on BCAST PREFIX more:',
          'CLIENT TRACKINGINFO',
        ),
      ],
      withoutHello,
    ));

  it('redirected to a subscriber of RESP2', () =>
    compareConversations(
      peers,
      [
        ...client('r', 'SUBSCRIBE __redis__:invalidate'),
        ...client('a', 'CLIENT TRACKING on REDIRECT 999999', 'CLIENT TRACKING on', 'GET k', 'CLIENT GETREDIR'),
        ...client('w', 'SET k 1'),
      ],
      withoutHello,
    ));

  it('refusals', () =>
    compareConversations(peers, [
      ...client(
        'a',
        'CLIENT TRACKING',
        'CLIENT TRACKING maybe',
        'CLIENT TRACKING on PREFIX x',
        'CLIENT TRACKING on BCAST OPTIN',
        'CLIENT TRACKING on OPTIN OPTOUT',
        'CLIENT TRACKING on NOPE',
        'CLIENT TRACKING on REDIRECT x',
        'CLIENT TRACKING on REDIRECT',
        'CLIENT TRACKING on BCAST PREFIX foo PREFIX foobar',
        'CLIENT CACHING yes',
        'CLIENT GETREDIR',
        'CLIENT TRACKINGINFO',
        'CLIENT TRACKING on OPTIN',
        'CLIENT TRACKINGINFO',
        'CLIENT TRACKING on OPTOUT',
        'CLIENT TRACKING on BCAST',
        'CLIENT CACHING no',
        'CLIENT CACHING maybe',
        'CLIENT CACHING yes',
        'CLIENT TRACKINGINFO',
        'CLIENT GETREDIR',
        'CLIENT TRACKING off',
        'CLIENT TRACKING on BCAST PREFIX foo',
        'CLIENT TRACKING on BCAST PREFIX foob',
        'CLIENT TRACKING on BCAST PREFIX fo',
        'CLIENT TRACKING off',
        'CLIENT TRACKING off',
        'CLIENT TRACKINGINFO',
      ),
    ]));
});

describeWithRedis('MONITOR', (peers) => {
  it('shows what is executed', () =>
    compareConversations(
      peers,
      [
        ...client('m', 'MONITOR'),
        ...client('w', 'SET k v', 'GET k', 'get k', 'CONFIG GET maxmemory', 'nope', 'GET', 'SELECT 3', 'GET k'),
        ['w', ['SET', 'bytes', 'quote " backslash \\ \r\n\t\x07\x08 \x00\xff']],
        ...client('w', 'MULTI', 'SET k 1', 'GET k', 'EXEC', 'AUTH user secret', 'PING'),
        ...client('w', 'CLIENT SETNAME x', 'SUBSCRIBE c', 'UNSUBSCRIBE c', 'DEBUG SLEEP 0'),
        ...client('m', 'GET k', 'SET k 1', 'PUBLISH a b', 'TIME', 'RESET', 'GET k'),
      ],
      (text) => withoutBarriers(withoutTimes(text)).replace(/\*2\r\n\$10\r\n\d+\r\n\$\d\r\n\d+\r\n/, 'TIME'),
    ));
});

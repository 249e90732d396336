/** BZPOPMIN, BZPOPMAX, BZMPOP against redis-server: at once, after a wait, and when time is up. */
import { it } from 'vitest';
import { compareConversations } from '../helpers/conversation.js';
import { describeWithRedis } from '../helpers/redis-oracle.js';

const HELLO = { except: [{ step: /^HELLO/, because: 'it names the server' }] };

describeWithRedis('sorted set commands that wait', (peers) => {
  it('at once, in time, and what they refuse', () =>
    peers.compare(
      [
        'ZADD z 1 a 2 b 3 c 4 d',
        'BZPOPMIN nope z 0',
        'BZPOPMAX z nope 0',
        'BZMPOP 0 2 nope z MIN',
        'BZMPOP 0 2 nope z MAX COUNT 5',
        'BZPOPMIN z 0.01',
        'BZPOPMAX z 0.01',
        'BZMPOP 0.01 1 z MIN',
        'BZPOPMIN z x',
        'BZPOPMIN z -1',
        'BZMPOP x 1 z MIN',
        'BZMPOP 0 0 z MIN',
        'BZMPOP 0 1 z FOO',
        'BZMPOP 0 1 z MIN COUNT 0',
        'SET s 1',
        'BZPOPMIN s 0',
        'BZMPOP 0 1 s MIN',
        'MULTI',
        'BZPOPMIN z 0',
        'BZMPOP 0 1 z MIN',
        'EXEC',
        'HELLO 3',
        'ZADD z 1 a 2.5 b',
        'BZPOPMIN z 0',
        'BZMPOP 0 1 z MIN',
        'BZPOPMIN z 0.01',
      ],
      HELLO,
    ));

  it('in the order in which they came', () =>
    compareConversations(peers, [
      ['a', 'BZPOPMIN x y 0'],
      ['b', 'BZPOPMAX y 0'],
      ['c', 'BZMPOP 0 2 y x MIN COUNT 2'],
      ['w', 'SET other 1'],
      ['w', 'ZADD y 1 one'],
      ['w', 'ZADD y 1 one 2 two'],
      ['w', 'SADD src m n'],
      ['w', 'ZUNIONSTORE x 1 src'],
      ['w', 'ZRANGE x 0 -1'],
      ['w', 'ZRANGE y 0 -1'],
      ['a', 'BZPOPMIN list 0'],
      ['w', 'RPUSH list e'],
      ['w', 'DEL list'],
      ['w', 'ZADD src2 7 seven'],
      ['w', 'RENAME src2 list'],
      ['w', 'EXISTS list'],
    ]));
});

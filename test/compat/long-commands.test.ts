/** Commands on collections that are large enough for steps, against redis-server, reply by reply. */
import { it } from 'vitest';
import { describeWithRedis, type Step } from '../helpers/redis-oracle.js';

const ELEMENTS = 4000;
const HELLO = { except: [{ step: /^HELLO/, because: 'it names the server' }] };
const numbers = Array.from({ length: ELEMENTS }, (_, i) => i);

function fill(key: string, add: string, words: (i: number) => readonly string[]): Step {
  return [add, key, ...numbers.flatMap(words)];
}

describeWithRedis('large collections', (peers) => {
  it('lists', () =>
    peers.compare([
      fill('l', 'RPUSH', (i) => [`e${i % 9}`]),
      'LPOS l e5 RANK -2 COUNT 3',
      'LPOS l e5 COUNT 0 MAXLEN 100',
      'LPOS l e5 RANK 300',
      'LPOS l e5 RANK -9999',
      'LPOS l nothing',
      'LINSERT l AFTER e8 x',
      'LINSERT l BEFORE nothing x',
      'LREM l 3 e1',
      'LREM l -500 e2',
      'LREM l 1700 e3',
      'LLEN l',
      'LRANGE l 0 -1',
      'LTRIM l 100 -600',
      'LRANGE l 0 -1',
      'LPOP l 1500',
      'RPOP l 5000',
      'EXISTS l',
      fill('m', 'RPUSH', (i) => [i % 2 === 0 ? 'same' : `e${i}`]),
      'LREM m 0 same',
      'LRANGE m 0 -1',
      'LTRIM m 5 1',
      'EXISTS m',
    ]));

  it('sorted sets', () =>
    peers.compare([
      fill('z', 'ZADD', (i) => [String(i >> 2), `m${i}`]),
      'ZREMRANGEBYRANK z 100 1500',
      'ZRANGE z 0 -1 WITHSCORES',
      'ZREMRANGEBYSCORE z (500 900',
      'ZRANGE z 0 -1',
      'ZCARD z',
      'ZADD z 500 m2004 7 m17',
      'ZRANK z m2004',
      fill('y', 'ZADD', (i) => ['1', `m${i}`]),
      'ZREMRANGEBYLEX y [m1 (m3',
      'ZRANGE y 0 -1',
      'ZPOPMIN y 1200',
      'ZPOPMAX y 5000',
      'EXISTS y',
      fill('x', 'ZADD', (i) => [String(i), `m${i}`]),
      'ZPOPMAX x 1100',
      'ZRANGE x -3 -1 WITHSCORES',
      'ZREMRANGEBYRANK x 0 -1',
      'EXISTS x',
    ]));

  it('streams', () =>
    peers.compare(
      [
        ...numbers.slice(1, 2600).map((i): Step => `XADD s ${i}-0 field ${i}`),
        'XRANGE s - +',
        'XREAD STREAMS s 7-0',
        'XREAD COUNT 1500 BLOCK 10 STREAMS s 0',
        'XREAD STREAMS s none 1000-0 0',
        'HELLO 3',
        'XREAD STREAMS s 0',
        'HELLO 2',
        'XREVRANGE s + - COUNT 2000',
        'XTRIM s MAXLEN ~ 1000',
        'XLEN s',
        'XTRIM s MAXLEN 1500',
        'XRANGE s - + COUNT 2',
        'XTRIM s MINID 2300',
        'XRANGE s - +',
        'XADD s MAXLEN 7 3000-0 field last',
        'XRANGE s - +',
        'XTRIM s MAXLEN 0',
        'XLEN s',
        'EXISTS s',
      ],
      HELLO,
    ));
});

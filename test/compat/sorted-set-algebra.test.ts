/** Sorted sets from sorted sets, and their ends, against redis-server; scores as in sorted-sets.test.ts. */
import fc from 'fast-check';
import { it } from 'vitest';
import { describeWithRedis, type Step } from '../helpers/redis-oracle.js';

const HELLO = { except: [{ step: /^HELLO/, because: 'it names the server' }] };

const many = (key: string, count: number, step: number): Step[] => [
  ['ZADD', key, ...Array.from({ length: count * 2 }, (_, i) => (i % 2 === 0 ? `${i % 31}` : `m${i * step}`))],
];

/** A flat or nested reply of pairs in an order of its own: random elements come in any. */
function sorted(reply: string): string {
  if (!/^[*%~]/.test(reply)) return reply;
  const [head, ...rest] = reply.split('\r\n');
  return `${head}|${rest.sort().join('|')}`;
}

describeWithRedis('sorted sets together', (peers) => {
  it('ZUNION, ZINTER, ZDIFF, ZINTERCARD and their STORE forms', () =>
    peers.compare(
      [
        'ZADD a 1 one 2 two 3 three inf far',
        'ZADD b 4 two 5 three 6 four -inf far',
        'ZADD c 0.5 three 7 five',
        'SADD s two three six',
        ...['ZUNION', 'ZINTER', 'ZDIFF'].flatMap((name) => [
          `${name} 1 a`,
          `${name} 2 a b`,
          `${name} 2 a b WITHSCORES`,
          `${name} 3 a b c WITHSCORES`,
          `${name} 2 a s WITHSCORES`,
          `${name} 2 s a WITHSCORES`,
          `${name} 2 a nope WITHSCORES`,
          `${name} 2 nope a`,
          `${name} 2 a a WITHSCORES`,
          `${name} 2 a b WEIGHTS 2 0.5 WITHSCORES`,
          `${name} 2 a b WEIGHTS 0 inf WITHSCORES`,
          `${name} 2 a b WEIGHTS 2`,
          `${name} 2 a b WEIGHTS 2 x`,
          `${name} 2 a b AGGREGATE MIN WITHSCORES`,
          `${name} 2 a b AGGREGATE max WITHSCORES`,
          `${name} 2 a b AGGREGATE avg`,
          `${name} 2 a b AGGREGATE`,
          `${name} 0 a`,
          `${name} x a`,
          `${name} 3 a b`,
          `${name} 2 a b FOO`,
          `${name}STORE d 2 a b`,
          'ZRANGE d 0 -1 WITHSCORES',
          `${name}STORE a2 3 a b c`,
          'ZRANGE a2 0 -1 WITHSCORES',
          `${name}STORE d 2 a b WEIGHTS 1 -1 AGGREGATE MAX`,
          'ZRANGE d 0 -1 WITHSCORES',
          `${name}STORE d 2 a b WITHSCORES`,
          `${name}STORE d 0 a b`,
          `${name}STORE d 1 nope`,
          'EXISTS d',
          'SET str x',
          `${name} 2 a str`,
          `${name}STORE d 2 a str`,
          `${name}STORE str 2 a b`,
          'TYPE str',
          'ZADD self 1 one 9 nine',
          `${name}STORE self 2 self a`,
          'ZRANGE self 0 -1 WITHSCORES',
        ]),
        'ZINTERCARD 2 a b',
        'ZINTERCARD 2 a b LIMIT 1',
        'ZINTERCARD 2 a b LIMIT 0',
        'ZINTERCARD 1 a LIMIT 2',
        'ZINTERCARD 2 a b LIMIT -1',
        'ZINTERCARD 2 a b LIMIT x',
        'ZINTERCARD 2 a nope',
        'ZINTERCARD 0 a',
        'ZINTERCARD 3 a b',
        'ZINTERCARD 2 a b FOO',
        ...many('big', 400, 2),
        ...many('other', 300, 3),
        'ZUNIONSTORE u 2 big other',
        'OBJECT ENCODING u',
        'ZRANGE u 0 -1 WITHSCORES',
        'ZINTERSTORE i 2 big other AGGREGATE MIN',
        'OBJECT ENCODING i',
        'ZRANGE i 0 -1 WITHSCORES',
        'ZDIFFSTORE e 2 big other',
        'ZRANGE e 0 -1 WITHSCORES',
        'HELLO 3',
        'ZUNION 2 a b',
        'ZUNION 2 a b WITHSCORES',
        'ZDIFF 1 c WITHSCORES',
      ],
      HELLO,
    ));

  it('ZRANGESTORE', () =>
    peers.compare([
      'ZADD z 1 a 2 b 3 c 4 d',
      'ZRANGESTORE d z 1 2',
      'ZRANGE d 0 -1 WITHSCORES',
      'ZRANGESTORE d z 0 1 REV',
      'ZRANGE d 0 -1 WITHSCORES',
      'ZRANGESTORE d z (1 3 BYSCORE LIMIT 1 5',
      'ZRANGE d 0 -1 WITHSCORES',
      'ZRANGESTORE d z 4 2 BYSCORE REV LIMIT 0 2',
      'ZRANGE d 0 -1 WITHSCORES',
      'ZRANGESTORE z z 1 2',
      'ZRANGE z 0 -1 WITHSCORES',
      'ZADD l 0 a 0 b 0 c',
      'ZRANGESTORE d l [b + BYLEX',
      'ZRANGE d 0 -1 WITHSCORES',
      'ZRANGESTORE d z 5 9',
      'EXISTS d',
      'ZRANGESTORE d nope 0 1',
      'ZRANGESTORE d z 0 1 WITHSCORES',
      'ZRANGESTORE d z x 1',
      'ZRANGESTORE d z 0 1 LIMIT 0 1',
      'SET s 1',
      'ZRANGESTORE d s 0 1',
      'ZRANGESTORE s z 0 1',
      'TYPE s',
      ...many('big', 300, 1),
      'ZRANGESTORE d big 10 200',
      'OBJECT ENCODING d',
      'ZRANGE d 0 -1 WITHSCORES',
    ]));

  it('ZPOPMIN, ZPOPMAX, ZMPOP', () =>
    peers.compare(
      [
        ...['2', '3'].flatMap((version): Step[] => [
          `HELLO ${version}`,
          'ZADD z 1 a 2 b 3 c 4 d 5 e 6 f',
          'ZPOPMIN z',
          'ZPOPMAX z',
          'ZPOPMIN z 0',
          'ZPOPMAX z 2',
          'ZPOPMIN z 100',
          'EXISTS z',
          'ZPOPMIN z',
          'ZPOPMAX z 3',
          'ZADD z 1 a 2 b 3 c',
          'ZPOPMAX z 3',
          'EXISTS z',
          'ZADD y 1 a 2 b 3 c',
          'ZMPOP 2 z y MIN',
          'ZMPOP 2 z y MAX COUNT 5',
          'ZMPOP 2 z y MAX COUNT 5',
        ]),
        'ZPOPMIN z -1',
        'ZPOPMIN z x',
        'ZPOPMIN z 1 2',
        'ZMPOP 0 z MIN',
        'ZMPOP x z MIN',
        'ZMPOP 1 z',
        'ZMPOP 1 z FOO',
        'ZMPOP 1 z MIN COUNT 0',
        'ZMPOP 1 z MIN COUNT',
        'ZMPOP 1 z MIN COUNT 1 COUNT 2',
        'ZMPOP 5 z MIN',
        'SET s 1',
        'ZPOPMIN s',
        'ZPOPMAX s 0',
        'ZMPOP 2 z s MIN',
        ...many('big', 500, 1),
        'ZPOPMIN big 200',
        'ZPOPMAX big 200',
        'ZMPOP 1 big MIN COUNT 50',
        'ZRANGE big 0 -1 WITHSCORES',
        'ZPOPMAX big 50',
        'EXISTS big',
      ],
      HELLO,
    ));

  it('ZRANDMEMBER', () =>
    peers.compare(
      [
        'ZRANDMEMBER nope',
        'ZRANDMEMBER nope 3',
        'ZADD z 1 a',
        'ZRANDMEMBER z',
        'ZRANDMEMBER z -3',
        'ZRANDMEMBER z -2 WITHSCORES',
        'ZADD z 2 b 3 c',
        'ZRANDMEMBER z 3',
        'ZRANDMEMBER z 100 WITHSCORES',
        'ZRANDMEMBER z 0',
        'ZRANDMEMBER z x',
        'ZRANDMEMBER z 1 FOO',
        'ZRANDMEMBER z 1 WITHSCORES x',
        'ZRANDMEMBER z -9223372036854775808',
        'ZRANDMEMBER z 9223372036854775807 WITHSCORES',
        'SET s 1',
        'ZRANDMEMBER s',
        ...many('big', 300, 1),
        'ZRANDMEMBER big 300 WITHSCORES',
        'HELLO 3',
        'ZRANDMEMBER z 3 WITHSCORES',
      ],
      { normalize: sorted, ...HELLO },
    ));

  it('in random histories', () =>
    fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 100, maxLength: 200 }), async (steps) => {
        await peers.compare(['FLUSHALL', 'CONFIG SET zset-max-listpack-entries 12', ...steps]);
      }),
      { numRuns: 8 },
    ));
});

const key = fc.constantFrom('a', 'b', 'c');
const member = fc.integer({ min: 0, max: 30 }).map((n) => `m${n}`);
const score = fc.integer({ min: -20, max: 20 }).map((n) => String(n / 4));
const word = (...options: string[]): fc.Arbitrary<string> => fc.constantFrom(...options);
const text = (...parts: fc.Arbitrary<string>[]): fc.Arbitrary<string> =>
  fc.tuple(...parts).map((drawn) => drawn.filter((part) => part !== '').join(' '));

const step: fc.Arbitrary<string> = fc.oneof(
  { weight: 8, arbitrary: text(word('ZADD'), key, score, member, score, member, score, member) },
  text(word('SADD'), word('s'), member, member),
  text(
    word('ZUNION', 'ZINTER'),
    word('3'),
    key,
    key,
    word('a', 's', 'nope'),
    word('', 'WEIGHTS 1 -2 0.5'),
    word('', 'AGGREGATE MIN', 'AGGREGATE MAX'),
    word('WITHSCORES'),
  ),
  text(word('ZUNIONSTORE', 'ZINTERSTORE', 'ZDIFFSTORE'), key, word('2'), key, word('a', 's', 'b')),
  text(word('ZDIFF'), word('2'), key, key, word('WITHSCORES')),
  text(word('ZINTERCARD'), word('2'), key, key, word('', 'LIMIT 3')),
  text(
    word('ZRANGESTORE'),
    key,
    key,
    word('1', '(-1'),
    word('5', '-2', '(3'),
    word('', 'BYSCORE', 'BYSCORE REV', 'REV'),
  ),
  text(word('ZPOPMIN', 'ZPOPMAX'), key, word('', '2', '5')),
  text(word('ZMPOP 2'), key, key, word('MIN', 'MAX'), word('', 'COUNT 3')),
  text(word('ZRANGE'), key, word('0 -1 WITHSCORES')),
  text(word('OBJECT ENCODING', 'ZCARD'), key),
);

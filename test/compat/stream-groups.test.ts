/**
 * Consumer groups against redis-server, reply by reply. Times are left out; what 7.2 answers otherwise than 7.0 is put into the form of 7.0, and
 * tested in src/commands/streams/stream-groups.test.ts.
 */
import fc from 'fast-check';
import { it } from 'vitest';
import { describeWithRedis, type Step } from '../helpers/redis-oracle.js';

/** Field of XINFO's replies whose number is left out. */
const TIMES =
  /(\r\n\$(?:4\r\nidle|9\r\nseen-time|10\r\nseen-time|15\r\nradix-tree-keys|16\r\nradix-tree-nodes)\r\n):\d+/g;
/** Fields of 7.2 alone. */
const NEWER = /\$(?:8\r\ninactive|11\r\nactive-time)\r\n:-?\d+\r\n/g;

/** Time of a delivery, in XINFO STREAM FULL. */
const DELIVERED = /((?:\*3\r\n\$\d+\r\n\d+-\d+|\*4\r\n\$\d+\r\n\d+-\d+\r\n\$\d+\r\n[^\r]*)\r\n):\d{6,}/g;
/** With a field less the maps of consumers are shorter. */
const CONSUMER = /(?:\*(?:6|8|10)|%[345])(\r\n\$4\r\nname\r\n)/g;

function normalize(reply: string, step: Step): string {
  const shown = typeof step === 'string' ? step : step.join(' ');
  if (/^XINFO/i.test(shown)) {
    return reply.replace(NEWER, '').replace(TIMES, '$1:0').replace(DELIVERED, '$1:0').replace(CONSUMER, '*n$1');
  }
  // id, consumer, idle time, deliveries
  if (/^XPENDING/i.test(shown)) return reply.replace(/(\*4\r\n\$\d+\r\n\d+-\d+\r\n\$\d+\r\n[^\r]*\r\n):\d+/g, '$1:0');
  return reply;
}

const OPTIONS = {
  normalize,
  except: [{ step: /^HELLO/, because: 'it names the server' }],
};

/** Everything that can be seen of a stream. */
function look(key: string, ...groups: readonly string[]): Step[] {
  return [
    `XINFO STREAM ${key}`,
    `XINFO STREAM ${key} FULL`,
    `XINFO STREAM ${key} FULL COUNT 2`,
    `XINFO GROUPS ${key}`,
    ...groups.flatMap((group) => [
      `XINFO CONSUMERS ${key} ${group}`,
      `XPENDING ${key} ${group}`,
      `XPENDING ${key} ${group} - + 100`,
    ]),
  ];
}

const entries = (key: string, count: number): Step[] =>
  Array.from({ length: count }, (_, i): Step => `XADD ${key} ${i + 1}-0 item ${i} other x${i}`);

describeWithRedis('consumer groups', (peers) => {
  it('XGROUP', () =>
    peers.compare(
      [
        'XGROUP CREATE s g 0',
        'XGROUP CREATE s g $ MKSTREAM',
        'XGROUP CREATE s g $ MKSTREAM',
        'XGROUP CREATE s g x',
        'XLEN s',
        'TYPE s',
        'XGROUP CREATE s empty $',
        ...entries('s', 5),
        'XGROUP CREATE s all 0',
        'XGROUP CREATE s last $',
        'XGROUP CREATE s some 3 ENTRIESREAD 3',
        'XGROUP CREATE s h 3-5 ENTRIESREAD -1 MKSTREAM',
        'XGROUP CREATE s bad x',
        'XGROUP CREATE s bad -',
        'XGROUP CREATE s bad 0 ENTRIESREAD -2',
        'XGROUP CREATE s bad 0 ENTRIESREAD x',
        'XGROUP CREATE s bad 0 ENTRIESREAD',
        'XGROUP CREATE s bad 0 FOO',
        'XGROUP CREATE s bad',
        'XGROUP CREATE s',
        'XGROUP FOO s g',
        'XGROUP',
        'XGROUP SETID s g 2',
        'XGROUP SETID s g 2 ENTRIESREAD 2',
        'XGROUP SETID s g 2 ENTRIESREAD -2',
        'XGROUP SETID s g 2 MKSTREAM',
        'XGROUP SETID s g $',
        'XGROUP SETID s g -',
        'XGROUP SETID s g +',
        'XGROUP SETID s g x',
        'XGROUP SETID s nope 2',
        'XGROUP SETID nope g 2',
        'XGROUP CREATECONSUMER s g a',
        'XGROUP CREATECONSUMER s g a',
        'XGROUP CREATECONSUMER s g b',
        'XGROUP CREATECONSUMER s nope b',
        'XGROUP CREATECONSUMER nope g b',
        'XGROUP CREATECONSUMER s g',
        'XGROUP DELCONSUMER s g b',
        'XGROUP DELCONSUMER s g b',
        'XGROUP DELCONSUMER s nope b',
        'XGROUP DELCONSUMER nope g b',
        ...look('s', 'g', 'all', 'last', 'some', 'h'),
        'XGROUP DESTROY s g',
        'XGROUP DESTROY s g',
        'XGROUP DESTROY nope g',
        ...look('s', 'g', 'all'),
        'XGROUP CREATE s g 0',
        ...look('s', 'g', 'all'),
        ['XGROUP', 'CREATE', 's', 'bin\0\xff\r\n', '0'],
        ['XGROUP', 'CREATE', 's', '', '0'],
        ['XGROUP', 'CREATE', 's', 'g'.repeat(3000), '0'],
        ['XGROUP', 'CREATECONSUMER', 's', 'g'.repeat(3000), 'c'.repeat(3000)],
        ['XREADGROUP', 'GROUP', 'g'.repeat(3000), 'c'.repeat(3000), 'COUNT', '2', 'STREAMS', 's', '>'],
        ['XREADGROUP', 'GROUP', '', '', 'COUNT', '2', 'STREAMS', 's', '>'],
        'XINFO STREAM s FULL',
        ['XGROUP', 'DELCONSUMER', 's', 'g'.repeat(3000), 'c'.repeat(3000)],
        ['XGROUP', 'DESTROY', 's', 'g'.repeat(3000)],
        'XINFO STREAM s FULL',
        'SET str 1',
        'XGROUP CREATE str g 0',
        'XGROUP CREATE str g 0 MKSTREAM',
        'XGROUP DESTROY str g',
        'XREADGROUP GROUP g c STREAMS str >',
        'XACK str g 1',
        'XPENDING str g',
        'XCLAIM str g c 0 1',
        'XAUTOCLAIM str g c 0 0',
        'XINFO STREAM str',
        'XINFO GROUPS str',
        'XINFO STREAM nope',
        'XINFO GROUPS nope',
        'XINFO CONSUMERS nope g',
        'XINFO CONSUMERS s nope',
        'XINFO STREAM s FOO',
        'XINFO STREAM s FULL COUNT',
        'XINFO STREAM s FULL COUNT x',
        'XINFO STREAM s FULL FOO 3',
        'XINFO STREAM s FULL COUNT 0',
        'XINFO STREAM s FULL COUNT -1',
        'XINFO FOO s',
        'XINFO',
        'XINFO STREAM',
        'OBJECT ENCODING s',
      ],
      OPTIONS,
    ));

  it('XREADGROUP and XACK', () =>
    peers.compare(
      [
        ...entries('s', 12),
        'XGROUP CREATE s g 0',
        'XREADGROUP GROUP g a COUNT 3 STREAMS s >',
        'XREADGROUP GROUP g b COUNT 2 STREAMS s >',
        'XREADGROUP GROUP g a NOACK COUNT 1 STREAMS s >',
        'XREADGROUP NOACK GROUP g n COUNT 1 STREAMS s >',
        ...look('s', 'g'),
        'XREADGROUP GROUP g a STREAMS s 0',
        'XREADGROUP GROUP g a STREAMS s 2-0',
        'XREADGROUP GROUP g a COUNT 1 STREAMS s 0',
        'XREADGROUP GROUP g b STREAMS s 0-0',
        'XREADGROUP GROUP g new STREAMS s 0',
        'XREADGROUP GROUP g new COUNT 1 STREAMS s 99',
        ...look('s', 'g'),
        'XDEL s 2-0 9-0',
        'XREADGROUP GROUP g a STREAMS s 0',
        'XREADGROUP GROUP g b STREAMS s >',
        'XREADGROUP GROUP g b STREAMS s >',
        'XREADGROUP GROUP g b BLOCK 1 STREAMS s >',
        ...look('s', 'g'),
        'XACK s g 1-0 2-0 99-0 1-0',
        'XACK s g 3',
        'XACK s g x',
        'XACK s g 4-0 x',
        'XACK s nope 4-0',
        'XACK nope g 4-0',
        'XACK s g',
        ...look('s', 'g'),
        'XGROUP SETID s g 0',
        'XREADGROUP GROUP g c COUNT 4 STREAMS s >',
        ...look('s', 'g'),
        'XREADGROUP GROUP g c STREAMS s >',
        ...look('s', 'g'),
        'XGROUP DELCONSUMER s g c',
        ...look('s', 'g'),
        ...entries('t', 3),
        'XGROUP CREATE t g 1',
        'XADD s 20-0 a b',
        'XREADGROUP GROUP g a STREAMS s t > >',
        'XREADGROUP GROUP g a STREAMS s t 0 >',
        'XADD t 20-0 a b',
        'XREADGROUP GROUP g a STREAMS s t > >',
        'XREADGROUP GROUP g a STREAMS s t > >',
        'XREADGROUP GROUP g a STREAMS s nope > >',
        'XREADGROUP GROUP nope a STREAMS s t > >',
        'XREADGROUP GROUP g a STREAMS s t >',
        'XREADGROUP GROUP g a STREAMS s $',
        'XREADGROUP GROUP g a STREAMS s x',
        'XREADGROUP GROUP g a STREAMS s -',
        'XREADGROUP GROUP g a COUNT x STREAMS s >',
        'XREADGROUP GROUP g a FOO 1 STREAMS s >',
        'XREADGROUP GROUP g a BLOCK -1 STREAMS s >',
        'XREADGROUP COUNT 1 COUNT 2 COUNT 3 STREAMS s >',
        'XREADGROUP STREAMS s t u > > >',
        'XREADGROUP GROUP g',
        'MULTI',
        'XREADGROUP GROUP g a BLOCK 0 STREAMS s >',
        'XADD s 21-0 a b',
        'XREADGROUP GROUP g a BLOCK 0 STREAMS s >',
        'XACK s g 21-0',
        'EXEC',
        ['EVAL', "return redis.call('XREADGROUP', 'GROUP', 'g', 'a', 'STREAMS', KEYS[1], '0')", '1', 's'],
        'COMMAND GETKEYS XREADGROUP GROUP g STREAMS COUNT 1 STREAMS a b > >',
        'HELLO 3',
        'XREADGROUP GROUP g a STREAMS s t 0 0',
        'XREADGROUP GROUP g a STREAMS s t > >',
        ...look('s', 'g'),
        'XPENDING t nope',
      ],
      {
        ...OPTIONS,
        except: [...OPTIONS.except, { step: /STREAMS s t >$/, because: '7.2 quotes the command' }],
      },
    ));

  it('XPENDING, XCLAIM and XAUTOCLAIM', () =>
    peers.compare(
      [
        ...entries('s', 12),
        'XGROUP CREATE s g 0',
        'XPENDING s g',
        'XPENDING s g - + 10',
        'XREADGROUP GROUP g a COUNT 5 STREAMS s >',
        'XREADGROUP GROUP g b COUNT 5 STREAMS s >',
        'XPENDING s g',
        'XPENDING s g - + 3',
        'XPENDING s g 3 (6 10',
        'XPENDING s g (3 6 10',
        'XPENDING s g - + 10 b',
        'XPENDING s g (6-0 + 2 b',
        'XPENDING s g - + 10 nope',
        'XPENDING s g - + 0',
        'XPENDING s g - + -1',
        'XPENDING s g + - 5',
        'XPENDING s g IDLE 0 - + 4',
        'XPENDING s g IDLE 100000 - + 4',
        'XPENDING s g IDLE 100000 - + 4 a',
        'XPENDING s g IDLE 0 - + 4 a',
        'XPENDING s g IDLE x - + 4',
        'XPENDING s g IDLE 0 - +',
        'XPENDING s g IDLE 0 - ',
        'XPENDING s g - +',
        'XPENDING s g - + x',
        'XPENDING s g x + 1',
        'XPENDING s g - x 1',
        'XPENDING s g (- + 1',
        'XPENDING s g - + 1 a b c d',
        'XPENDING nope g',
        'XPENDING s nope - + 1',
        'XCLAIM s g c 0 1-0 6-0 99-0 12-0',
        'XCLAIM s g c 0 2-0 JUSTID',
        'XCLAIM s g c 100000 3-0',
        'XCLAIM s g c 0 3-0 IDLE 50000',
        'XCLAIM s g d 40000 3-0',
        'XCLAIM s g d 0 4-0 TIME 1000 RETRYCOUNT 7',
        'XCLAIM s g d 0 11-0 FORCE',
        'XCLAIM s g d 0 12-0 FORCE JUSTID',
        'XCLAIM s g d 0 99-0 FORCE',
        'XCLAIM s g d 0 5-0 RETRYCOUNT 0 JUSTID',
        'XCLAIM s g d -5 5-0 LASTID 20-0',
        'XCLAIM s g d 0 5-0 LASTID 3-0',
        'XCLAIM s g d 0 5-0 IDLE -100',
        ...look('s', 'g'),
        'XCLAIM s g d x 5-0',
        'XCLAIM s g d 0 x',
        'XCLAIM s g d 0 5-0 FOO',
        'XCLAIM s g d 0 5-0 IDLE x',
        'XCLAIM s g d 0 5-0 TIME x',
        'XCLAIM s g d 0 5-0 RETRYCOUNT x',
        'XCLAIM s g d 0 5-0 LASTID x',
        'XCLAIM s g d 0 5-0 IDLE',
        'XCLAIM s nope d 0 5-0',
        'XCLAIM nope g d 0 5-0',
        'XCLAIM s g d 0',
        'XDEL s 1-0 5-0 8-0',
        'XCLAIM s g z 0 1-0 2-0 5-0 JUSTID',
        'XPENDING s g',
        'XAUTOCLAIM s g y 0 - COUNT 2',
        'XAUTOCLAIM s g y 0 (3-0 COUNT 3 JUSTID',
        'XAUTOCLAIM s g y 100000 0',
        'XAUTOCLAIM s g y 0 7-0 COUNT 1',
        'XAUTOCLAIM s g y 0 8-0 COUNT 1',
        'XAUTOCLAIM s g y 0 99',
        'XAUTOCLAIM s g y 0 0',
        'XDEL s 2-0 3-0 4-0',
        'XAUTOCLAIM s g w 0 0 COUNT 2',
        'XAUTOCLAIM s g w 0 0',
        ...look('s', 'g'),
        'XAUTOCLAIM s g w x 0',
        'XAUTOCLAIM s g w 0 x',
        'XAUTOCLAIM s g w 0 (18446744073709551615-18446744073709551615',
        'XAUTOCLAIM s g w 0 0 COUNT 0',
        'XAUTOCLAIM s g w 0 0 COUNT -1',
        'XAUTOCLAIM s g w 0 0 COUNT 9223372036854775807',
        'XAUTOCLAIM s g w 0 0 FOO',
        'XAUTOCLAIM s nope w 0 0',
        'XAUTOCLAIM nope g w 0 0',
        'XAUTOCLAIM s g w 0',
        'COPY s t',
        ...look('t', 'g'),
        'RENAME t u',
        ...look('u', 'g'),
        'XREADGROUP GROUP g w STREAMS u 0',
        'XADD u 50-0 item x other y',
        'XREADGROUP GROUP g w STREAMS u >',
        ...look('u', 'g'),
        'XINFO STREAM s',
      ],
      OPTIONS,
    ));

  it('counters of what a group has read', () =>
    peers.compare(
      [
        'XGROUP CREATE s g $ MKSTREAM',
        'XINFO GROUPS s',
        ...entries('s', 6),
        'XINFO GROUPS s',
        'XREADGROUP GROUP g a COUNT 1 STREAMS s >',
        'XINFO GROUPS s',
        'XGROUP CREATE s h 3-0',
        'XGROUP CREATE s i 0',
        'XINFO GROUPS s',
        'XREADGROUP GROUP h a COUNT 1 STREAMS s >',
        'XINFO GROUPS s',
        'XREADGROUP GROUP h a STREAMS s >',
        'XINFO GROUPS s',
        'XDEL s 4-0',
        'XINFO GROUPS s',
        'XREADGROUP GROUP g a COUNT 1 STREAMS s >',
        'XINFO GROUPS s',
        'XREADGROUP GROUP g a COUNT 2 STREAMS s >',
        'XINFO GROUPS s',
        'XREADGROUP GROUP g a STREAMS s >',
        'XINFO GROUPS s',
        'XTRIM s MAXLEN 1',
        'XINFO GROUPS s',
        'XGROUP SETID s g 2',
        'XINFO GROUPS s',
        'XTRIM s MAXLEN 0',
        'XINFO GROUPS s',
        'XADD s 9-0 a b',
        'XINFO GROUPS s',
        'XREADGROUP GROUP i a STREAMS s >',
        'XINFO GROUPS s',
      ],
      OPTIONS,
    ));

  it('in random histories', () =>
    fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 150, maxLength: 400, size: 'max' }), async (steps) => {
        const begin = ['FLUSHALL', 'XGROUP CREATE b g 0 MKSTREAM', ...consumers('b', 'g'), 'COPY b a'];
        const end = [...look('a', 'g', 'h'), ...look('b', 'g', 'h')];
        await peers.compare([...begin, ...steps.flat(), ...end], OPTIONS);
      }),
      { numRuns: Number(process.env.ENTRESOL_STREAM_RUNS ?? 12) },
    ));
});

const text = (...parts: fc.Arbitrary<string>[]): fc.Arbitrary<string> =>
  fc.tuple(...parts).map((drawn) => drawn.filter((word) => word !== '').join(' '));
const word = (...options: string[]): fc.Arbitrary<string> => fc.constantFrom(...options);
const number = (max: number): fc.Arbitrary<string> => fc.integer({ min: 0, max }).map(String);
const key = word('a', 'a', 'b');
const group = word('g', 'g', 'g', 'h');
const consumer = word('x', 'y', 'z');
const id = fc.tuple(number(40), number(3)).map((parts) => parts.join('-'));
const bound = fc.oneof(
  { weight: 5, arbitrary: id },
  word('-', '+'),
  id.map((each) => `(${each}`),
);
const count = word('', 'COUNT 1', 'COUNT 3', 'COUNT 20');

/** All consumers: 7.0 does not make one that gets nothing. */
function consumers(key: string, group: string): string[] {
  return ['x', 'y', 'z'].map((consumer) => `XGROUP CREATECONSUMER ${key} ${group} ${consumer}`);
}

const change: fc.Arbitrary<string> = fc.oneof(
  {
    weight: 12,
    arbitrary: text(
      word('XADD'),
      key,
      number(40).map((ms) => `${ms}-*`),
      word('f v', 'f w g h'),
    ),
  },
  { weight: 2, arbitrary: text(word('XDEL'), key, id, id) },
  { weight: 1, arbitrary: text(word('XTRIM'), key, word('MAXLEN'), number(30)) },
  {
    weight: 10,
    arbitrary: text(
      word('XREADGROUP GROUP'),
      group,
      consumer,
      count,
      word('', '', 'NOACK'),
      word('STREAMS'),
      key,
      word('>'),
    ),
  },
  { weight: 3, arbitrary: text(word('XREADGROUP GROUP'), group, consumer, count, word('STREAMS'), key, id) },
  {
    weight: 2,
    arbitrary: text(word('XREADGROUP GROUP g'), consumer, count, word('STREAMS a b'), word('>', '0'), word('>')),
  },
  { weight: 6, arbitrary: text(word('XACK'), key, group, id, id, id) },
  {
    weight: 3,
    arbitrary: text(
      word('XCLAIM'),
      key,
      group,
      consumer,
      word('0', '0', '100000'),
      id,
      id,
      word('', 'JUSTID', 'FORCE', 'RETRYCOUNT 3'),
    ),
  },
  {
    weight: 3,
    arbitrary: text(word('XAUTOCLAIM'), key, group, consumer, word('0', '0', '100000'), id, count, word('', 'JUSTID')),
  },
  { weight: 2, arbitrary: text(word('XPENDING'), key, group, bound, bound, word('2', '20'), word('', 'x')) },
  { weight: 1, arbitrary: text(word('XPENDING'), key, group) },
  { weight: 1, arbitrary: text(word('XGROUP SETID'), key, group, fc.oneof(id, word('$'))) },
  { weight: 1, arbitrary: text(word('XGROUP DESTROY'), key, word('h')) },
  { weight: 1, arbitrary: text(word('XINFO GROUPS'), key) },
  { weight: 1, arbitrary: text(word('XINFO CONSUMERS'), key, group) },
  { weight: 1, arbitrary: word('COPY a b REPLACE', 'COPY b a REPLACE', 'RENAME b a', 'XSETID a 50-0') },
);

const step: fc.Arbitrary<string[]> = fc.oneof(
  { weight: 60, arbitrary: change.map((each) => [each]) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(key, group, consumer)
      .map(([k, g, c]) => [`XGROUP DELCONSUMER ${k} ${g} ${c}`, `XGROUP CREATECONSUMER ${k} ${g} ${c}`]),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(key, fc.oneof(id, word('$')))
      .map(([k, from]) => [`XGROUP CREATE ${k} h ${from}`, ...consumers(k, 'h')]),
  },
);

/** SORT and SORT_RO against redis-server, in the locale C; where sets have no order, the requests give one. */
import fc from 'fast-check';
import { it } from 'vitest';
import { describeWithRedis, type Step } from '../helpers/redis-oracle.js';

const DATA: Step[] = [
  'RPUSH l 3 1 2 10 -5 1.5',
  'RPUSH names carol alice bob Dave',
  'SADD s 5 3 9 1',
  'SADD words pear fig apple',
  'ZADD z 3 c 1 a 2 b 4 d',
  'MSET w_3 30 w_1 10 w_2 20 w_10 5 w_-5 7 w_1.5 8',
  'MSET t_a red t_b blue t_c green',
  'MSET o_3 three o_1 one o_2 two o_10 ten',
  'HSET h_3 n 300 name III',
  'HSET h_1 n 100 name I',
  'HSET h_2 n 200',
  'HSET h_10 n 50 name X',
  'SET x-> arrow',
];

/** The bodies of SORT and SORT_RO. */
const READS = [
  'l',
  'l DESC',
  'l ASC DESC ASC',
  'l ALPHA',
  'l ALPHA DESC',
  'l LIMIT 0 2',
  'l LIMIT 2 10 DESC',
  'l LIMIT 10 1',
  'l LIMIT -1 2',
  'l LIMIT 1 -5',
  'l LIMIT 1 0',
  'l LIMIT 0 9223372036854775807',
  'l LIMIT x 1',
  'l LIMIT 1 x',
  'l LIMIT 1',
  'names',
  'names ALPHA',
  'names ALPHA DESC LIMIT 1 2',
  's',
  's DESC',
  's ALPHA',
  'words ALPHA',
  'words',
  'words ALPHA DESC LIMIT 0 1',
  'z ALPHA',
  'z ALPHA DESC',
  'z BY nosort',
  'z BY nosort DESC',
  'z BY nosort LIMIT 1 2',
  'z BY nosort DESC LIMIT 1 2',
  'z BY nosort LIMIT 3 10',
  'z BY nosort LIMIT 4 10',
  'l BY nosort',
  'l BY nosort DESC',
  'l BY nosort DESC LIMIT 1 2',
  'l BY nosort LIMIT 4 10 GET #',
  'l BY w_*',
  'l BY w_* DESC',
  'l BY nokey_*',
  'l BY nokey_* DESC',
  'z BY t_* ALPHA',
  'z BY t_* ALPHA DESC',
  'z BY t_*',
  'l BY w_* GET o_*',
  'l BY w_* GET # GET o_* GET nokey_* GET fixed',
  'l BY h_*->n',
  'l BY h_*->n GET h_*->name GET #',
  'l BY h_*->nofield GET h_*->',
  'l BY o_*->n GET o_*->n',
  'l BY nosort GET w_*',
  'l BY nosort BY w_*',
  'l BY w_* BY nosort',
  'l GET l*',
  'l GET *',
  'l GET # GET #',
  'l GET h_*',
  'names BY t_* ALPHA GET t_*',
  'names GET #->x ALPHA',
  'nokey',
  'nokey BY w_* GET #',
  'nokey LIMIT 0 1',
  'w_3',
  'h_3',
  'l FOO',
  'l BY',
  'l GET',
  'l STORE',
  'l LIMIT',
];

/** Redis forgets to clear errno: one number out of range spoils what is sorted after it. So they come last. */
const OUT_OF_RANGE = ['1e-310', '1e-400', '1e400'];

describeWithRedis('SORT', (peers) => {
  it('and SORT_RO', () =>
    peers.compare([
      ...DATA,
      ...READS.flatMap((rest) => [`SORT ${rest}`, `SORT_RO ${rest}`]),
      'SORT',
      'SORT_RO l STORE d',
    ]));

  it('of large collections', () => {
    const numbers = Array.from({ length: 3000 }, (_, i) => String((i * 7919) % 3001));
    return peers.compare([
      ['RPUSH', 'list', ...numbers],
      ['SADD', 'set', ...numbers],
      ['ZADD', 'zset', ...numbers.flatMap((n, i) => [String(i % 50), n])],
      ['MSET', ...numbers.flatMap((n) => [`w_${n}`, String((Number(n) * 31) % 1009)])],
      ...['list', 'set', 'zset'].flatMap((key): Step[] => [
        `SORT ${key}`,
        `SORT ${key} DESC ALPHA LIMIT 100 50`,
        `SORT ${key} BY w_* GET # GET w_*`,
        `SORT ${key} BY w_* DESC STORE ${key}2`,
        `LRANGE ${key}2 0 -1`,
        `SORT ${key} ALPHA STORE ${key}`,
        `LRANGE ${key} 0 -1`,
      ]),
      'SORT zset BY nosort LIMIT 1000 20 DESC',
    ]);
  });

  it('STORE', () =>
    peers.compare([
      ...DATA,
      'SORT l STORE d',
      'LRANGE d 0 -1',
      'TYPE d',
      'SORT l BY w_* GET # GET o_* GET fixed STORE d',
      'LRANGE d 0 -1',
      'SORT l DESC LIMIT 1 2 STORE d',
      'LRANGE d 0 -1',
      'SORT words BY nosort STORE d',
      'LRANGE d 0 -1',
      'SORT words BY nosort DESC LIMIT 0 2 STORE d',
      'LRANGE d 0 -1',
      'SORT z BY nosort STORE d',
      'LRANGE d 0 -1',
      'SORT names STORE d',
      'LRANGE d 0 -1',
      'SORT nokey STORE d',
      'EXISTS d',
      'SORT nokey STORE d',
      'SET d x',
      'SORT s STORE x STORE d',
      'LRANGE d 0 -1',
      'EXISTS x',
      'SORT l STORE l',
      'LRANGE l 0 -1',
      'SORT s LIMIT 100 1 STORE d',
      'EXISTS d',
      "EVAL \"return redis.call('SORT', KEYS[1], 'BY', 'nosort')\" 1 words",
      "EVAL \"return redis.call('SORT', KEYS[1], 'BY', 'w_*', 'GET', 'o_*')\" 1 l",
      'MULTI',
      'SORT s BY w_* GET o_* STORE m',
      'SORT s DESC',
      'LRANGE m 0 -1',
      'EXEC',
      'COMMAND GETKEYS SORT a BY b GET c STORE d LIMIT 1 2 STORE e',
      'COMMAND GETKEYS SORT a BY STORE GET STORE',
      'COMMAND GETKEYSANDFLAGS SORT a STORE e',
      'COMMAND GETKEYS SORT_RO a BY b*',
    ]));

  it('BY and GET with a user who may not read every key', () =>
    peers.compare([
      ...DATA,
      'ACL SETUSER some on nopass +@all ~l ~w_* ~d',
      'ACL SETUSER reads on nopass +@all %R~* ~d',
      'ACL SETUSER selector on nopass +@all ~l (+sort ~*)',
      ...['some', 'reads', 'selector'].flatMap((user): Step[] => [
        `AUTH ${user} x`,
        'SORT l',
        'SORT l BY nosort',
        'SORT l BY w_*',
        'SORT l GET #',
        'SORT l GET w_*',
        'SORT_RO l BY w_*',
        'SORT_RO l GET w_* FOO',
        'SORT l STORE d',
        'SORT l BY w_* STORE d',
      ]),
      'AUTH default x',
      'ACL DELUSER some reads selector',
    ]));

  it('in random requests', () =>
    fc.assert(
      fc.asyncProperty(fc.array(request, { minLength: 60, maxLength: 120 }), (requests) =>
        peers.compare([...DATA, ...requests]),
      ),
      { numRuns: 10 },
    ));

  it('of numbers in every form', () =>
    peers.compare([
      ...['1e3', ' 5', '+5', '0x10', '-0x1.8p1', '0x', 'inf', '-inf', '.5', '5.', '.', '1e', '0e500']
        .concat(['nan', '5 ', '', '9007199254740993', '-0', '1_0', 'infinity', '12345678901234567890123'])
        .flatMap((text): Step[] => ['DEL n', ['RPUSH', 'n', '7', text], 'SORT n']),
      ['RPUSH', 'nul', '3\0x', '2\0', '1'],
      'SORT nul',
      'RPUSH same 1 1.0 01 1e0 +1',
      'SORT same',
      'SORT same DESC',
      ...OUT_OF_RANGE.flatMap((text) => ['DEL n', `RPUSH n ${text}`, 'SORT n']),
    ]));
});

const word = (...options: string[]): fc.Arbitrary<string> => fc.constantFrom(...options);
const text = (...parts: fc.Arbitrary<string>[]): fc.Arbitrary<string> =>
  fc.tuple(...parts).map((drawn) => drawn.filter((part) => part !== '').join(' '));
const key = word('l', 'z', 's', 'names', 'words', 'd');
const get = word('', 'GET #', 'GET o_*', 'GET h_*->n', 'GET h_*->name GET w_*', 'GET none');

/** Elements that BY finds equal by text, or not at all, come in Redis's own order of sets: numbers are put in order by their bytes. */
const request: fc.Arbitrary<string> = fc.oneof(
  {
    weight: 6,
    arbitrary: text(
      word('SORT', 'SORT', 'SORT_RO'),
      key,
      word('', 'BY w_*', 'BY h_*->n', 'BY t_*', 'BY o_*'),
      word('', 'LIMIT 0 3', 'LIMIT 1 2', 'LIMIT 3 -1'),
      get,
      word('', 'DESC'),
      get,
    ),
  },
  text(word('SORT'), key, word('ALPHA'), word('', 'DESC'), word('', 'LIMIT 1 2'), get, word('', 'STORE d')),
  text(word('SORT'), key, word('', 'BY nosort', 'BY w_*'), word('', 'DESC'), get, word('STORE d')),
  word('LRANGE d 0 -1', 'RPUSH l 4 4', 'DEL d', 'ZADD z 9 7 8 2 1 q', 'SADD s 11 20'),
);

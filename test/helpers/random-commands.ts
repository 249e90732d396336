/**
 * Random histories of string, bit, hash, set, list, key and expiry commands over a few keys.
 *
 * Arguments are drawn so that most commands do something and some are wrong. Left out is what may differ between two servers: times to
 * the millisecond, random choices, and the errors of bit ranges on missing keys, which Redis 7.2 changed.
 */
import fc from 'fast-check';

/** The words of one request. */
export type Request = readonly (string | Uint8Array)[];

const key = fc.constantFrom('a', 'b', 'c', 'd');
const integer = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: -300, max: 300 }).map(String) },
  fc.constantFrom(
    '9007199254740991',
    '9007199254740992',
    '-9007199254740993',
    '9223372036854775807',
    '-9223372036854775808',
    '9223372036854775000',
    '99999999999999999999',
    '1.5',
    'abc',
    '',
    '007',
  ),
);
const float = fc.oneof(
  fc.double({ min: -1e6, max: 1e6, noNaN: true }).map(String),
  fc
    .tuple(fc.integer({ min: -9999, max: 9999 }), fc.integer({ min: 0, max: 3 }))
    .map(([n, d]) => (n / 10 ** d).toString()),
  fc.constantFrom('1e20', '3.0e3', '-1e-7', 'abc', 'inf', '1e300', '0.1'),
);
const value = fc.oneof(
  integer,
  float,
  fc.uint8Array({ maxLength: 12 }),
  fc
    .tuple(fc.constantFrom('x', '\xff', '0'), fc.constantFrom(43, 44, 45, 300, 3000, 17_000))
    .map(([c, n]) => c.repeat(n)),
);
const offset = fc.oneof(
  { weight: 5, arbitrary: fc.integer({ min: 0, max: 60 }).map(String) },
  fc.constantFrom('-1', '600', '5000', '40000', '4294967296', 'x'),
);
const rangeEnd = fc.integer({ min: -80, max: 80 }).map(String);
const bit = fc.constantFrom('0', '1', '0', '1', '2', 'x');
const seconds = fc.constantFrom('100', '1000', '500000', '0', '-1', 'x', '9223372036854775807');
const unixSeconds = fc.constantFrom('99999999999', '88888888888', '1', '0', 'x');
const condition = fc.constantFrom('NX', 'XX', 'GT', 'LT', 'gt', 'FOO');
const fieldType = fc
  .tuple(fc.constantFrom('i', 'u'), fc.constantFrom(1, 2, 5, 8, 13, 31, 32, 33, 48, 63))
  .map(([sign, bits]) => `${sign}${bits}`);
const fieldOffset = fc.oneof(
  fc.integer({ min: 0, max: 200 }).map(String),
  fc.integer({ min: 0, max: 9 }).map((n) => `#${n}`),
);
const small = fc.integer({ min: -40_000, max: 40_000 }).map(String);

type Word = string | Uint8Array;
const words = (...parts: (string | fc.Arbitrary<Word> | fc.Arbitrary<Word[]>)[]): fc.Arbitrary<Word[]> =>
  fc
    .tuple(
      ...parts.map((part): fc.Arbitrary<Word | Word[]> => (typeof part === 'string' ? fc.constant<Word>(part) : part)),
    )
    .map((drawn) => drawn.flat() as Word[]);
const many = (part: fc.Arbitrary<Word>, maxLength: number): fc.Arbitrary<Word[]> =>
  fc.array(part, { minLength: 1, maxLength });
const perhaps = (part: fc.Arbitrary<Word[]>): fc.Arbitrary<Word[]> => fc.oneof(fc.constant<Word[]>([]), part);

const expiryOption = fc.oneof(
  words('EX', seconds),
  words('EXAT', unixSeconds),
  words('PXAT', fc.constantFrom('99999999999999', '5')),
);
const fieldOperation = fc.oneof(
  words('GET', fieldType, fieldOffset),
  words('SET', fieldType, fieldOffset, small),
  words('INCRBY', fieldType, fieldOffset, small),
  words('OVERFLOW', fc.constantFrom('WRAP', 'SAT', 'FAIL', 'wrap', 'sat', 'fail')),
);

const field = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('f', 'g', 'h', 'i', '') },
  { weight: 1, arbitrary: fc.constant('long'.repeat(20)) },
);
/** Hashes of few fields: while they are small, Redis keeps the order of insertion too. */
const hashCommand: fc.Arbitrary<Word[]> = fc.oneof(
  { weight: 4, arbitrary: words(fc.constantFrom('HSET', 'HMSET'), key, field, value, perhaps(words(field, value))) },
  words('HSET', key, field),
  words('HSETNX', key, field, value),
  words(fc.constantFrom('HGET', 'HSTRLEN', 'HEXISTS'), key, field),
  words('HMGET', key, many(field, 3)),
  words(fc.constantFrom('HLEN'), key),
  words('HDEL', key, many(field, 3)),
  words('HINCRBY', key, field, integer),
  words('HINCRBYFLOAT', key, field, float),
);

const setMember = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: -4, max: 12 }).map(String) },
  { weight: 1, arbitrary: fc.constantFrom('9007199254740993', '9007199254740992', '-9223372036854775808', '007') },
  { weight: 1, arbitrary: field },
);
const card = fc.constantFrom('0', '1', '2', '5', '-1', 'x');
const setCommand: fc.Arbitrary<Word[]> = fc.oneof(
  { weight: 4, arbitrary: words('SADD', key, many(setMember, 4)) },
  words('SREM', key, many(setMember, 3)),
  words('SISMEMBER', key, setMember),
  words('SMISMEMBER', key, many(setMember, 3)),
  words('SCARD', key),
  words('SMOVE', key, key, setMember),
  words(fc.constantFrom('SINTERSTORE', 'SUNIONSTORE', 'SDIFFSTORE'), key, many(key, 3)),
  words('SINTERCARD', fc.constantFrom('1', '2', '3', '0'), many(key, 3), perhaps(words('LIMIT', card))),
  words('SPOP', key, fc.constantFrom('0', '100', 'x', '-1')),
);

const element = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom('a', 'b', 'c', '') },
  { weight: 1, arbitrary: fc.constantFrom(900, 1100, 5000).map((n) => 'e'.repeat(n)) },
);
const end = fc.constantFrom('LEFT', 'RIGHT', 'left');
const index = fc.oneof(fc.integer({ min: -8, max: 8 }).map(String), fc.constantFrom('x', '9223372036854775807'));
const listCommand: fc.Arbitrary<Word[]> = fc.oneof(
  { weight: 4, arbitrary: words(fc.constantFrom('LPUSH', 'RPUSH'), key, many(element, 4)) },
  words(fc.constantFrom('LPUSHX', 'RPUSHX'), key, many(element, 2)),
  words(fc.constantFrom('LPOP', 'RPOP'), key, perhaps(words(card))),
  words('LLEN', key),
  words('LINDEX', key, index),
  words('LSET', key, index, element),
  words(fc.constantFrom('LRANGE', 'LRANGE', 'LTRIM'), key, index, index),
  words('LINSERT', key, fc.constantFrom('BEFORE', 'AFTER'), element, element),
  words('LREM', key, fc.constantFrom('0', '1', '-1', '2', '-2', 'x'), element),
  words(
    'LPOS',
    key,
    element,
    perhaps(words('RANK', index)),
    perhaps(words('COUNT', card)),
    perhaps(words('MAXLEN', card)),
  ),
  words('LMOVE', key, key, end, end),
  words('RPOPLPUSH', key, key),
  words('LMPOP', fc.constantFrom('1', '2', '3', '0'), many(key, 3), end, perhaps(words('COUNT', card))),
);

const command: fc.Arbitrary<Word[]> = fc.oneof(
  { weight: 10, arbitrary: listCommand },
  { weight: 8, arbitrary: setCommand },
  { weight: 12, arbitrary: hashCommand },
  { weight: 4, arbitrary: words('SET', key, value) },
  words(
    'SET',
    key,
    value,
    perhaps(words(fc.constantFrom('NX', 'XX', 'KEEPTTL', 'GET', 'nx', 'get'))),
    perhaps(fc.oneof(expiryOption, words(fc.constantFrom('GET', 'KEEPTTL', 'XX', 'FOO')))),
  ),
  words(fc.constantFrom('SETNX', 'GETSET', 'APPEND', 'append'), key, value),
  words('SETEX', key, seconds, value),
  { weight: 3, arbitrary: words(fc.constantFrom('GET', 'STRLEN', 'GETDEL', 'OBJECT ENCODING').map(String), key) },
  words('GETEX', key, perhaps(fc.oneof(expiryOption, words('PERSIST')))),
  words('MGET', many(key, 4)),
  words(
    fc.constantFrom('MSET', 'MSETNX'),
    many(
      words(key, value).map((pair) => pair as unknown as Word),
      3,
    ),
  ).map((drawn) => (drawn as unknown as (Word | Word[])[]).flat() as Word[]),
  words('SETRANGE', key, offset, value),
  words(fc.constantFrom('GETRANGE', 'SUBSTR'), key, rangeEnd, rangeEnd),
  words(fc.constantFrom('INCR', 'DECR'), key),
  { weight: 2, arbitrary: words(fc.constantFrom('INCRBY', 'DECRBY'), key, integer) },
  { weight: 2, arbitrary: words('INCRBYFLOAT', key, float) },
  words('LCS', key, key, perhaps(words(fc.constantFrom('LEN', 'IDX'))), perhaps(words('MINMATCHLEN', rangeEnd))),
  words('SETBIT', key, offset, bit),
  words('GETBIT', key, offset),
  words('BITCOUNT', key, perhaps(words(rangeEnd, rangeEnd, perhaps(words(fc.constantFrom('BIT', 'BYTE')))))),
  words(
    'BITPOS',
    key,
    fc.constantFrom('0', '1'),
    perhaps(words(rangeEnd, perhaps(words(rangeEnd, perhaps(words(fc.constantFrom('BIT', 'BYTE'))))))),
  ),
  words('BITOP', fc.constantFrom('AND', 'OR', 'XOR', 'NOT', 'xor'), key, many(key, 3)),
  words(
    'BITFIELD',
    key,
    fc.array(fieldOperation, { maxLength: 4 }).map((operations) => operations.flat()),
  ),
  words('BITFIELD_RO', key, 'GET', fieldType, fieldOffset),
  words(fc.constantFrom('DEL', 'UNLINK', 'EXISTS', 'TOUCH'), many(key, 3)),
  words('TYPE', key),
  words(fc.constantFrom('RENAME', 'RENAMENX'), key, key),
  words('COPY', key, key, perhaps(words('DB', fc.constantFrom('0', '1', '99'))), perhaps(words('REPLACE'))),
  words('MOVE', key, fc.constantFrom('0', '1')),
  words('SELECT', fc.constantFrom('0', '1')),
  words('EXPIRE', key, seconds, perhaps(words(condition)), perhaps(words(condition))),
  words('EXPIREAT', key, unixSeconds, perhaps(words(condition))),
  words('PEXPIREAT', key, fc.constantFrom('99999999999999', '77777777777777', '1'), perhaps(words(condition))),
  words(fc.constantFrom('TTL', 'EXPIRETIME', 'PEXPIRETIME', 'PERSIST'), key),
  words(fc.constantFrom('MULTI', 'EXEC', 'DISCARD')),
);

/** 'OBJECT ENCODING' is two words. */
function request(drawn: readonly Word[]): Request {
  return drawn[0] === 'OBJECT ENCODING' ? ['OBJECT', 'ENCODING', ...drawn.slice(1)] : drawn;
}

export function histories(maxLength: number): fc.Arbitrary<Request[]> {
  return fc.array(command, { minLength: 1, maxLength, size: 'max' }).map((drawn) => drawn.map(request));
}

/** A time from now on depends on when the request came: to the nearest ten seconds. */
export function blurTimes(reply: string): string {
  // Redis 7.0 has neither listpack sets nor listpack lists.
  if (/^\$\d\r\n(listpack|hashtable|quicklist)\r\n$/.test(reply)) return 'an encoding';
  const now = Date.now();
  return reply.replace(/^:(\d+)\r\n$/, (whole, digits: string) => {
    const number = Number(digits);
    if (Math.abs(number - now) < 1e9) return `:about ${Math.round(number / 10_000)}0 s\r\n`;
    if (Math.abs(number - now / 1000) < 1e6) return `:about ${Math.round(number / 10)}0 s\r\n`;
    return whole;
  });
}

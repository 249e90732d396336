/**
 * DUMP and RESTORE beside redis-server: the same bytes where Redis's encoding is determined, and every value carried over in both directions.
 *
 * Redis's own DEBUG DIGEST-VALUE says whether two keys hold the same.
 */
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Bytes } from '../../src/layout/bytes.js';
import { TRAILER_BYTES } from '../../src/rdb/format.js';
import { sealPayload } from '../../src/rdb/payload.js';
import { describeWithRedis } from '../helpers/redis-oracle.js';

type Words = readonly (string | Buffer | number)[];

const many = (count: number, make: (i: number) => string | number): (string | number)[] =>
  Array.from({ length: count }, (_, i) => make(i));
const long = (length: number): string => 'abcdefghij'.repeat(Math.ceil(length / 10)).slice(0, length);
/** Bytes that nothing can pack. */
function noise(length: number): Buffer {
  const bytes = Buffer.alloc(length);
  let state = 12_345;
  for (let i = 0; i < length; i++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    bytes[i] = state >>> 16;
  }
  return bytes;
}

/** A payload of version 10. */
function seal(body: readonly number[]): Buffer {
  const bytes = Bytes.from(Uint8Array.from([...body, ...new Uint8Array(TRAILER_BYTES)]));
  sealPayload(bytes, 0, body.length, 10);
  return Buffer.from(bytes.u8);
}

/** Values whose bytes in Redis 7.0 follow from the commands alone. */
const DETERMINED: Readonly<Record<string, readonly Words[]>> = {
  'an empty string': [['SET', 'k', '']],
  'a short string': [['SET', 'k', 'hello']],
  int8: [['SET', 'k', '127']],
  'int8, negative': [['SET', 'k', '-128']],
  int16: [['SET', 'k', '-32768']],
  int32: [['SET', 'k', '2147483647']],
  'beyond int32': [['SET', 'k', '2147483648']],
  'int64, the least': [['SET', 'k', '-9223372036854775808']],
  'almost an integer': [['SET', 'k', '007']],
  'a string of 20': [['SET', 'k', long(20)]],
  'a string of 63': [['SET', 'k', noise(63)]],
  'a string of 64': [['SET', 'k', noise(64)]],
  'a string of 16 KiB': [['SET', 'k', noise(16_384)]],
  'a string of 300 KiB': [['SET', 'k', noise(300 << 10)]],
  'a bitmap': [['SETBIT', 'k', 100, 1]],
  'a list of one': [['RPUSH', 'k', 'a']],
  'a list of integers': [
    ['RPUSH', 'k', 0, 127, 128, -1, 4095, -4096, 4096, 32_767, -32_768, 32_768, 8_388_607, -8_388_608, 8_388_608],
    ['RPUSH', 'k', 2_147_483_647, -2_147_483_648, 2_147_483_648, '9223372036854775807', '-9223372036854775808'],
  ],
  'a list of strings of many lengths': many(14, (i) => 2 ** i).map((n) => ['RPUSH', 'k', long(Number(n))]),
  'a list of several nodes': [['RPUSH', 'k', ...many(3000, (i) => `element-${i}`)]],
  'a list of integers in several nodes': [['RPUSH', 'k', ...many(9000, (i) => i)]],
  'a list of long elements': many(5, (i) => i).map((i) => ['RPUSH', 'k', long(9000 + Number(i))]),
  'a list of elements around the limit of a node': [
    ['RPUSH', 'k', long(8180), 'x', long(4000), long(4180), long(8192), 'y', long(8193)],
  ],
  'a hash': [['HSET', 'k', 'f', 'v', 'n', '12', 'empty', '']],
  'a hash of 512': [['HSET', 'k', ...many(1024, (i) => `x${i}`)]],
  'a hash with a value of 64': [['HSET', 'k', 'f', long(64)]],
  'a hash whose fields were changed': [
    ['HSET', 'k', 'a', '1', 'b', '2', 'c', '3'],
    ['HDEL', 'k', 'a'],
    ['HSET', 'k', 'd', '4'],
  ],
  'a set of small integers': [['SADD', 'k', 3, 1, 2, -5]],
  'a set of int32': [['SADD', 'k', 70_000, 1, -70_000]],
  'a set of int64': [['SADD', 'k', '9223372036854775807', '-9223372036854775808', 0, 5_000_000_000]],
  'a set of 512 integers': [['SADD', 'k', ...many(512, (i) => i * 3)]],
  'a sorted set': [['ZADD', 'k', 1, 'one', 2, 'two', 3.5, 'half', '-inf', 'low', 'inf', 'high']],
  'a sorted set with odd scores': [
    ['ZADD', 'k', 0.1, 'a', 1e300, 'b', 1e-7, 'c', -0.5, 'd', 1e17, 'e', 123_456_789_012_345.67, 'f'],
    ['ZADD', 'k', '2.98023223876953125e-8', 'tie', 3, 'i', -4096, 'j', 2 ** 62, 'k', '-0', 'z'],
  ],
  'a sorted set of 128': [['ZADD', 'k', ...many(128, (i) => i).flatMap((i) => [i, `m${i}`])]],
  'a large sorted set': [['ZADD', 'k', ...many(500, (i) => i).flatMap((i) => [Number(i) / 4, `m${i}`])]],
};

/** Streams: entries of one kind, of several, deleted ones only by trimming whole nodes. */
const STREAMS: Readonly<Record<string, readonly Words[]>> = {
  'a stream of one': [['XADD', 'k', '1-1', 'a', '1']],
  'a stream of several nodes': many(350, (i) => i).map((i) => [
    'XADD',
    'k',
    `${1_526_919_030_474 + Number(i) * 3}-${i}`,
    'temperature',
    i,
    'place',
    `room ${i}`,
  ]),
  'a stream of odd entries': [
    ['XADD', 'k', '0-1', 'a', '1', 'b', '2'],
    ['XADD', 'k', '0-2', 'a', '1'],
    ['XADD', 'k', '5-0', 'b', '1', 'a', '2'],
    ['XADD', 'k', '5-1', 'a', long(3000), 'b', long(1000)],
    ['XADD', 'k', '6-0', 'a', long(5000), 'b', ''],
    ['XADD', 'k', '18446744073709551615-5', 'a', '-9223372036854775808', 'b', '01'],
    ['XADD', 'k', '18446744073709551615-18446744073709551615', '', ''],
  ],
  'a stream that is empty': [
    ['XADD', 'k', '7-7', 'a', '1'],
    ['XDEL', 'k', '7-7'],
  ],
  'a stream with groups': [
    ['XADD', 'k', '1-1', 'a', '1'],
    ['XADD', 'k', '2-1', 'a', '2'],
    ['XGROUP', 'CREATE', 'k', 'g2', '0'],
    ['XGROUP', 'CREATE', 'k', 'g1', '1-1', 'ENTRIESREAD', 1],
    ['XGROUP', 'CREATE', 'k', 'g3', '$'],
  ],
};

/** Values that Redis keeps in hash tables, whose order is its own. */
const UNORDERED: Readonly<Record<string, readonly Words[]>> = {
  'a small set of strings': [['SADD', 'k', 'a', 'b', 'c', '1']],
  'a large set': [['SADD', 'k', ...many(2000, (i) => `member-${i}`)]],
  'a large set of integers': [['SADD', 'k', ...many(2000, (i) => i)]],
  'a large hash': [['HSET', 'k', ...many(2000, (i) => `x${i}`)]],
  'a hash with a long value': [['HSET', 'k', 'f', long(5000), 'n', '1']],
  'a set with a long member': [['SADD', 'k', long(3000), 'x']],
  'a sorted set with a long member': [['ZADD', 'k', 1, long(3000), 2, 'x']],
};

// Room for what FLUSHALL leaves to the background: each test flushes.
describeWithRedis(
  'DUMP and RESTORE',
  (peers) => {
    let theirs: Redis;
    let ours: Redis;

    beforeAll(() => {
      theirs = new Redis(peers.redisPort);
      ours = new Redis(peers.ourPort);
    });

    afterAll(() => {
      theirs?.disconnect();
      ours?.disconnect();
    });

    async function begin(compression: 'yes' | 'no'): Promise<void> {
      for (const client of [theirs, ours]) {
        await client.flushall();
        await client.config('SET', 'rdbcompression', compression);
      }
    }

    async function make(client: Redis, commands: readonly Words[]): Promise<void> {
      for (const [name, ...words] of commands) await client.call(name as string, ...words);
    }

    async function dumpOf(client: Redis, key = 'k'): Promise<Buffer> {
      const payload = await client.dumpBuffer(key);
      expect(payload).not.toBeNull();
      return payload as Buffer;
    }

    const digest = (key: string): Promise<unknown> => theirs.call('DEBUG', 'DIGEST-VALUE', key);

    for (const [name, commands] of Object.entries({ ...DETERMINED, ...STREAMS })) {
      it(`${name}: the same bytes`, async () => {
        await begin('no');
        await make(theirs, commands);
        await make(ours, commands);
        const wanted = await dumpOf(theirs);
        expect((await dumpOf(ours)).toString('hex').slice(0, 4000)).toBe(wanted.toString('hex').slice(0, 4000));
        expect((await dumpOf(ours)).equals(wanted)).toBe(true);
      });
    }

    for (const compression of ['yes', 'no'] as const) {
      for (const [name, commands] of Object.entries({ ...DETERMINED, ...UNORDERED, ...STREAMS })) {
        it(`${name}: carried over in both directions, compression ${compression}`, async () => {
          await begin(compression);
          await make(theirs, commands);
          await make(ours, commands);
          const before = await digest('k');
          await theirs.restore('ours', 0, await dumpOf(ours));
          expect(await digest('ours')).toEqual(before);
          // Theirs, by way of us, back to them.
          await ours.restore('theirs', 0, await dumpOf(theirs));
          await theirs.restore('back', 0, await dumpOf(ours, 'theirs'));
          expect(await digest('back')).toEqual(before);
          // A string that commands have changed in place is another matter.
          if ((await ours.type('k')) !== 'string') {
            expect(await ours.object('ENCODING', 'theirs')).toBe(await ours.object('ENCODING', 'k'));
          }
        });
      }
    }

    it('options, conditions and errors in the words of Redis', async () => {
      await begin('yes');
      await theirs.set('x', 'value');
      const payload = await dumpOf(theirs, 'x');
      const changed = Buffer.from(payload);
      changed[1] ^= 1;
      const newer = Buffer.from(payload);
      newer.writeUInt16LE(99, newer.length - 10);
      // An unknown type, and more bytes than the value has.
      const odd = seal([8, 1, 0x61]);
      const more = seal([0, 1, 0x61, 0x62]);
      await peers.compare([
        'DUMP nope',
        ['RESTORE', 'k', '0', payload],
        'GET k',
        'TTL k',
        ['RESTORE', 'k', '0', payload],
        ['RESTORE', 'k', '0', payload, 'REPLACE'],
        ['RESTORE', 'k', '-1', payload, 'REPLACE'],
        ['RESTORE', 'k', 'x', payload, 'REPLACE'],
        ['RESTORE', 'k', '0', changed, 'REPLACE'],
        ['RESTORE', 'k', '0', newer, 'REPLACE'],
        ['RESTORE', 'k', '0', 'short', 'REPLACE'],
        ['RESTORE', 'k', '0', '', 'REPLACE'],
        ['RESTORE', 'k', '0', odd, 'REPLACE'],
        'GET k',
        ['RESTORE', 'k', '0', payload, 'NOPE'],
        ['RESTORE', 'k', '0', payload, 'IDLETIME'],
        ['RESTORE', 'k', '0', payload, 'IDLETIME', '-1'],
        ['RESTORE', 'k', '0', payload, 'IDLETIME', 'x'],
        ['RESTORE', 'k', '0', payload, 'FREQ', '256'],
        ['RESTORE', 'k', '0', payload, 'FREQ', '1', 'IDLETIME', '1'],
        ['RESTORE', 'k', '0', payload, 'IDLETIME', '1000', 'REPLACE'],
        ['RESTORE', 'f', '0', payload, 'FREQ', '5'],
        'GET f',
        // A moment in the past: the key is gone.
        ['RESTORE', 'k', '1', payload, 'ABSTTL', 'REPLACE'],
        'EXISTS k',
        ['RESTORE', 'k', '100000000000000', payload, 'ABSTTL'],
        'PEXPIRETIME k',
        ['RESTORE', 'k', '0', payload, 'absttl', 'replace'],
        'TTL k',
        'RESTORE k 0',
        'DUMP',
        'DUMP a b',
        'COMMAND GETKEYS DUMP k',
        'COMMAND GETKEYS RESTORE k 0 x',
      ]);
      // Redis ignores bytes behind the value; here they are damage.
      expect(await ours.restore('more', 0, more).catch((error: Error) => error.message)).toBe('ERR Bad data format');
    });

    it('RESTORE keeps idle time, and replaces other types', async () => {
      await begin('yes');
      await ours.rpush('k', 'a', 'b');
      const payload = await dumpOf(ours);
      await ours.set('s', 'x');
      await ours.call('RESTORE', 's', 5000, payload, 'REPLACE', 'IDLETIME', 777);
      expect(Number(await ours.object('IDLETIME', 's'))).toBeGreaterThanOrEqual(777);
      expect(await ours.lrange('s', 0, -1)).toEqual(['a', 'b']);
      expect(await ours.pttl('s')).toBeGreaterThan(0);
    });

    it('fields with an expiry travel in version 12', async () => {
      await begin('yes');
      const at = Date.now() + 3_600_000;
      for (const count of [3, 1000]) {
        await ours.del('h', 'copy');
        await ours.hset('h', ...many(count * 2, (i) => `x${i}`).map(String));
        await ours.call('HPEXPIREAT', 'h', at, 'FIELDS', 1, 'x0');
        await ours.call('HPEXPIREAT', 'h', at + 5000, 'FIELDS', 1, 'x2');
        const payload = await dumpOf(ours, 'h');
        expect(payload.readUInt16LE(payload.length - 10)).toBe(12);
        await ours.restore('copy', 0, payload);
        expect(await ours.call('HPEXPIRETIME', 'copy', 'FIELDS', 3, 'x0', 'x2', 'x4')).toEqual([at, at + 5000, -1]);
        expect(await ours.hgetall('copy')).toEqual(await ours.hgetall('h'));
        await expect(theirs.restore('copy', 0, payload)).rejects.toThrow('DUMP payload version or checksum are wrong');
      }
    });

    it('forms of older and newer servers are read', async () => {
      await begin('yes');
      const text = (words: string): number[] => [...Buffer.from(words)];
      const blob = (bytes: number[]): number[] => [bytes.length, ...bytes];
      const ziplist = [25, 0, 0, 0, 21, 0, 0, 0, 3, 0, 0, 1, 97, 3, 0xf3, 2, 0xc0, 0xe8, 3, 4, 0xfe, 7];
      // Four bytes more than the entries say would be damage: lengths are those of the whole.
      const whole = [...ziplist, 0xff];
      whole[0] = whole.length;
      whole[4] = whole.length - 4;
      whole[8] = 4;
      const listpack = [0x0f, 0, 0, 0, 2, 0, 0x81, 0x61, 2, 0x82, 0x62, 0x63, 3, 0xff];
      listpack[0] = listpack.length;
      const steps: [string, Buffer, () => Promise<unknown>, unknown][] = [
        ['list of strings', seal([1, 2, 1, 97, 0xc0, 5]), () => ours.lrange('o', 0, -1), ['a', '5']],
        ['ziplist list', seal([10, ...blob(whole)]), () => ours.lrange('o', 0, -1), ['a', '2', '1000', '7']],
        [
          'quicklist of ziplists',
          seal([14, 1, ...blob(whole)]),
          () => ours.lrange('o', 0, -1),
          ['a', '2', '1000', '7'],
        ],
        ['ziplist hash', seal([13, ...blob(whole)]), () => ours.hgetall('o'), { a: '2', 1000: '7' }],
        ['zipmap', seal([9, ...blob([1, 1, 97, 2, 0, 98, 99, 0xff])]), () => ours.hgetall('o'), { a: 'bc' }],
        [
          'old sorted set',
          seal([3, 2, 1, 97, 3, ...text('1.5'), 1, 98, 254]),
          () => ours.zrange('o', '0', '-1', 'WITHSCORES'),
          ['a', '1.5', 'b', 'inf'],
        ],
        ['listpack set', seal([20, ...blob(listpack)]), () => ours.smembers('o'), ['a', 'bc']],
        [
          'plain node',
          seal([18, 2, 1, 3, ...text('abc'), 2, ...blob(listpack)]),
          () => ours.lrange('o', 0, -1),
          ['abc', 'a', 'bc'],
        ],
        ['LZF', seal([0, 0xc3, 5, 11, 0, 97, 0xe0, 1, 0]), () => ours.get('o'), 'aaaaaaaaaaa'],
      ];
      for (const [name, payload, read, wanted] of steps) {
        await ours.del('o');
        expect(await ours.restore('o', 0, payload).catch((error: Error) => `${name}: ${error.message}`), name).toBe(
          'OK',
        );
        expect(await read(), name).toEqual(wanted);
      }
    });
  },
  { ours: ['--dram=256MiB'] },
);

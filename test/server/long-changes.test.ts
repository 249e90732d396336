/**
 * Commands that change much of a large collection, over several turns or by cutting a run out of its tree, beside plain arrays; the store's
 * invariants hold after each.
 */
import { afterEach, describe, expect, it } from 'vitest';
import { checkInvariants } from '../../src/store/invariants.js';
import { parseReply } from '../helpers/resp-reply.js';
import { Session } from '../helpers/session.js';
import { openTestStore } from '../helpers/store.js';

const ELEMENTS = 6000;
const BATCH = 500;
const MIB = 1024 * 1024;
const PATIENCE = { timeout: 120_000 };

const keyspace = openTestStore({ dramBytes: 96 * MIB });
const session = new Session(keyspace);

function ask(request: string | readonly string[]): unknown {
  return parseReply(session.send(request));
}

function fill(key: string, add: string, words: (i: number) => readonly string[], count = ELEMENTS): void {
  ask(['DEL', key]);
  for (let i = 0; i < count; i += BATCH) {
    ask([add, key, ...Array.from({ length: Math.min(BATCH, count - i) }, (_, n) => words(i + n)).flat()]);
  }
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

afterEach(() => {
  checkInvariants(keyspace);
  expect(session.faults).toEqual([]);
});

describe('lists', () => {
  const values = numbers(ELEMENTS).map((i) => `e${i % 3}`);

  function expectList(expected: readonly string[]): void {
    expect(ask('LRANGE l 0 -1')).toEqual(expected);
    checkInvariants(keyspace);
  }

  it.each([
    [0, -1],
    [1500, -1501],
    [1, -1],
    [0, 10],
    [-10, -1],
    [5000, 5000],
    [600, -1],
  ])('LTRIM %i %i', PATIENCE, (start, stop) => {
    fill('l', 'RPUSH', (i) => [values[i]]);
    ask('EXPIRE l 1000');
    expect(session.send(`LTRIM l ${start} ${stop}`)).toBe('+OK\r\n');
    expectList(values.slice(start, stop === -1 ? undefined : stop + 1));
    expect(ask('TTL l')).toBeGreaterThan(900);
    ask('RPUSH l behind');
    ask('LPUSH l before');
    expectList(['before', ...values.slice(start, stop === -1 ? undefined : stop + 1), 'behind']);
  });

  it.each([0, 1500, 3, -1500, -3])('LREM %i', PATIENCE, (count) => {
    fill('l', 'RPUSH', (i) => [values[i]]);
    ask('EXPIRE l 1000');
    const ranks = numbers(ELEMENTS).filter((i) => values[i] === 'e2');
    const gone = new Set(count === 0 ? ranks : count > 0 ? ranks.slice(0, count) : ranks.slice(count));
    expect(ask(`LREM l ${count} e2`)).toBe(gone.size);
    expectList(values.filter((_, i) => !gone.has(i)));
    expect(ask('TTL l')).toBeGreaterThan(900);
    expect(ask('LREM l 0 nothing')).toBe(0);
  });

  it('LREM of all that there is', PATIENCE, () => {
    fill('l', 'RPUSH', () => ['same']);
    expect(ask('LREM l 0 same')).toBe(ELEMENTS);
    expect(ask('EXISTS l')).toBe(0);
  });

  it('LINSERT and LPOS', PATIENCE, () => {
    fill('l', 'RPUSH', (i) => [`e${i}`]);
    expect(ask('LINSERT l BEFORE e4500 new')).toBe(ELEMENTS + 1);
    expect(ask('LINSERT l AFTER e0 other')).toBe(ELEMENTS + 2);
    expect(ask('LINSERT l AFTER nothing other')).toBe(-1);
    expect(ask('LRANGE l 0 2')).toEqual(['e0', 'other', 'e1']);
    expect(ask('LPOS l new')).toBe(4501);
    expect(ask('LPOS l nothing')).toBe(null);
    expect(ask('LPOS l nothing COUNT 0')).toEqual([]);
    ask('RPUSH l new');
    expect(ask('LPOS l new RANK -1')).toBe(ELEMENTS + 2);
    expect(ask('LPOS l new RANK -2')).toBe(4501);
    expect(ask('LPOS l new COUNT 0 RANK -1')).toEqual([ELEMENTS + 2, 4501]);
    expect(ask('LPOS l new COUNT 0 MAXLEN 4502')).toEqual([4501]);
    expect(ask('LPOS l new COUNT 0 MAXLEN 4501')).toEqual([]);
  });

  it('LPOP and RPOP of many', PATIENCE, () => {
    fill('l', 'RPUSH', (i) => [`e${i}`]);
    const all = numbers(ELEMENTS).map((i) => `e${i}`);
    expect(ask('LPOP l 1500')).toEqual(all.slice(0, 1500));
    expect(ask('RPOP l 1500')).toEqual(all.slice(-1500).reverse());
    expectList(all.slice(1500, -1500));
    expect(ask(`LPOP l ${ELEMENTS}`)).toEqual(all.slice(1500, -1500));
    expect(ask('EXISTS l')).toBe(0);
  });

  it('in a transaction, several of them', PATIENCE, () => {
    fill('l', 'RPUSH', (i) => [values[i]]);
    fill('m', 'RPUSH', (i) => [`m${i}`]);
    session.send('MULTI');
    session.send('LREM l 0 e2');
    session.send('LREM m 1 m5');
    session.send('COPY l a');
    session.send('COPY m b');
    session.send('LTRIM l 0 2');
    session.send('EXEC');
    expect(ask('LRANGE l 0 -1')).toEqual(['e0', 'e1', 'e0']);
    expect(ask('LLEN a')).toBe(values.filter((value) => value !== 'e2').length);
    expect(ask('LRANGE b 3 5')).toEqual(['m3', 'm4', 'm6']);
    ask('DEL a b m');
  });
});

describe('sorted sets', () => {
  // Scores tie, and one of them is -0.
  const scoreOf = (i: number): number => Math.floor(i / 3) - 1000;
  const memberOf = (i: number): string => `m${String(i).padStart(6, '0')}`;

  function expectSet(kept: readonly number[]): void {
    checkInvariants(keyspace);
    expect(ask('ZRANGE z 0 -1')).toEqual(kept.map(memberOf));
    expect(ask('ZCARD z')).toBe(kept.length);
    for (let i = 0; i < kept.length; i += 97) expect(ask(`ZRANK z ${memberOf(kept[i])}`)).toBe(i);
  }

  function fillSet(): void {
    fill('z', 'ZADD', (i) => [scoreOf(i) === 0 ? '-0' : String(scoreOf(i)), memberOf(i)]);
    ask('EXPIRE z 1000');
  }

  it.each([
    ['ZREMRANGEBYRANK z 0 3999', 0, 4000],
    ['ZREMRANGEBYRANK z 2000 -1', 2000, ELEMENTS],
    ['ZREMRANGEBYRANK z 2500 4499', 2500, 4500],
    ['ZREMRANGEBYRANK z 1 -2', 1, ELEMENTS - 1],
    ['ZREMRANGEBYSCORE z -inf (0', 0, 3000],
    ['ZREMRANGEBYSCORE z 0 500', 3000, 4503],
  ])('%s', PATIENCE, (request, from, to) => {
    fillSet();
    expect(ask(request)).toBe(to - from);
    const kept = numbers(ELEMENTS).filter((i) => i < from || i >= to);
    expectSet(kept);
    expect(ask('TTL z')).toBeGreaterThan(900);
    expect(ask(`ZSCORE z ${memberOf(from)}`)).toBe(null);
    // It is a sorted set like any other.
    expect(ask(`ZADD z ${scoreOf(from)} ${memberOf(from)}`)).toBe(1);
    expectSet([...kept, from].sort((a, b) => a - b));
    expect(ask(`ZREM z ${memberOf(kept[0])} ${memberOf(from)}`)).toBe(2);
    expectSet(kept.slice(1));
  });

  it('ZREMRANGEBYLEX', PATIENCE, () => {
    fill('z', 'ZADD', (i) => ['0', memberOf(i)]);
    expect(ask(`ZREMRANGEBYLEX z [${memberOf(1000)} (${memberOf(4500)}`)).toBe(3500);
    expectSet(numbers(ELEMENTS).filter((i) => i < 1000 || i >= 4500));
  });

  it('ZPOPMIN and ZPOPMAX of many', PATIENCE, () => {
    fillSet();
    const popped = ask('ZPOPMIN z 1500') as string[];
    expect(popped.filter((_, i) => i % 2 === 0)).toEqual(numbers(1500).map(memberOf));
    expect(popped[1]).toBe('-1000');
    const most = ask('ZPOPMAX z 3000') as string[];
    const order = numbers(ELEMENTS).slice(-3000).reverse().map(memberOf);
    expect(most.filter((_, i) => i % 2 === 0)).toEqual(order);
    expectSet(numbers(ELEMENTS).slice(1500, -3000));
  });

  it('twice in a transaction', PATIENCE, () => {
    fillSet();
    for (const request of ['MULTI', 'ZREMRANGEBYRANK z 0 1499', 'ZREMRANGEBYRANK z 0 1099']) session.send(request);
    expect(ask('EXEC')).toEqual([1500, 1100]);
    expectSet(numbers(ELEMENTS).slice(2600));
  });
});

describe('streams', () => {
  it('XTRIM and XADD with a length', PATIENCE, () => {
    ask('DEL s');
    ask('XGROUP CREATE s g 0 MKSTREAM');
    for (let i = 1; i <= 5000; i++) session.send(`XADD s ${i}-1 field value${i} other ${i}`);
    ask('XREADGROUP GROUP g c COUNT 2000 STREAMS s >');
    expect(ask('XTRIM s MAXLEN 3500')).toBe(1500);
    checkInvariants(keyspace);
    expect((ask('XRANGE s - + COUNT 1') as string[][])[0][0]).toBe('1501-1');
    const entries = ask('XRANGE s - +') as [string, string[]][];
    expect(entries.length).toBe(3500);
    expect(entries[3499]).toEqual(['5000-1', ['field', 'value5000', 'other', '5000']]);
    expect((ask('XREVRANGE s + - COUNT 2000') as [string][]).map(([id]) => id)).toEqual(
      numbers(2000).map((i) => `${5000 - i}-1`),
    );
    expect(ask('XPENDING s g')).toEqual([2000, '1-1', '2000-1', [['c', '2000']]]);
    expect(ask('XADD s MAXLEN 10 5001-1 field last')).toBe('5001-1');
    expect(ask('XLEN s')).toBe(10);
    expect(ask('XTRIM s MINID 9999')).toBe(10);
    expect(ask('XLEN s')).toBe(0);
    checkInvariants(keyspace);
    expect(ask('XADD s 6000-1 field again')).toBe('6000-1');
    expect(ask('XACK s g 1-1 2-1')).toBe(2);
  });
});

describe('sets and hashes', () => {
  it('SPOP of many', PATIENCE, () => {
    fill('s', 'SADD', (i) => [`m${i}`]);
    ask('EXPIRE s 1000');
    const popped = ask('SPOP s 2500') as string[];
    expect(new Set(popped).size).toBe(2500);
    const left = ask('SMEMBERS s') as string[];
    expect(new Set([...popped, ...left]).size).toBe(ELEMENTS);
    expect(left.length).toBe(ELEMENTS - 2500);
    expect(ask('TTL s')).toBeGreaterThan(900);
    checkInvariants(keyspace);
    expect((ask(`SPOP s ${ELEMENTS}`) as string[]).sort()).toEqual(left.sort());
    expect(ask('EXISTS s')).toBe(0);
  });

  it('random elements, with and without repetition', PATIENCE, () => {
    fill('s', 'SADD', (i) => [`m${i}`]);
    fill('h', 'HSET', (i) => [`f${i}`, `v${i}`]);
    fill('z', 'ZADD', (i) => [String(i), `m${i}`]);
    for (const wanted of [2000, 4500, ELEMENTS + 5]) {
      expect(new Set(ask(`SRANDMEMBER s ${wanted}`) as string[]).size).toBe(Math.min(wanted, ELEMENTS));
      expect(new Set(ask(`ZRANDMEMBER z ${wanted}`) as string[]).size).toBe(Math.min(wanted, ELEMENTS));
      const pairs = ask(`HRANDFIELD h ${wanted} WITHVALUES`) as string[];
      expect(pairs.length).toBe(2 * Math.min(wanted, ELEMENTS));
      for (let i = 0; i < pairs.length; i += 2) expect(pairs[i + 1]).toBe(pairs[i].replace('f', 'v'));
    }
    expect((ask('SRANDMEMBER s -9000') as string[]).length).toBe(9000);
    expect((ask('ZRANDMEMBER z -3000 WITHSCORES') as string[]).length).toBe(6000);
    expect((ask('HRANDFIELD h -3000') as string[]).length).toBe(3000);
  });
});

describe('DUMP and RESTORE', () => {
  it.each([
    ['l', 'RPUSH', (i: number) => [`e${i % 100}`], 'LRANGE l 0 -1'],
    ['s', 'SADD', (i: number) => [`m${i}`], 'SCARD s'],
    ['h', 'HSET', (i: number) => [`f${i}`, `v${i}`], 'HLEN h'],
    ['z', 'ZADD', (i: number) => [String((i * 7919) % 1000), `m${i}`], 'ZRANGE z 0 -1 WITHSCORES'],
  ] as const)('of a large %s', PATIENCE, (key, add, words, look) => {
    fill(key, add, words);
    const before = ask(look);
    const payload = ask(`DUMP ${key}`) as string;
    expect(session.send(['RESTORE', key, '0', Buffer.from(payload, 'latin1')])).toMatch(/^-BUSYKEY/);
    expect(session.send(['RESTORE', key, '100000', Buffer.from(payload, 'latin1'), 'REPLACE'])).toBe('+OK\r\n');
    checkInvariants(keyspace);
    expect(ask(look)).toEqual(before);
    expect(ask(`PTTL ${key}`)).toBeGreaterThan(50_000);
    expect(ask(`DUMP ${key}`)).toBe(payload);
    session.send('MULTI');
    session.send(`DUMP ${key}`);
    expect(ask('EXEC')).toEqual([payload]);
    ask(`DEL ${key}`);
  });
});

describe('long strings', () => {
  it('BITCOUNT, BITPOS, BITOP and LCS in steps say what they say in one go', PATIENCE, () => {
    const bytes = Buffer.alloc(700_001);
    for (let i = 0; i < bytes.length; i++) bytes[i] = (i * 2654435761) >>> 13;
    session.send(['SET', 'a', bytes]);
    session.send(['SET', 'b', bytes.subarray(5, 300_000)]);
    session.send(['SET', 'zeros', Buffer.concat([Buffer.alloc(600_000), Buffer.from([1])])]);
    const ones = (part: Buffer): number =>
      part.reduce((sum, byte) => sum + byte.toString(2).replaceAll('0', '').length, 0);
    expect(ask('BITCOUNT a')).toBe(ones(bytes));
    expect(ask('BITCOUNT a 3 -7')).toBe(ones(bytes.subarray(3, -6)));
    expect(ask('BITCOUNT a 8 4000007 BIT')).toBe(ones(bytes.subarray(1, 500_001)));
    expect(ask('BITPOS zeros 1')).toBe(600_000 * 8 + 7);
    expect(ask('BITPOS zeros 1 0 599999')).toBe(-1);
    session.send(['SET', 'full', Buffer.alloc(400_000, 0xff)]);
    expect(ask('BITPOS full 0')).toBe(400_000 * 8);
    expect(ask('BITPOS full 0 0 -1')).toBe(-1);
    const b = Buffer.concat([bytes.subarray(5, 300_000), Buffer.alloc(400_006)]);
    for (const [name, combine] of [
      ['AND', (x: number, y: number) => x & y],
      ['OR', (x: number, y: number) => x | y],
      ['XOR', (x: number, y: number) => x ^ y],
    ] as const) {
      expect(ask(`BITOP ${name} made a b`)).toBe(bytes.length);
      const expected = Buffer.from(bytes.map((byte, i) => combine(byte, b[i])));
      expect(Buffer.from(ask('GET made') as string, 'latin1').equals(expected)).toBe(true);
      expect(ask(`BITOP ${name} made b a`)).toBe(bytes.length);
      expect(Buffer.from(ask('GET made') as string, 'latin1').equals(expected)).toBe(true);
    }
    expect(ask('BITOP NOT a a')).toBe(bytes.length);
    expect(Buffer.from(ask('GET a') as string, 'latin1').equals(Buffer.from(bytes.map((byte) => ~byte)))).toBe(true);
    session.send(['SET', 'x', 'abcdefgh'.repeat(100)]);
    session.send(['SET', 'y', 'aXcdYfgh'.repeat(100)]);
    expect(ask('LCS x y LEN')).toBe(600);
    expect(ask('LCS x y')).toBe('acdfgh'.repeat(100));
    ask('DEL a b x y zeros full made');
  });
});

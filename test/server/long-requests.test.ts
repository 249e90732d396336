/**
 * Requests that take several turns (KEYS, SCAN with a large COUNT, replies of large collections): others are served meanwhile, each reply
 * is whole, of one moment where it is a collection's, and in its place in the pipeline.
 */
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { RawClient } from '../helpers/raw-client.js';
import { parseReply, replyEnd } from '../helpers/resp-reply.js';
import { startTestServer, type TestServer } from '../helpers/server.js';
import { multibulk } from '../helpers/session.js';

const KEYS = 60_000;
const ELEMENTS = 150_000;
const BATCH = 1000;
const PATIENCE = { timeout: 120_000 };

let server: TestServer;
let client: RawClient;
let other: RawClient;
let servedInAll = 0;
const LARGE_BYTES = 65_536;

beforeAll(async () => {
  server = await startTestServer({ memcachedPort: 0, args: ['--dram=192MiB', '--maxmemory-policy=noeviction'] });
  [client, other] = [await RawClient.connect(server.redisPort), await RawClient.connect(server.redisPort)];
  const numbers = Array.from({ length: BATCH }, (_, n) => n);
  for (let i = 0; i < KEYS; i += BATCH) await ask(client, ['MSET', ...numbers.flatMap((n) => [`key:${i + n}`, 'v'])]);
  for (let i = 0; i < ELEMENTS; i += BATCH) {
    await ask(client, ['RPUSH', 'list', ...numbers.map((n) => `e${i + n}`)]);
    await ask(client, ['HSET', 'hash', ...numbers.flatMap((n) => [`f${i + n}`, `v${i + n}`])]);
    await ask(client, ['ZADD', 'zset', ...numbers.flatMap((n) => [`${i + n}`, `m${i + n}`])]);
    await ask(client, ['SADD', 'set', ...numbers.map((n) => `m${i + n}`)]);
  }
}, 120_000);

afterAll(async () => {
  client.destroy();
  other.destroy();
  await server.stop();
});

async function take(from: RawClient): Promise<string> {
  // Looking for the end of a large reply takes a while: not after each of its pieces.
  for (let seen = -1; replyEnd(from.text, 0) < 0; seen = from.receivedBytes) {
    await from.until(() => from.receivedBytes > seen, 'more of a reply');
    if (from.receivedBytes > LARGE_BYTES) await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return (await from.read(replyEnd(from.text, 0))).toString('latin1');
}

async function ask(from: RawClient, request: string | readonly string[]): Promise<string> {
  from.write(typeof request === 'string' ? `${request}\r\n` : multibulk(request));
  return take(from);
}

/** Asks the other client small things until the long request is answered; returns both. */
async function during(request: string): Promise<{ readonly reply: string; readonly served: number }> {
  client.write(`${request}\r\n`);
  const before = client.receivedBytes;
  let served = 0;
  while (client.receivedBytes === before) {
    await ask(other, 'GET key:1');
    served++;
  }
  return { reply: await take(client), served };
}

it.each([
  ['KEYS *', KEYS + 4],
  ['KEYS key:*9', KEYS / 10],
  ['LRANGE list 0 -1', ELEMENTS],
  ['LRANGE list 1000 -1001', ELEMENTS - 2000],
  ['SMEMBERS set', ELEMENTS],
  ['HKEYS hash', ELEMENTS],
  ['HGETALL hash', 2 * ELEMENTS],
  ['ZRANGE zset 0 -1', ELEMENTS],
  ['ZRANGE zset 0 -1 REV WITHSCORES', 2 * ELEMENTS],
  ['ZRANGEBYSCORE zset 10 (100000', 99_990],
])('%s', PATIENCE, async (request, count) => {
  const { reply, served } = await during(request);
  const elements = parseReply(reply) as string[];
  expect(elements.length).toBe(count);
  servedInAll += served;
  if (!request.includes('WITHSCORES') && !request.startsWith('HGETALL')) expect(new Set(elements).size).toBe(count);
  if (request === 'LRANGE list 1000 -1001')
    expect([elements[0], elements.at(-1)]).toEqual(['e1000', `e${ELEMENTS - 1001}`]);
  if (request.includes('REV')) expect(elements.slice(0, 2)).toEqual([`m${ELEMENTS - 1}`, String(ELEMENTS - 1)]);
});

it('SCAN with a large COUNT', PATIENCE, async () => {
  const { reply, served } = await during(`SCAN 0 COUNT ${KEYS * 2}`);
  const [cursor, keys] = parseReply(reply) as [string, string[]];
  expect(cursor).toBe('0');
  expect(new Set(keys).size).toBe(KEYS + 4);
  expect(keys.length).toBe(KEYS + 4);
  servedInAll += served;
  // One each is what came in before the request: a busy machine may not let us ask for more during some of them.
  expect(servedInAll).toBeGreaterThan(30);
});

it.each([
  ['SSCAN set', ELEMENTS],
  ['HSCAN hash', 2 * ELEMENTS],
  ['ZSCAN zset', 2 * ELEMENTS],
])('%s with a large COUNT', PATIENCE, async (request, count) => {
  const { reply, served } = await during(`${request} 0 COUNT ${ELEMENTS * 2}`);
  const [cursor, elements] = parseReply(reply) as [string, string[]];
  expect(cursor).toBe('0');
  expect(elements.length).toBe(count);
  expect(new Set(elements).size).toBe(count);
  servedInAll += served;
  // In parts, the cursor of one call begins the next.
  let seen = 0;
  let next = '0';
  do {
    const [after, some] = parseReply(await ask(client, `${request} ${next} COUNT 30000`)) as [string, string[]];
    next = after;
    seen += some.length;
  } while (next !== '0');
  expect(seen).toBe(count);
});

it('replies keep their order in a pipeline', PATIENCE, async () => {
  client.write('PING one\r\nKEYS *\r\nLRANGE list 0 -1\r\nCLIENT REPLY SKIP\r\nKEYS *\r\nPING two\r\n');
  expect(await take(client)).toBe('$3\r\none\r\n');
  expect(await take(client)).toMatch(new RegExp(`^\\*${KEYS + 4}\r\n`));
  expect(await take(client)).toMatch(new RegExp(`^\\*${ELEMENTS}\r\n`));
  expect(await take(client)).toBe('$3\r\ntwo\r\n');
});

it('a collection that changes in the middle is replied as of one moment', PATIENCE, async () => {
  // Who changes it waits, or the reply is made anew: whichever, both ends are those of one transaction.
  await ask(other, 'LSET list 0 same');
  await ask(other, 'LSET list -1 same');
  for (let round = 0; round < 5; round++) {
    client.write('LRANGE list 0 -1\r\n');
    const before = client.receivedBytes;
    for (let change = 0; client.receivedBytes === before; change++) {
      other.write(`MULTI\r\nLSET list 0 ${round}.${change}\r\nLSET list -1 ${round}.${change}\r\nEXEC\r\n`);
      for (let i = 0; i < 4; i++) await take(other);
    }
    const elements = parseReply(await take(client)) as string[];
    expect(elements.length).toBe(ELEMENTS);
    expect(elements.at(-1)).toBe(elements[0]);
  }
});

it('keys that stay are in the answer once, whatever comes and goes', PATIENCE, async () => {
  client.write('KEYS key:*\r\n');
  const before = client.receivedBytes;
  for (let i = 0; client.receivedBytes === before; i++) {
    await ask(other, ['MSET', ...Array.from({ length: 50 }, (_, n) => [`new:${i}:${n}`, 'v']).flat()]);
    await ask(other, ['DEL', ...Array.from({ length: 50 }, (_, n) => `new:${i}:${n}`)]);
  }
  const keys = parseReply(await take(client)) as string[];
  expect(keys.length).toBe(KEYS);
  expect(new Set(keys).size).toBe(KEYS);
});

it('in EXEC and scripts they are one step', PATIENCE, async () => {
  client.write('MULTI\r\nKEYS key:*\r\nLRANGE list 0 -1\r\nEXEC\r\n');
  for (let i = 0; i < 3; i++) await take(client);
  const [keys, elements] = parseReply(await take(client)) as [string[], string[]];
  expect([keys.length, elements.length]).toEqual([KEYS, ELEMENTS]);
  expect(await ask(client, ['EVAL', "return #redis.call('KEYS', 'key:*') + #redis.call('SMEMBERS', 'set')", '0'])).toBe(
    `:${KEYS + ELEMENTS}\r\n`,
  );
});

it('a key that goes in the middle', PATIENCE, async () => {
  await ask(client, 'COPY set copy');
  client.write('SMEMBERS copy\r\n');
  await ask(other, 'DEL copy');
  expect(await take(client)).toMatch(new RegExp(`^\\*(0|${ELEMENTS})\r\n`));
  expect(await ask(client, 'PING')).toBe('+PONG\r\n');
});

it('counts as one call, of all the time it took', PATIENCE, async () => {
  await ask(client, 'CONFIG RESETSTAT');
  await during('KEYS *');
  await during('LRANGE list 0 -1');
  const stats = await ask(client, 'INFO commandstats');
  expect(stats).toMatch(/cmdstat_keys:calls=1,/);
  expect(stats).toMatch(/cmdstat_lrange:calls=1,/);
  expect(Number(/cmdstat_keys:calls=1,usec=(\d+)/.exec(stats)![1])).toBeGreaterThan(2000);
  expect(await ask(client, 'INFO stats')).toMatch(/keyspace_hits:\d+/);
});

/** Elements of a reply, each once. */
async function setOf(request: string): Promise<Set<string>> {
  return new Set(parseReply(await ask(client, request)) as string[]);
}

it.each([
  ['SUNION set few', ELEMENTS + 2],
  ['SINTER set copy set', ELEMENTS],
  ['SDIFF set few', ELEMENTS - 1],
  ['SDIFF set few nope', ELEMENTS - 1],
  ['ZUNION 2 zset few', ELEMENTS + 2],
  ['ZINTER 2 zset set', ELEMENTS],
  ['ZDIFF 2 zset few', ELEMENTS - 1],
])('%s', PATIENCE, async (request, count) => {
  await ask(client, 'COPY set copy REPLACE');
  await ask(client, 'SADD few m1 new other');
  const { reply, served } = await during(request);
  const elements = parseReply(reply) as string[];
  expect(elements.length).toBe(count);
  expect(new Set(elements).size).toBe(count);
  expect(served).toBeGreaterThan(2);
});

it.each([
  ['SINTERCARD 2 set copy', ELEMENTS],
  ['SINTERCARD 2 set copy LIMIT 140000', 140_000],
  ['ZINTERCARD 2 zset set LIMIT 140000', 140_000],
])('%s', PATIENCE, async (request, count) => {
  await ask(client, 'COPY set copy REPLACE');
  expect((await during(request)).reply).toBe(`:${count}\r\n`);
});

it('SUNIONSTORE and SDIFFSTORE make a set like any other', PATIENCE, async () => {
  await ask(client, 'SADD few m1 new other');
  const { reply, served } = await during('SUNIONSTORE made set few');
  expect(reply).toBe(`:${ELEMENTS + 2}\r\n`);
  expect(served).toBeGreaterThan(2);
  expect(await ask(client, 'SADD made m1 new fresh')).toBe(':1\r\n');
  expect(await ask(client, 'SREM made fresh new m7 nope')).toBe(':3\r\n');
  expect(await setOf('SDIFF set made')).toEqual(new Set(['m7']));
  expect(await setOf('SDIFF made set')).toEqual(new Set(['other']));
  expect((await during('SDIFFSTORE made made few')).reply).toBe(`:${ELEMENTS - 2}\r\n`);
  expect(await setOf('SDIFF set made')).toEqual(new Set(['m1', 'm7']));
});

it('ZUNIONSTORE makes a sorted set like any other', PATIENCE, async () => {
  await ask(client, 'ZADD odd 0.5 m1 -3 minus 3.5 new');
  const { reply, served } = await during('ZUNIONSTORE made 2 zset odd WEIGHTS 2 1');
  expect(reply).toBe(`:${ELEMENTS + 2}\r\n`);
  expect(served).toBeGreaterThan(2);
  expect(parseReply(await ask(client, 'ZRANGE made 0 5 WITHSCORES'))).toEqual([
    'minus',
    '-3',
    'm0',
    '0',
    'm1',
    '2.5',
    'new',
    '3.5',
    'm2',
    '4',
    'm3',
    '6',
  ]);
  for (const n of [0, 2, 4711, ELEMENTS - 1]) {
    expect(await ask(client, `ZSCORE made m${n}`)).toBe(`$${String(2 * n).length}\r\n${2 * n}\r\n`);
    expect(await ask(client, `ZRANK made m${n}`)).toBe(`:${n + 1 + (n > 1 ? 1 : 0)}\r\n`);
  }
  expect(await ask(client, 'ZADD made 1 m4711 1 fresh')).toBe(':1\r\n');
  expect(await ask(client, 'ZREM made m4711 m0 nope')).toBe(':2\r\n');
  expect(await ask(client, 'ZCARD made')).toBe(`:${ELEMENTS + 1}\r\n`);
  expect((await during('ZRANGESTORE part zset 10 -11')).reply).toBe(`:${ELEMENTS - 20}\r\n`);
  expect(await ask(client, 'ZRANGE part 0 0')).toBe('*1\r\n$3\r\nm10\r\n');
});

it.each([
  ['set', 'SCARD'],
  ['hash', 'HLEN'],
  ['zset', 'ZCARD'],
  ['list', 'LLEN'],
])('COPY of a large %s', PATIENCE, async (key, size) => {
  expect((await during(`COPY ${key} copied REPLACE`)).reply).toBe(':1\r\n');
  expect(await ask(client, `${size} copied`)).toBe(await ask(client, `${size} ${key}`));
  expect(await ask(client, 'DEL copied')).toBe(':1\r\n');
});

it('SORT of many elements', PATIENCE, async () => {
  const { reply, served } = await during('SORT zset ALPHA DESC LIMIT 1 3');
  const last = Array.from({ length: ELEMENTS }, (_, n) => `m${n}`)
    .sort()
    .slice(-4, -1)
    .reverse();
  expect(parseReply(reply)).toEqual(last);
  expect(served).toBeGreaterThan(2);
  expect(await ask(client, 'SORT list')).toMatch(/^-ERR One or more scores/);
  await ask(client, 'DEL numbers');
  for (let i = 0; i < ELEMENTS; i += BATCH) {
    await ask(client, ['RPUSH', 'numbers', ...Array.from({ length: BATCH }, (_, n) => String((i + n) ^ 0x5a5a))]);
  }
  const numbers = Array.from({ length: ELEMENTS }, (_, n) => n ^ 0x5a5a)
    .sort((a, b) => a - b)
    .map(String);
  expect(parseReply((await during('SORT numbers')).reply)).toEqual(numbers);
  expect((await during('SORT numbers DESC STORE numbers')).reply).toBe(`:${ELEMENTS}\r\n`);
  expect(parseReply(await ask(client, 'LRANGE numbers 0 -1'))).toEqual(numbers.reverse());
  expect((await during('SORT numbers LIMIT 0 2 STORE part')).reply).toBe(':2\r\n');
});

it('who would change what is being read waits; what is stored is of one moment', PATIENCE, async () => {
  for (let round = 0; round < 4; round++) {
    await ask(client, 'DEL made');
    await ask(other, 'SADD set early late');
    client.write('SUNIONSTORE made set few\r\n');
    // Either both are in it or none, whichever comes first.
    other.write('MULTI\r\nSREM set early late\r\nEXEC\r\n');
    for (let i = 0; i < 3; i++) await take(other);
    await take(client);
    const both = await ask(client, 'SMISMEMBER made early late');
    expect(['*2\r\n:0\r\n:0\r\n', '*2\r\n:1\r\n:1\r\n']).toContain(both);
  }
});

it('a destination that is written meanwhile, and clients that leave', PATIENCE, async () => {
  for (let i = 0; i < 3; i++) {
    const leaving = await RawClient.connect(server.redisPort);
    leaving.write('ZUNIONSTORE made 1 zset\r\nSUNIONSTORE made set few\r\n');
    await ask(other, 'SET made text');
    expect(['+string\r\n', '+zset\r\n', '+set\r\n']).toContain(await ask(other, 'TYPE made'));
    leaving.destroy();
  }
  await ask(other, 'ZADD zset 5 m5');
  await ask(other, 'SADD set m5');
  expect(await ask(other, 'PING')).toBe('+PONG\r\n');
});

it.each([
  ['zset', 'ZREMRANGEBYRANK gone 0 99999', 'ZCARD', 'ZADD gone 1 new', 100_000],
  ['zset', 'ZPOPMAX gone 60000', 'ZCARD', 'ZADD gone 1 new', 60_000],
  ['set', 'SPOP gone 70000', 'SCARD', 'SADD gone new', 70_000],
  ['list', 'LPOP gone 80000', 'LLEN', 'RPUSH gone new', 80_000],
  ['list', 'LTRIM gone 50000 -1', 'LLEN', 'RPUSH gone new', 50_000],
])('of a large %s: %s', PATIENCE, async (key, request, size, change, removed) => {
  const writer = await RawClient.connect(server.redisPort);
  for (const leaves of [true, false]) {
    await ask(client, `COPY ${key} gone REPLACE`);
    const before = Number((await ask(client, `${size} gone`)).slice(1));
    const remover = await RawClient.connect(server.redisPort);
    remover.write(`${request}\r\n`);
    writer.write(`${change}\r\n`);
    // All of it goes at one moment, and what others add comes before or behind.
    const allowed = [before, before - removed, before + 1, before - removed + 1];
    while (writer.receivedBytes === 0) {
      expect(allowed).toContain(Number((await ask(other, `${size} gone`)).slice(1)));
      if (leaves) remover.destroy();
    }
    await take(writer);
    if (!leaves) {
      await take(remover);
      expect(await ask(other, `${size} gone`)).toBe(`:${before - removed + 1}\r\n`);
    }
    remover.destroy();
  }
  writer.destroy();
  await ask(client, 'DEL gone');
});

it('in EXEC and scripts sets are united in one step', PATIENCE, async () => {
  await ask(client, 'SADD few m1 new other');
  client.write('MULTI\r\nSUNIONSTORE made set few\r\nZUNIONSTORE part 1 zset\r\nSCARD made\r\nEXEC\r\n');
  for (let i = 0; i < 4; i++) await take(client);
  expect(parseReply(await take(client))).toEqual([ELEMENTS + 2, ELEMENTS, ELEMENTS + 2]);
  const script = "return redis.call('SUNIONSTORE', 'made', 'set', 'few') + #redis.call('SINTER', 'set', 'made')";
  expect(await ask(client, ['EVAL', script, '0'])).toBe(`:${2 * ELEMENTS + 2}\r\n`);
});

it('LATENCY tells of what cannot be cut', PATIENCE, async () => {
  await ask(client, 'CONFIG SET latency-monitor-threshold 5');
  await ask(client, 'LATENCY RESET');
  expect(await ask(client, 'SORT list ALPHA LIMIT 0 1 GET #')).toMatch(/^\*1\r\n/);
  expect(await ask(client, 'LATENCY LATEST')).toContain('\r\ncommand\r\n');
  await ask(client, 'CONFIG SET latency-monitor-threshold 0');
});

it('a client that has finished sending gets its reply; one that leaves stands in nobody’s way', PATIENCE, async () => {
  const received = await new Promise<number>((resolve, reject) => {
    let bytes = 0;
    const socket = connect({ port: server.redisPort, host: '127.0.0.1', allowHalfOpen: true }, () =>
      socket.end('LRANGE list 0 -1\r\n'),
    );
    socket.on('data', (data: Buffer) => {
      bytes += data.length;
    });
    socket.on('end', () => resolve(bytes));
    socket.on('error', reject);
  });
  expect(received).toBeGreaterThan(ELEMENTS * 8);
  for (let i = 0; i < 5; i++) {
    const leaving = await RawClient.connect(server.redisPort);
    leaving.write('KEYS *\r\nKEYS *\r\n');
    await ask(other, 'PING');
    leaving.destroy();
  }
  expect(await ask(other, 'PING')).toBe('+PONG\r\n');
});

it('FLUSHALL in the middle', PATIENCE, async () => {
  client.write('KEYS *\r\n');
  await ask(other, 'PING');
  await ask(other, 'FLUSHALL');
  await ask(other, 'SET only 1');
  const keys = parseReply(await take(client)) as string[];
  expect([0, 1, KEYS + 4]).toContain(keys.length);
});

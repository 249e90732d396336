/** entresol pool export: every type comes out as it went in, bytes that are no text among it. Needs the build. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makePool, removePool } from '../helpers/pool.js';
import { RawClient } from '../helpers/raw-client.js';
import { startTestServer } from '../helpers/server.js';
import { entresol } from './command.js';

let pool: string;
beforeEach(async () => {
  pool = await makePool();
});
afterEach(() => removePool(pool));

function request(...args: readonly string[]): string {
  return `*${args.length}\r\n${args.map((arg) => `$${arg.length}\r\n${arg}\r\n`).join('')}`;
}

async function send(client: RawClient, args: readonly string[], reply: string): Promise<void> {
  await client.ask(request(...args), reply);
}

interface Line {
  readonly db: number;
  readonly key: string | { readonly base64: string };
  readonly type: string;
  readonly value: unknown;
  readonly expiresAtMs?: number;
  readonly flags?: number;
}

async function exported(): Promise<Map<string, Line>> {
  const { code, out, err } = await entresol(['pool', 'export', pool]);
  expect({ code, err }).toEqual({ code: 0, err: '' });
  const lines = out
    .split('\n')
    .slice(0, -1)
    .map((text) => JSON.parse(text) as Line);
  const byKey = new Map(lines.map((line) => [`${line.db}/${JSON.stringify(line.key)}`, line]));
  expect(byKey.size).toBe(lines.length);
  return byKey;
}

const SOON = Date.now() + 10_000_000;

describe('entresol pool export', () => {
  it('writes each type as documented, what a killed server left included', async () => {
    const server = await startTestServer({ pool, dram: '16mb' });
    const client = await RawClient.connect(server.redisPort);
    await send(client, ['SET', 'text "quoted"\n', 'gr\xc3\xbc\xc3\x9fe\0'], '+OK\r\n');
    await send(client, ['SET', 'bin\xff', '\x00\x80\xfe', 'PXAT', String(SOON)], '+OK\r\n');
    await send(client, ['SET', 'gone', '1', 'PX', '1'], '+OK\r\n');
    await send(client, ['SET', 'long', 'x'.repeat(2_000_000)], '+OK\r\n');
    await send(client, ['RPUSH', 'list', 'a', '', '\xff'], ':3\r\n');
    await send(client, ['SADD', 'set', '3', '1', '2'], ':3\r\n');
    await send(client, ['ZADD', 'zset', '1.5', 'a', '-inf', 'b', 'inf', 'c', '0.1', 'd'], ':4\r\n');
    await send(client, ['HSET', 'hash', 'f', 'v', 'g', 'w'], ':2\r\n');
    await send(client, ['HPEXPIREAT', 'hash', String(SOON), 'FIELDS', '1', 'g'], '*1\r\n:1\r\n');
    await send(client, ['XADD', 'stream', '1-1', 'f', 'v', 'g', 'w'], '$3\r\n1-1\r\n');
    await send(client, ['XADD', 'stream', '2-0', 'f', 'v2', 'g', 'w2'], '$3\r\n2-0\r\n');
    await send(client, ['XADD', 'stream', '3-0', 'x', 'y'], '$3\r\n3-0\r\n');
    await send(client, ['XDEL', 'stream', '3-0'], ':1\r\n');
    await send(client, ['XGROUP', 'CREATE', 'stream', 'group', '0'], '+OK\r\n');
    await send(client, ['XGROUP', 'CREATECONSUMER', 'stream', 'group', 'idle'], ':1\r\n');
    const read = ['XREADGROUP', 'GROUP', 'group', 'c\xff', 'COUNT', '1', 'STREAMS', 'stream', '>'];
    const entry = '*2\r\n$3\r\n1-1\r\n*4\r\n$1\r\nf\r\n$1\r\nv\r\n$1\r\ng\r\n$1\r\nw\r\n';
    await send(client, read, `*1\r\n*2\r\n$6\r\nstream\r\n*1\r\n${entry}`);
    await send(client, ['SELECT', '9'], '+OK\r\n');
    await send(client, ['SET', 'list', 'another database'], '+OK\r\n');
    for (let i = 0; i < 3000; i++) await send(client, ['RPUSH', 'many', `element ${i}`], `:${i + 1}\r\n`);
    client.destroy();
    const memcached = await RawClient.connect(server.memcachedPort);
    await memcached.ask('set flagged 77 0 2\r\nhi\r\n', 'STORED\r\n');
    memcached.destroy();
    await server.kill();

    const items = await exported();
    const line = (key: string): Line => {
      const found = items.get(key);
      if (found === undefined) throw new Error(`${key} is not among ${[...items.keys()].join(' ')}`);
      return found;
    };
    expect(line('0/"text \\"quoted\\"\\n"')).toMatchObject({ type: 'string', value: 'grüße\0' });
    const binary = Buffer.from('bin\xff', 'latin1').toString('base64');
    expect(line(`0/{"base64":"${binary}"}`)).toEqual({
      db: 0,
      key: { base64: binary },
      expiresAtMs: SOON,
      type: 'string',
      value: { base64: 'AID+' },
    });
    const long = (line('0/"long"').value as { base64: string }).base64;
    expect(Buffer.from(long, 'base64').toString('latin1')).toBe('x'.repeat(2_000_000));
    expect(line('0/"list"').value).toEqual(['a', '', { base64: '/w==' }]);
    expect((line('0/"set"').value as string[]).sort()).toEqual(['1', '2', '3']);
    expect(line('0/"zset"').value).toEqual([
      ['b', '-inf'],
      ['d', 0.1],
      ['a', 1.5],
      ['c', 'inf'],
    ]);
    expect(line('0/"hash"').value).toEqual([
      ['f', 'v'],
      ['g', 'w', SOON],
    ]);
    expect(line('0/"stream"')).toEqual({
      db: 0,
      key: 'stream',
      type: 'stream',
      lastId: '3-0',
      maxDeletedId: '3-0',
      entriesAdded: 3,
      value: [
        ['1-1', ['f', 'v', 'g', 'w']],
        ['2-0', ['f', 'v2', 'g', 'w2']],
      ],
      groups: [
        {
          name: 'group',
          lastId: '1-1',
          entriesRead: null,
          consumers: [
            { name: { base64: 'Y/8=' }, seenAtMs: expect.any(Number), activeAtMs: expect.any(Number) },
            { name: 'idle', seenAtMs: expect.any(Number), activeAtMs: null },
          ],
          pending: [['1-1', { base64: 'Y/8=' }, expect.any(Number), 1]],
        },
      ],
    });
    expect(line('0/"flagged"')).toMatchObject({ flags: 77, value: 'hi' });
    expect(line('9/"list"').value).toBe('another database');
    expect(line('9/"many"').value).toEqual(Array.from({ length: 3000 }, (_, i) => `element ${i}`));
    expect(items.size).toBe(11);
  });
});

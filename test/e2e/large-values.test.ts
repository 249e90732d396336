/**
 * Values that are received into the store and sent out of it: sizes around each limit, in pieces, cut off, without memory.
 */
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RawClient } from '../helpers/raw-client.js';
import { startTestServer, type TestServer } from '../helpers/server.js';
import { multibulk } from '../helpers/session.js';

const KIB = 1024;
const MIB = 1024 * KIB;

let server: TestServer;
let client: RawClient;

beforeAll(async () => {
  server = await startTestServer({ memcachedPort: 0, dram: '128mb', capacity: '256mb', workers: 2 });
  client = await RawClient.connect(server.redisPort);
});

afterAll(async () => {
  client.destroy();
  await server.stop();
});

/** Bytes that differ at every place, so that a shifted or torn value shows. */
function pattern(length: number, seed: number): Buffer {
  const bytes = Buffer.alloc(length);
  for (let i = 0; i < length; i += 4) bytes.writeUInt32LE(((i * 2654435761) ^ seed) >>> 0, Math.min(i, length - 4));
  return bytes;
}

const digest = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

async function expectValue(from: RawClient, key: string, value: Buffer): Promise<void> {
  from.write(multibulk(['GET', key]));
  const header = `$${value.length}\r\n`;
  const reply = await from.read(header.length + value.length + 2, 30_000);
  expect(reply.subarray(0, header.length).toString()).toBe(header);
  expect(digest(reply.subarray(header.length, -2))).toBe(digest(value));
}

describe('large values', () => {
  it.each([
    16 * KIB - 1,
    16 * KIB,
    16 * KIB + 1,
    64 * KIB,
    256 * KIB - 50,
    256 * KIB + 1,
    MIB,
    MIB + 1,
    5 * MIB + 3,
    40 * MIB,
  ])('of %i bytes come back as they went', { timeout: 60_000 }, async (length) => {
    const value = pattern(length, length);
    client.write(multibulk(['SET', 'big', value]));
    await client.ask('', '+OK\r\n');
    await expectValue(client, 'big', value);
  });

  it('go through pipelined with others, with options behind them', async () => {
    const value = pattern(300 * KIB, 1);
    client.write(
      Buffer.concat([
        multibulk(['SET', 'a', '1']),
        multibulk(['SET', 'big', value, 'EX', '100']),
        multibulk(['SET', 'big', value, 'NX']),
        multibulk(['TTL', 'big']),
        multibulk(['SET', 'big', value, 'FOO']),
        multibulk(['STRLEN', 'big']),
        multibulk(['GET', 'a']),
      ]),
    );
    await client.ask('', `+OK\r\n+OK\r\n$-1\r\n:100\r\n-ERR syntax error\r\n:${value.length}\r\n$1\r\n1\r\n`);
  });

  it('are there only when they are whole', async () => {
    const old = pattern(100 * KIB, 2);
    client.write(multibulk(['SET', 'torn', old]));
    await client.ask('', '+OK\r\n');
    const other = await RawClient.connect(server.redisPort);
    const request = multibulk(['SET', 'torn', pattern(5 * MIB, 3)]);
    other.write(request.subarray(0, 3 * MIB));
    await expectValue(client, 'torn', old);
    other.destroy();
    await expectValue(client, 'torn', old);
  });

  it('of clients that go away give their memory back', { timeout: 60_000 }, async () => {
    const request = multibulk(['SET', 'gone', pattern(20 * MIB, 4)]);
    for (let i = 0; i < 30; i++) {
      const other = await RawClient.connect(server.redisPort);
      other.write(request.subarray(0, 64 * KIB));
      other.destroy();
    }
    const value = pattern(40 * MIB, 5);
    client.write(multibulk(['SET', 'after', value]));
    await client.until(() => client.receivedBytes >= 5, 'the reply', 30_000);
    await client.ask('', '+OK\r\n');
    await expectValue(client, 'after', value);
  });

  it('are read while others overwrite and delete them', { timeout: 60_000 }, async () => {
    const values = [pattern(2 * MIB, 6), pattern(2 * MIB, 7)];
    const digests = values.map(digest);
    const writer = await RawClient.connect(server.redisPort);
    const reader = await RawClient.connect(server.redisPort);
    writer.write(multibulk(['SET', 'hot', values[0]]));
    await writer.ask('', '+OK\r\n');
    for (let round = 0; round < 15; round++) {
      for (let i = 0; i < 4; i++) reader.write(multibulk(['GET', 'hot']));
      writer.write(multibulk(['SET', 'hot', values[round % 2]]));
      await writer.ask('', '+OK\r\n');
      for (let i = 0; i < 4; i++) {
        const reply = await reader.read(`$${2 * MIB}\r\n`.length + 2 * MIB + 2, 30_000);
        expect(digests).toContain(digest(reply.subarray(`$${2 * MIB}\r\n`.length, -2)));
      }
    }
    writer.destroy();
    reader.destroy();
  });

  it('in transactions', async () => {
    const value = pattern(MIB, 8);
    client.write(Buffer.concat([multibulk(['MULTI']), multibulk(['SET', 'big', value]), multibulk(['STRLEN', 'big'])]));
    await client.ask('EXEC\r\n', `+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n:${value.length}\r\n`);
  });

  it('of more than proto-max-bulk-len are refused', async () => {
    const other = await RawClient.connect(server.redisPort);
    other.write(`*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$${512 * MIB + 1}\r\n`);
    await other.closed();
    expect(other.text).toBe('-ERR Protocol error: invalid bulk length\r\n');
  });
});

describe('without memory for a large value', () => {
  it('the value is read and refused, and the connection goes on', { timeout: 60_000 }, async () => {
    const small = await startTestServer({
      memcachedPort: 0,
      dram: '16mb',
      capacity: '0',
      args: ['--maxmemory-policy=noeviction'],
    });
    const poor = await RawClient.connect(small.redisPort);
    poor.write(multibulk(['SET', 'big', pattern(30 * MIB, 9)]));
    await poor.ask('PING\r\n', "-OOM command not allowed when used memory > 'maxmemory'.\r\n+PONG\r\n");
    poor.destroy();
    await small.stop();
  });
});

/**
 * Values above the inline limit are sent from where they lie: a command that changes one in place must not change what an
 * earlier GET is still sending.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RawClient } from '../helpers/raw-client.js';
import { replyEnd } from '../helpers/resp-reply.js';
import { startTestServer, type TestServer } from '../helpers/server.js';
import { multibulk } from '../helpers/session.js';

const MIB = 1024 * 1024;
/** Slab chunk and whole pages; the large one does not fit into socket buffers. */
const SIZES = [20_000, 200_000, 12 * MIB];

let server: TestServer;

beforeAll(async () => {
  server = await startTestServer({ memcachedPort: 0, dram: '128mb', workers: 2 });
});

afterAll(() => server.stop());

async function takeReply(client: RawClient): Promise<string> {
  await client.until(() => replyEnd(client.text, 0) >= 0, 'a reply');
  return (await client.read(replyEnd(client.text, 0))).toString('latin1');
}

/** How many GETs the server has executed. */
async function getCalls(client: RawClient): Promise<string> {
  client.write('INFO commandstats\r\n');
  return /cmdstat_get:calls=(\d+)/.exec(await takeReply(client))?.[1] ?? '0';
}

describe.each(SIZES)('a value of %i bytes on its way out', (length) => {
  const old = Buffer.alloc(length, 'o');
  const header = `$${length}\r\n`;
  const changes: readonly (readonly string[])[] = [
    ['SETRANGE', 'k', '0', 'NEW'],
    ['SETRANGE', 'k', String(length - 3), 'NEW'],
    ['APPEND', 'k', 'NEW'],
    ['SETBIT', 'k', String(length * 4), '1'],
    ['BITFIELD', 'k', 'SET', 'u8', String(length * 4), '255'],
    ['BITOP', 'NOT', 'k', 'k'],
    ['GETDEL', 'k'],
    ['RENAME', 'k', 'j'],
    ['SET', 'k', 'short'],
    ['FLUSHALL'],
  ];

  /** GETDEL replies the value again: counted, not looked at piece by piece. */
  async function takeChange(client: RawClient, change: readonly string[]): Promise<void> {
    if (change[0] === 'GETDEL') await client.read(header.length + length + 2);
    else await takeReply(client);
  }

  async function getWhile(change: readonly string[], sameConnection: boolean): Promise<void> {
    const writer = await RawClient.connect(server.redisPort);
    writer.write(multibulk(['SET', 'k', old]));
    await writer.ask('', '+OK\r\n');
    const reader = await RawClient.connect(server.redisPort);
    // Nobody takes the reply yet.
    reader.socket.pause();
    const gets = await getCalls(writer);
    reader.write(multibulk(['GET', 'k']));
    if (sameConnection) {
      reader.write(multibulk(change));
    } else {
      while ((await getCalls(writer)) === gets) await new Promise((resolve) => setTimeout(resolve, 5));
      writer.write(multibulk(change));
      await takeChange(writer, change);
    }
    reader.socket.resume();
    const reply = await reader.read(header.length + length + 2, 30_000);
    expect(reply.subarray(0, header.length).toString()).toBe(header);
    expect(reply.subarray(header.length, -2).equals(old)).toBe(true);
    if (sameConnection) await takeChange(reader, change);
    reader.destroy();
    writer.destroy();
  }

  it.each(changes)('outlives %s', { timeout: 30_000 }, async (...change) => {
    await getWhile(change, false);
    await getWhile(change, true);
  });
});

/** Values up to 512 MiB go through without a copy in the process's own memory. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { RawClient } from '../helpers/raw-client.js';
import { startTestServer, type TestServer } from '../helpers/server.js';

const MIB = 1024 * 1024;

async function peakAnonymousBytes(server: TestServer, during: Promise<unknown>): Promise<number> {
  let peak = 0;
  let isDone = false;
  const mark = (): void => {
    isDone = true;
  };
  during.then(mark, mark);
  while (!isDone) {
    const status = await readFile(`/proc/${server.pid}/status`, 'utf8');
    peak = Math.max(peak, Number(/^RssAnon:\s+(\d+) kB/m.exec(status)![1]) * 1024);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await during;
  return peak;
}

/** A block whose content depends on the position, so that a shifted or torn value shows. */
function block(index: number): Buffer {
  const words = new Int32Array(MIB / 4);
  for (let i = 0; i < words.length; i++) words[i] = Math.imul(index * words.length + i, 2_654_435_761);
  return Buffer.from(words.buffer);
}

async function send(client: RawClient, blocks: number): Promise<string> {
  const digest = createHash('sha1');
  client.write(`*3\r\n$3\r\nSET\r\n$5\r\nlarge\r\n$${blocks * MIB}\r\n`);
  for (let i = 0; i < blocks; i++) {
    const bytes = block(i);
    digest.update(bytes);
    if (!client.socket.write(bytes)) await new Promise((resolve) => client.socket.once('drain', resolve));
  }
  client.write('\r\n');
  expect(await client.line(60_000)).toBe('+OK');
  return digest.digest('hex');
}

async function receive(port: number, byteCount: number): Promise<string> {
  const client = await RawClient.connect(port);
  client.write('GET large\r\n');
  expect(await client.line(60_000)).toBe(`$${byteCount}`);
  const digest = createHash('sha1');
  let left = byteCount;
  while (left > 0) {
    const part = Math.min(left, 4 * MIB);
    digest.update(await client.read(part, 60_000));
    left -= part;
  }
  expect((await client.read(2)).toString()).toBe('\r\n');
  client.destroy();
  return digest.digest('hex');
}

test('a value of 512 MiB comes back whole, in bounded memory', { timeout: 120_000 }, async () => {
  const server = await startTestServer({ dram: '64mb', capacity: '800mb', args: ['--tier=file'] });
  const writer = await RawClient.connect(server.redisPort);
  const before = Number(/^RssAnon:\s+(\d+) kB/m.exec(await readFile(`/proc/${server.pid}/status`, 'utf8'))![1]) * 1024;

  const sending = send(writer, 512);
  const peakReceiving = await peakAnonymousBytes(server, sending);
  expect(peakReceiving - before).toBeLessThan(64 * MIB);

  const receiving = receive(server.redisPort, 512 * MIB);
  const peakSending = await peakAnonymousBytes(server, receiving);
  expect(peakSending - before).toBeLessThan(64 * MIB);
  expect(await receiving).toBe(await sending);

  await writer.ask('STRLEN large\r\n', `:${512 * MIB}\r\n`);
  await writer.ask('DEL large\r\n', ':1\r\n');
  writer.destroy();
  await server.stop();
});

test('a client that goes away in the middle of a large value leaves nothing behind', async () => {
  const server = await startTestServer({ dram: '64mb', capacity: '64mb', args: ['--tier=file'] });
  for (let round = 0; round < 12; round++) {
    const client = await RawClient.connect(server.redisPort);
    client.write(`*3\r\n$3\r\nSET\r\n$5\r\nlarge\r\n$${20 * MIB}\r\n`);
    for (let i = 0; i < 10; i++) client.write(block(i));
    await new Promise((resolve) => setTimeout(resolve, 60));
    client.destroy();
  }
  const client = await RawClient.connect(server.redisPort);
  const digest = await send(client, 20);
  expect(await receive(server.redisPort, 20 * MIB)).toBe(digest);
  client.destroy();
  await server.stop();
});

test('a value above the limit is refused at once, as Redis words it', async () => {
  const server = await startTestServer();
  const client = await RawClient.connect(server.redisPort);
  client.write(`*3\r\n$3\r\nSET\r\n$5\r\nlarge\r\n$${512 * MIB + 1}\r\n`);
  expect(await client.line()).toBe('-ERR Protocol error: invalid bulk length');
  await client.closed();
  await server.stop();
});

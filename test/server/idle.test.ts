/** A server without work uses almost no CPU, and answers at once all the same. */
import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { RawClient } from '../helpers/raw-client.js';
import { startTestServer } from '../helpers/server.js';

const TICKS_PER_SECOND = 100; // of /proc/<pid>/stat on Linux

async function cpuSeconds(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

test('idle CPU is near zero, with connections and keys that expire', async () => {
  const server = await startTestServer({ workers: 2 });
  const clients = await Promise.all(Array.from({ length: 20 }, () => RawClient.connect(server.redisPort)));
  for (const [i, client] of clients.entries()) await client.ask(`SET k${i} v EX 1000\r\n`, '+OK\r\n');
  await new Promise((resolve) => setTimeout(resolve, 1000));
  const before = await cpuSeconds(server.pid);
  await new Promise((resolve) => setTimeout(resolve, 4000));
  expect((await cpuSeconds(server.pid)) - before).toBeLessThanOrEqual(0.12);
  for (const client of clients) {
    await client.ask('PING\r\n', '+PONG\r\n');
    client.destroy();
  }
  await server.stop();
});

test('keys expire while nobody asks', async () => {
  const server = await startTestServer();
  const client = await RawClient.connect(server.redisPort);
  for (let i = 0; i < 100; i++) await client.ask(`SET k${i} v PX 200\r\n`, '+OK\r\n');
  await client.ask('DBSIZE\r\n', ':100\r\n');
  await new Promise((resolve) => setTimeout(resolve, 1500));
  await client.ask('DBSIZE\r\n', ':0\r\n');
  client.destroy();
  await server.stop();
});

/** Keyspace events of hash fields that expire: by commands, when somebody looks, in the background. Redis 7.4's; Debian's has none. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { RawClient } from '../helpers/raw-client.js';
import { replyEnd } from '../helpers/resp-reply.js';
import { startTestServer, type TestServer } from '../helpers/server.js';

let server: TestServer;
let client: RawClient;
let listener: RawClient;

beforeAll(async () => {
  server = await startTestServer({ memcachedPort: 0 });
  [client, listener] = [await RawClient.connect(server.redisPort), await RawClient.connect(server.redisPort)];
  await ask(client, 'CONFIG SET notify-keyspace-events KA');
  listener.write('PSUBSCRIBE __keyspace@0__:*\r\n');
  await listener.until(() => replyEnd(listener.text, 0) >= 0, 'the subscription');
  await listener.read(replyEnd(listener.text, 0));
});

afterAll(async () => {
  client.destroy();
  listener.destroy();
  await server.stop();
});

async function ask(from: RawClient, request: string): Promise<string> {
  from.write(`${request}\r\n`);
  await from.until(() => replyEnd(from.text, 0) >= 0, `a reply to ${request}`);
  return (await from.read(replyEnd(from.text, 0))).toString('latin1');
}

/** The next events, as `key event`. */
async function events(count: number): Promise<string[]> {
  const heard: string[] = [];
  while (heard.length < count) {
    await listener.until(
      () => replyEnd(listener.text, 0) >= 0,
      `event ${heard.length + 1} of ${count}: ${heard.join()}`,
    );
    const lines = (await listener.read(replyEnd(listener.text, 0))).toString('latin1').split('\r\n');
    heard.push(`${lines[6].slice('__keyspace@0__:'.length)} ${lines[8]}`);
  }
  return heard;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

it('by commands', async () => {
  await ask(client, 'HSET h a 1 b 2 c 3');
  await ask(client, 'HEXPIRE h 100 FIELDS 2 a b');
  await ask(client, 'HEXPIRE h 100 NX FIELDS 1 a');
  await ask(client, 'HPERSIST h FIELDS 2 a c');
  await ask(client, 'HPERSIST h FIELDS 1 a');
  await ask(client, 'HEXPIRE h 100 FIELDS 1 nope');
  await ask(client, 'HPEXPIREAT h 1 FIELDS 1 a');
  await ask(client, 'HEXPIRE h 0 FIELDS 2 b c');
  await ask(client, 'SET end 1');
  expect(await events(7)).toEqual(['h hset', 'h hexpire', 'h hpersist', 'h hdel', 'h hdel', 'h del', 'end set']);
});

it('when somebody looks', async () => {
  await ask(client, 'DEBUG SET-ACTIVE-EXPIRE 0');
  await ask(client, 'HSET h a 1 b 2 c 3 d 4');
  await ask(client, 'HPEXPIRE h 1 FIELDS 4 a b c d');
  await pause(20);
  await ask(client, 'HGET h a');
  await ask(client, 'HMGET h b c');
  await ask(client, 'HEXISTS h d');
  await ask(client, 'DEBUG SET-ACTIVE-EXPIRE 1');
  expect(await events(6)).toEqual(['h hset', 'h hexpire', 'h hexpired', 'h hexpired', 'h hexpired', 'h del']);
});

it.each([
  ['a packed hash', 4],
  ['a tree', 600],
])('in the background, of %s', { timeout: 60_000 }, async (_, fields) => {
  const pairs = Array.from({ length: fields }, (_, i) => `f${i} v`).join(' ');
  await ask(client, `HSET h ${pairs} stays v`);
  const names = Array.from({ length: fields }, (_, i) => `f${i}`).join(' ');
  await ask(client, `HPEXPIRE h 1 FIELDS ${fields} ${names}`);
  const first = await events(3);
  expect(first).toEqual(['h hset', 'h hexpire', 'h hexpired']);
  while ((await ask(client, 'HLEN h')) !== ':1\r\n') await pause(10);
  await ask(client, 'SET mark 1');
  for (let heard = ''; heard !== 'mark set'; [heard] = await events(1)) expect(heard).toMatch(/^(h hexpired)?$/);
  await ask(client, 'HPEXPIRE h 1 FIELDS 1 stays');
  expect(await events(3)).toEqual(['h hexpire', 'h hexpired', 'h del']);
});

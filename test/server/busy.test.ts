/**
 * A script that runs for longer than the limit: the workers that it keeps out of the store go on answering. The script's part is played by
 * a participant of the test's own, which closes the gate as the worker of a script does.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { SlowHolder } from '../../src/layout/superblock.js';
import { attach, detach } from '../../src/store/attach.js';
import type { Keyspace } from '../../src/store/keyspace.js';
import { findStore } from '../../src/store/open.js';
import { RawClient } from '../helpers/raw-client.js';
import { startTestServer, type TestServer } from '../helpers/server.js';

const BUSY = '-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n';
const BUSY_FUNCTION = '-BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.\r\n';

let server: TestServer;
let script: Keyspace;
let client: RawClient;

beforeAll(async () => {
  server = await startTestServer();
  script = attach(findStore(server.pool)!);
});
afterAll(async () => {
  client.destroy();
  detach(script);
  await server.stop();
});
beforeEach(async () => {
  client?.destroy();
  client = await RawClient.connect(server.redisPort);
  await client.ask('SET k v\r\n', '+OK\r\n');
});

/** Runs `action` while a script keeps everybody else out. */
async function duringScript(kind: SlowHolder, action: () => Promise<void>): Promise<void> {
  script.closeGate();
  try {
    script.gate.announceSlow(kind);
    await action();
  } finally {
    script.openGate();
  }
}

test('commands are answered with BUSY, the few that are allowed are not', async () => {
  await duringScript(SlowHolder.SCRIPT, async () => {
    await client.ask('GET k\r\n', BUSY);
    await client.ask('PING\r\nSET k w\r\nFLUSHALL\r\nDBSIZE\r\n', BUSY.repeat(4));
    await client.ask('NOPE\r\n', "-ERR unknown command 'NOPE', with args beginning with: \r\n");
    await client.ask('GET\r\n', "-ERR wrong number of arguments for 'get' command\r\n");
    const aborted = BUSY.replace('-', '-EXECABORT Transaction discarded because of: ');
    await client.ask('MULTI\r\nGET k\r\nEXEC\r\n', `+OK\r\n${BUSY}${aborted}`);
    await client.ask('DISCARD\r\n', '-ERR DISCARD without MULTI\r\n');
    await client.ask('WATCH k\r\n', BUSY);
    const late = await RawClient.connect(server.redisPort);
    await late.ask('HELLO 9\r\n', '-NOPROTO unsupported protocol version\r\n');
    late.destroy();
  });
  await client.ask('GET k\r\nEXISTS large\r\n', '$1\r\nv\r\n:0\r\n');
});

test('a function has its own words', async () => {
  await duringScript(SlowHolder.FUNCTION, () => client.ask('GET k\r\n', BUSY_FUNCTION));
  await client.ask('GET k\r\n', '$1\r\nv\r\n');
});

test('a large request as one bulk is refused as well; one whose value was under way goes on afterwards', async () => {
  const value = 'x'.repeat(100_000);
  const request = `*3\r\n$3\r\nSET\r\n$5\r\nlarge\r\n$${value.length}\r\n${value}\r\n`;
  const begun = await RawClient.connect(server.redisPort);
  begun.write(request.slice(0, 50_000));
  await client.ask('PING\r\n', '+PONG\r\n');
  await duringScript(SlowHolder.SCRIPT, async () => {
    await client.ask(request.replace('large', 'other'), BUSY);
    begun.write(request.slice(50_000));
    await client.ask('PING\r\n', BUSY);
    expect(begun.receivedBytes).toBe(0);
  });
  expect((await begun.read(5)).toString()).toBe('+OK\r\n');
  await client.ask('STRLEN large\r\nEXISTS other\r\n', ':100000\r\n:0\r\n');
  begun.destroy();
});

test('memcached clients wait and lose nothing', async () => {
  const memcached = await RawClient.connect(server.memcachedPort);
  await memcached.ask('set a 0 0 1\r\nb\r\n', 'STORED\r\n');
  await duringScript(SlowHolder.SCRIPT, async () => {
    memcached.write('set a 0 0 1\r\nc\r\nget a\r\n');
    await client.ask('PING\r\n', BUSY);
    expect(memcached.receivedBytes).toBe(0);
  });
  const answer = 'STORED\r\nVALUE a 0 1\r\nc\r\nEND\r\n';
  expect((await memcached.read(answer.length)).toString()).toBe(answer);
  memcached.destroy();
});

test('without a long script, who holds the gate is waited for', async () => {
  script.closeGate();
  client.write('GET k\r\n');
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(client.receivedBytes).toBe(0);
  script.openGate();
  expect((await client.read(7)).toString()).toBe('$1\r\nv\r\n');
});

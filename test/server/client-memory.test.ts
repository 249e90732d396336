/** Memory that clients hold: charged to the cap that holds for the data, limited by maxmemory-clients. */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { RawClient } from '../helpers/raw-client.js';
import { startTestServer, type TestServer } from '../helpers/server.js';
import { multibulk } from '../helpers/session.js';

const MIB = 1024 * 1024;
const clients: RawClient[] = [];
let server: TestServer | null = null;

afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  await server?.stop();
  server = null;
});

async function connect(): Promise<RawClient> {
  const client = await RawClient.connect(server!.redisPort);
  clients.push(client);
  return client;
}

/** A bulk reply as text. */
async function bulk(client: RawClient, request: string): Promise<string> {
  client.write(`${request}\r\n`);
  const header = await client.line();
  if (!header.startsWith('$')) throw new Error(`not a bulk reply: ${header}`);
  const text = (await client.read(Number(header.slice(1)))).toString('latin1');
  await client.read(2);
  return text;
}

async function info(client: RawClient, section: string): Promise<Map<string, number>> {
  const lines = (await bulk(client, `INFO ${section}`)).split('\r\n');
  return new Map(lines.map((line) => line.split(':')).map(([name, value]) => [name, Number(value)]));
}

/** Waits until a figure of INFO is as wanted. */
async function until(client: RawClient, section: string, is: (figures: Map<string, number>) => boolean) {
  const deadline = performance.now() + 15_000;
  for (;;) {
    const figures = await info(client, section);
    if (is(figures)) return figures;
    if (performance.now() > deadline) throw new Error(JSON.stringify(Object.fromEntries(figures)));
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A client's line of CLIENT LIST. */
async function row(asker: RawClient, id: number): Promise<Map<string, string>> {
  const line = await bulk(asker, `CLIENT LIST ID ${id}`);
  return new Map(line.split(' ').map((field) => field.split('=') as [string, string]));
}

async function idOf(client: RawClient): Promise<number> {
  client.write('CLIENT ID\r\n');
  return Number((await client.line()).slice(1));
}

/** A client that asks for so many MiB and reads none of them. What the sockets hold, some MiB, is not the server's. */
async function unread(mib: number): Promise<RawClient> {
  const client = await connect();
  client.socket.pause();
  client.write(`EVAL "return string.rep('x', 1048576)" 0\r\n`.repeat(mib));
  return client;
}

async function fill(client: RawClient, count: number, bytes: number): Promise<void> {
  const value = 'v'.repeat(bytes);
  let wanted = 0;
  for (let i = 0; i < count; i++) {
    client.write(`SET key:${i} ${value}\r\n`);
    if (++wanted % 100 === 0) while (wanted > 0) wanted -= (await client.line()).length > 0 ? 1 : 0;
  }
  while (wanted > 0) wanted -= (await client.line()).length > 0 ? 1 : 0;
}

/** Bytes that the DRAM tier really has. */
function reservedBytes(pool: string): number {
  const name = readdirSync('/dev/shm').find(
    (file) => file.startsWith('entresol-') && file.includes(pool.split('/').at(-1)!),
  );
  const path = name === undefined ? join(pool, 'dram.entresol') : join('/dev/shm', name);
  return statSync(path).blocks * 512;
}

const UNLIMITED = ['--client-output-buffer-soft=64mb'];

test('unread replies take the place of data, and the memory that the tier gives up goes back to the system', async () => {
  server = await startTestServer({ dram: '64mb', args: [...UNLIMITED, '--maxmemory-policy=allkeys-lru'] });
  const client = await connect();
  await fill(client, 6000, 10_000);
  const before = await info(client, 'everything');
  const reservedBefore = reservedBytes(server.pool);
  expect(before.get('mem_clients_normal')).toBeLessThan(MIB);
  expect(before.get('dram_lent_bytes')).toBe(0);

  for (let i = 0; i < 3; i++) await unread(16);
  const held = await until(client, 'everything', (figures) => {
    return (
      figures.get('mem_clients_normal')! > 20 * MIB &&
      figures.get('dram_lent_bytes')! + MIB > figures.get('client_bytes')!
    );
  });
  expect(held.get('used_memory')).toBeGreaterThan(held.get('mem_clients_normal')!);
  expect(held.get('used_memory')).toBeLessThanOrEqual(64 * MIB);
  expect(held.get('mem_not_counted_for_evict')).toBe(0);
  expect(held.get('evicted_keys')).toBeGreaterThan(before.get('evicted_keys')!);
  expect(reservedBytes(server.pool)).toBeLessThanOrEqual(reservedBefore - 20 * MIB);
  // What is left works.
  await client.ask('SET small 1\r\n', '+OK\r\n');
  await client.ask('GET small\r\n', '$1\r\n1\r\n');

  for (const reader of clients.splice(1)) reader.destroy();
  // Some stays lent, so that the ups and downs of one connection cost nothing.
  await until(client, 'everything', (figures) => figures.get('dram_lent_bytes')! <= 3 * MIB);
  expect(reservedBytes(server.pool)).toBeGreaterThanOrEqual(reservedBefore - 3 * MIB);
  await fill(client, 3000, 10_000);
  await client.ask('GET small\r\n', '$1\r\n1\r\n');
});

test('under noeviction, writes are refused while clients hold what is missing', async () => {
  server = await startTestServer({ dram: '32mb', args: [...UNLIMITED, '--maxmemory-policy=noeviction'] });
  const client = await connect();
  await fill(client, 1500, 10_000);
  await client.ask('SET before 1\r\n', '+OK\r\n');
  const reader = await unread(32);
  await until(client, 'memory', (figures) => figures.get('mem_clients_normal')! >= 20 * MIB);
  const refusal = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
  await client.ask('SET after 1\r\n', refusal);
  await client.ask('GET before\r\n', '$1\r\n1\r\n');
  await client.ask('DEL before\r\n', ':1\r\n');
  reader.destroy();
  await until(client, 'memory', (figures) => figures.get('mem_clients_normal')! < MIB);
  await client.ask('SET after 1\r\n', '+OK\r\n');
  await client.ask('DBSIZE\r\n', ':1501\r\n');
});

test('maxmemory counts clients', async () => {
  server = await startTestServer({
    dram: '64mb',
    args: [...UNLIMITED, '--maxmemory-policy=noeviction', '--maxmemory=24mb'],
  });
  const client = await connect();
  const reader = await unread(32);
  await until(client, 'memory', (figures) => figures.get('mem_clients_normal')! >= 24 * MIB);
  await client.ask('SET k 1\r\n', "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
  await client.ask('CONFIG SET maxmemory 0\r\n', '+OK\r\n');
  await client.ask('SET k 1\r\n', '+OK\r\n');
  reader.destroy();
});

test.each([
  [
    'a request sent by halves',
    'qbuf',
    (): string => `*3\r\n$5\r\nRPUSH\r\n$1\r\nl\r\n$30000000\r\n${'x'.repeat(12 * MIB)}`,
  ],
  ['one of many arguments', 'qbuf', (): string => `*1000001\r\n$4\r\nMGET\r\n${'$6\r\nkey:12\r\n'.repeat(900_000)}`],
  [
    'a large value on its way',
    'argv-mem',
    (): string => `*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$10000000\r\n${'x'.repeat(MIB)}`,
  ],
  ['queued commands', 'multi-mem', (): string => `MULTI\r\n${`SET k ${'x'.repeat(1000)}\r\n`.repeat(9000)}`],
] as const)('%s: shown in %s, and closed above maxmemory-clients', async (_name, field, request) => {
  server = await startTestServer({ dram: '64mb' });
  const client = await connect();
  const large = await connect();
  const id = await idOf(large);
  large.write(request());
  const deadline = performance.now() + 15_000;
  let shown = await row(client, id);
  while (Number(shown.get(field)) < 8 * MIB && performance.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    shown = await row(client, id);
  }
  expect(Number(shown.get(field))).toBeGreaterThanOrEqual(8 * MIB);
  expect(Number(shown.get('tot-mem'))).toBeGreaterThanOrEqual(8 * MIB);

  await client.ask('CONFIG SET maxmemory-clients 4mb\r\n', '+OK\r\n');
  await large.closed();
  expect((await info(client, 'stats')).get('evicted_clients')).toBe(1);
  await until(client, 'memory', (figures) => figures.get('mem_clients_normal')! < MIB);
  expect(server.output()).toMatch(new RegExp(`client ${id} held \\d+ bytes and was closed`));
});

test('a subscriber that does not read goes, publisher and other subscribers stay', async () => {
  server = await startTestServer({ dram: '64mb', workers: 2, args: ['--maxmemory-clients=8mb'] });
  const slow = await connect();
  await slow.ask('SUBSCRIBE news\r\n', '*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n');
  slow.socket.pause();
  const quick = await connect();
  await quick.ask('SUBSCRIBE news\r\n', '*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n');
  const publisher = await connect();
  const message = 'm'.repeat(10_000);
  const delivered = `*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$10000\r\n${message}\r\n`;
  let receivers = 2;
  for (let i = 0; i < 4000 && receivers === 2; i++) {
    publisher.write(`PUBLISH news ${message}\r\n`);
    receivers = Number((await publisher.line()).slice(1));
    await quick.read(delivered.length);
  }
  expect(receivers).toBe(1);
  const asker = await connect();
  expect((await info(asker, 'stats')).get('evicted_clients')).toBe(1);
  await publisher.ask('PUBLISH news end\r\n', ':1\r\n');
});

test('those that hold most go first, of whatever worker; CLIENT NO-EVICT is spared', async () => {
  server = await startTestServer({ dram: '64mb', workers: 2 });
  const client = await connect();
  await client.ask('CLIENT NO-EVICT on\r\n', '+OK\r\n');
  const sizes = [9, 8, 3, 2, 5, 1];
  const holders: RawClient[] = [];
  const ids: number[] = [];
  for (const [i, size] of sizes.entries()) {
    const holder = await connect();
    if (i === 0) await holder.ask('CLIENT NO-EVICT on\r\n', '+OK\r\n');
    ids.push(await idOf(holder));
    holder.write(`MULTI\r\n${`SET k ${'x'.repeat(1000)}\r\n`.repeat(size * 1000)}`);
    await holder.until(() => holder.receivedBytes === 5 + size * 1000 * 9, 'all to be queued');
    holders.push(holder);
  }
  const memory: number[] = [];
  for (const id of ids) memory.push(Number((await row(client, id)).get('tot-mem')));
  const inOrder = [...memory.keys()].filter((i) => i !== 0).sort((a, b) => memory[b] - memory[a]);
  const sum = memory.reduce((a, b) => a + b, 0);
  const limit = Math.floor(sum - memory[inOrder[0]] - memory[inOrder[1]] / 2);
  await client.ask(`CONFIG SET maxmemory-clients ${limit}\r\n`, '+OK\r\n');
  await holders[inOrder[0]].closed();
  await holders[inOrder[1]].closed();
  await until(client, 'stats', (figures) => figures.get('evicted_clients') === 2);
  for (const i of [0, ...inOrder.slice(2)]) expect(holders[i].isClosed, `client of ${sizes[i]} MB`).toBe(false);
  // Below what the one that is spared holds, everybody else goes, whoever asks excepted.
  await client.ask('CONFIG SET maxmemory-clients 1%\r\n', '+OK\r\n');
  for (const i of inOrder.slice(2)) await holders[i].closed();
  expect(holders[0].isClosed).toBe(false);
  expect(await bulk(client, 'CLIENT INFO')).toContain(' flags=e ');
  await client.ask(
    'CONFIG SET maxmemory-clients 101%\r\n',
    "-ERR CONFIG SET failed (possibly related to argument 'maxmemory-clients') - percentage argument must be less or equal to 100\r\n",
  );
});

test('tracked keys, subscriptions and watched keys are counted, and are not when they end', async () => {
  server = await startTestServer({ dram: '64mb' });
  const client = await connect();
  const keys = Array.from({ length: 10_000 }, (_, i) => `a-key-of-some-length:${i}`);
  const figure = async (name: string): Promise<number> => {
    await new Promise((resolve) => setTimeout(resolve, 250));
    return (await info(client, 'memory')).get(name)!;
  };
  const [clientsBefore, overheadBefore] = [await figure('mem_clients_normal'), await figure('used_memory_overhead')];
  const busy = await connect();
  busy.write(multibulk(['WATCH', ...keys]));
  await busy.line();
  const watching = await figure('mem_clients_normal');
  expect(watching - clientsBefore).toBeGreaterThan(5 * MIB);
  await busy.ask('UNWATCH\r\n', '+OK\r\n');
  expect((await figure('mem_clients_normal')) - clientsBefore).toBeLessThan(MIB / 4);

  busy.write('HELLO 3\r\nCLIENT TRACKING on\r\n');
  busy.write(multibulk(['MGET', ...keys]));
  busy.write('ECHO done\r\n');
  await busy.until(() => busy.text.endsWith('$4\r\ndone\r\n'), 'the replies');
  const tracking = await figure('used_memory_overhead');
  expect(tracking - overheadBefore).toBeGreaterThan(2 * MIB);
  busy.write('CLIENT TRACKING off\r\n');
  await busy.until(() => busy.text.endsWith('+OK\r\n'), 'the reply');
  expect(tracking - (await figure('used_memory_overhead'))).toBeGreaterThan(2 * MIB);

  const prefixes = keys.slice(0, 5000).flatMap((key) => ['PREFIX', `${key}:`]);
  busy.write(multibulk(['CLIENT', 'TRACKING', 'on', 'BCAST', ...prefixes]));
  await busy.until(() => busy.text.endsWith('+OK\r\n+OK\r\n'), 'the reply');
  expect((await figure('mem_clients_normal')) - clientsBefore).toBeGreaterThan(2 * MIB);
  busy.write('CLIENT TRACKING off\r\n');
  await busy.until(() => busy.text.endsWith('+OK\r\n+OK\r\n+OK\r\n'), 'the reply');
  expect((await figure('mem_clients_normal')) - clientsBefore).toBeLessThan(MIB / 4);

  busy.write(multibulk(['SUBSCRIBE', ...keys]));
  await busy.until(() => busy.text.endsWith(':10000\r\n'), 'the replies');
  expect((await figure('mem_clients_normal')) - clientsBefore).toBeGreaterThan(2 * MIB);
  busy.destroy();
  expect((await figure('mem_clients_normal')) - clientsBefore).toBeLessThan(MIB / 4);
});

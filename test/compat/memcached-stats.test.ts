/**
 * What `stats` tells, beside Debian's memcached: the same names, except those that docs/memcached.md lists, and the same counts of
 * what the same requests did.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RawClient } from '../helpers/raw-client.js';
import { startTestServer } from '../helpers/server.js';
import { Memcached, memcachedVersion } from './memcached-oracle.js';

const DOCS = fileURLToPath(new URL('../../docs/memcached.md', import.meta.url));
const TOPICS = ['', 'settings', 'items', 'slabs', 'conns'];
/** Names of ours that memcached has not, or not in this set-up (idle_kicks: without a time limit), or not yet (watch_enabled). */
const OURS: Readonly<Record<string, RegExp>> = {
  '': /^(tier_\w+|entresol_version|idle_kicks)$/,
  settings: /^watch_enabled$/,
};
const REQUESTS = [
  'set a 5 0 3\r\n100\r\nset b 0 0 3\r\nxyz\r\nadd b 0 0 1\r\nx\r\nreplace c 0 0 1\r\nx\r\n',
  'get a b c\r\ngets a\r\nincr a 5\r\ndecr a 1\r\nincr c 1\r\ndecr c 1\r\ntouch a 0\r\ntouch c 0\r\ngat 0 a\r\n',
  'cas a 0 0 1 1\r\n2\r\ncas c 0 0 1 1\r\n2\r\nappend b 0 0 2\r\nzz\r\nmg b v\r\nmd b\r\ndelete a\r\ndelete a\r\n',
  `set large 0 0 20000\r\n${'x'.repeat(20_000)}\r\nget large\r\nset large 0 0 300\r\n${'y'.repeat(300)}\r\n`,
];
/** What commands did. cmd_meta is missing: 1.6.18 counts `me` alone. */
const COUNTED = [
  ...['cmd_get', 'cmd_set', 'cmd_touch', 'get_hits', 'get_misses', 'delete_hits', 'delete_misses'],
  ...['incr_hits', 'incr_misses', 'decr_hits', 'decr_misses', 'cas_misses', 'cas_hits', 'cas_badval'],
  ...['touch_hits', 'touch_misses', 'curr_items', 'evictions', 'expired_unfetched', 'evicted_unfetched'],
];
const BY_CLASS = ['cmd_set', 'delete_hits', 'incr_hits', 'decr_hits', 'cas_hits', 'cas_badval', 'touch_hits'];

type Stats = ReadonlyMap<string, string>;

async function ask(client: RawClient, topic: string): Promise<Stats> {
  client.write(`stats${topic === '' ? '' : ` ${topic}`}\r\n`);
  await client.until(() => client.text.endsWith('END\r\n'), 'statistics');
  const lines = (await client.read(client.receivedBytes)).toString('latin1').split('\r\n');
  return new Map(lines.slice(0, -2).map((line) => /^STAT (\S+) (.*)$/.exec(line)!.slice(1, 3) as [string, string]));
}

/** Names without the numbers of classes and connections. */
function namesOf(stats: Stats): Set<string> {
  return new Set([...stats.keys()].map((name) => name.replace(/(^|:)\d+:/, '$1N:').replace('items:N:', '')));
}

/** The table of docs/memcached.md: topic -> names. */
function leftOut(): Map<string, Set<string>> {
  const table = /<!-- left out -->([\s\S]*?)<!-- \/left out -->/.exec(readFileSync(DOCS, 'utf8'))?.[1] ?? '';
  const found = new Map<string, Set<string>>(TOPICS.map((topic) => [topic, new Set()]));
  for (const [, topic, names] of table.matchAll(/^\| `stats ?(\w*)` \| ([^|]+) \|/gm)) {
    for (const [, name] of names.matchAll(/`(\w+)`/g)) found.get(topic)?.add(name);
  }
  return found;
}

describe.runIf(memcachedVersion()?.startsWith('1.6.18'))('stats', () => {
  let theirs: RawClient;
  let ours: RawClient;
  let memcached: Memcached;

  beforeAll(async () => {
    const [server, peer] = await Promise.all([startTestServer(), Memcached.start()]);
    memcached = peer;
    [ours, theirs] = await Promise.all([RawClient.connect(server.memcachedPort), RawClient.connect(peer.port)]);
    for (const client of [ours, theirs]) {
      client.write(`${REQUESTS.join('')}mn\r\n`);
      await client.until(() => client.text.endsWith('MN\r\n'), 'the replies');
      await client.read(client.receivedBytes);
    }
  });
  afterAll(() => {
    for (const client of [ours, theirs]) client?.destroy();
    memcached?.stop();
  });

  it.each(TOPICS)('%s has the names that memcached has, except those that the documentation lists', async (topic) => {
    const [we, they] = [namesOf(await ask(ours, topic)), namesOf(await ask(theirs, topic))];
    expect([...they].filter((name) => !we.has(name)).sort()).toEqual([...leftOut().get(topic)!].sort());
    expect([...we].filter((name) => !they.has(name) && !OURS[topic]?.test(name))).toEqual([]);
  });

  it('counts what memcached counts', async () => {
    const [we, they] = [await ask(ours, ''), await ask(theirs, '')];
    const counts = (stats: Stats) => Object.fromEntries(COUNTED.map((name) => [name, stats.get(name)]));
    expect(counts(we)).toEqual(counts(they));
  });

  it('counts by class what it counts in all', async () => {
    const [all, classes] = [await ask(ours, ''), await ask(ours, 'slabs')];
    for (const name of [...BY_CLASS, 'get_hits']) {
      const sum = [...classes].reduce((n, [key, value]) => (key.endsWith(`:${name}`) ? n + Number(value) : n), 0);
      expect(`${name} ${sum}`).toBe(`${name} ${all.get(name)}`);
    }
    const items = await ask(ours, 'items');
    const numbers = [...items].filter(([key]) => key.endsWith(':number')).map(([, value]) => value);
    expect(numbers).toEqual(['1']);
  });
});

it('counts evicted and expired items in their classes, and resets them', async () => {
  const server = await startTestServer({ dram: '16mb' });
  const client = await RawClient.connect(server.memcachedPort);
  const value = 'x'.repeat(9000);
  client.write(`set read 0 1000 9000\r\n${value}\r\nget read\r\nset short 0 -1 9000\r\n${value}\r\nget short\r\n`);
  for (let i = 0; i < 3000; i++) client.write(`set k${i} 0 ${(i % 2) * 1000} 9000 noreply\r\n${value}\r\n`);
  client.write('mn\r\n');
  await client.until(() => client.text.endsWith('MN\r\n'), 'the end of the stores');
  await client.read(client.receivedBytes);
  const [all, items] = [await ask(client, ''), await ask(client, 'items')];
  const of = (name: string) =>
    [...items].filter(([key]) => key.endsWith(`:${name}`)).map(([, value_]) => Number(value_));
  const sum = (name: string) => of(name).reduce((a, b) => a + b, 0);
  expect(sum('evicted')).toBe(Number(all.get('evictions')));
  expect(sum('evicted')).toBeGreaterThan(1000);
  expect(sum('evicted_unfetched')).toBe(Number(all.get('evicted_unfetched')));
  expect(sum('evicted_nonzero')).toBeGreaterThan(0);
  expect(sum('reclaimed')).toBe(Number(all.get('reclaimed')));
  expect(sum('expired_unfetched')).toBeGreaterThan(0);
  expect(Number(all.get('direct_reclaims'))).toBeGreaterThan(0);
  expect(Math.max(...of('evicted_time'))).toBeLessThan(600);
  client.write('stats reset\r\n');
  await client.until(() => client.text.endsWith('RESET\r\n'), 'the reset');
  await client.read(client.receivedBytes);
  const after = await ask(client, 'items');
  for (const [key, count] of after)
    if (/:(evicted\w*|reclaimed)$/.test(key)) expect(`${key} ${count}`).toBe(`${key} 0`);
  client.destroy();
  await server.stop();
});

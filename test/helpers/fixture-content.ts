/**
 * What the pools of earlier layouts in test/fixtures hold: made with `fillFixture` through a server of that build, and compared with what the
 * same calls store now. So it may not change; a new fixture gets contents of its own.
 */
import type { Redis } from 'ioredis';
import type { RawClient } from './raw-client.js';

const list = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));
/** The year 2096. */
export const FAR_MS = 4_000_000_000_000;

export async function fillFixture(client: Redis, memcached: RawClient): Promise<void> {
  await memcached.ask('set flagged 77 0 2\r\nhi\r\n', 'STORED\r\n');
  for (const db of [0, 5]) {
    await client.select(db);
    const batch = client.pipeline();
    for (let i = 0; i < 40; i++) {
      batch.set(`string:${i}`, 'x'.repeat(i * 5));
      batch.set(`number:${i}`, String(i * 7_654_321));
      batch.set(`expires:${i}`, 'v', 'PXAT', FAR_MS + i);
      batch.hset(`hash:${i}`, ...list((i % 20) + 1, (k) => [`f${k}`, `value ${k * i}`]).flat());
      batch.rpush(`list:${i}`, ...list((i % 30) + 1, (k) => `element ${k * i}`));
      batch.sadd(`integers:${i}`, ...list((i % 25) + 1, (k) => k * i * 1000));
      batch.zadd(`zset:${i}`, ...list((i % 10) + 1, (k) => [(k * i) / 8, `member ${k}`]).flat());
    }
    for (let i = 0; i < 200; i++) batch.xadd('stream', `${1_600_000_000_000 + i}-1`, 'field', `value ${i}`);
    batch.xdel('stream', '1600000000007-1');
    batch.xgroup('CREATE', 'stream', 'readers', '0');
    batch.xreadgroup('GROUP', 'readers', 'one', 'COUNT', 20, 'STREAMS', 'stream', '>');
    batch.xack('stream', 'readers', '1600000000003-1');
    batch.hpexpireat('hash:7', FAR_MS, 'FIELDS', 1, 'f0');
    batch.set('\0binary\xff', Buffer.from([0, 255, 13, 10]));
    batch.set('large', 'abcdefgh'.repeat(50_000));
    batch.hset('large hash', ...list(700, (i) => [`field ${i}`, `value ${i}`]).flat());
    batch.rpush('large list', ...list(700, (i) => `element ${i}`));
    batch.sadd('large set', ...list(700, (i) => `member ${i}`));
    batch.zadd('large zset', ...list(700, (i) => [i / 16, `member ${i}`]).flat());
    for (const [error] of (await batch.exec()) ?? []) if (error !== null) throw error;
  }
  // More than DRAM holds: what is above lies in the capacity tier in part.
  await client.select(1);
  for (let first = 0; first < 800; first += 100) {
    const batch = client.pipeline();
    for (let i = first; i < first + 100; i++) batch.set(`filler:${i}`, `${i}`.repeat(13_000).slice(0, 13_000));
    await batch.exec();
  }
  await client.select(0);
}

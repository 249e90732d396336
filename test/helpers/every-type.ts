/** Fills a server with values of all types and sizes in three databases, some of which expire. */
import type { Redis } from 'ioredis';

const list = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));

export async function fillWithEveryType(client: Redis): Promise<void> {
  const soon = Date.now() + 3_600_000;
  for (const db of [0, 3, 9]) {
    await client.select(db);
    const batch = client.pipeline();
    for (let i = 0; i < 100; i++) {
      batch.set(`string:${i}`, 'x'.repeat(i * 3));
      batch.set(`number:${i}`, String(i * 7_654_321));
      batch.set(`expires:${i}`, 'v', 'PXAT', soon + i * 1000);
      batch.hset(`hash:${i}`, ...list((i % 20) + 1, (k) => [`f${k}`, `value ${k * i}`]).flat());
      batch.rpush(`list:${i}`, ...list((i % 30) + 1, (k) => `element ${k * i}`));
      batch.sadd(`set:${i}`, ...list((i % 15) + 1, (k) => `member ${k * i}`));
      batch.sadd(`integers:${i}`, ...list((i % 25) + 1, (k) => k * i * 1000));
      batch.zadd(`zset:${i}`, ...list((i % 10) + 1, (k) => [(k * i) / 8, `member ${k}`]).flat());
    }
    for (let i = 0; i < 700; i++) {
      const id = `${1_600_000_000_000 + i * 7}-${i % 3}`;
      if (i % 10 === 0) batch.xadd('stream', id, 'other', String(i), 'x'.repeat(i % 200), '');
      else batch.xadd('stream', id, 'field', `value ${i}`, 'number', String(i * i));
    }
    batch.xdel('stream', '1600000000000-0', '1600000000070-1');
    batch.xtrim('stream', 'MAXLEN', 600);
    batch.xgroup('CREATE', 'stream', 'readers', '0');
    batch.xgroup('CREATE', 'stream', 'nobody', '$');
    batch.xreadgroup('GROUP', 'readers', 'one', 'COUNT', 50, 'STREAMS', 'stream', '>');
    batch.xreadgroup('GROUP', 'readers', 'two', 'COUNT', 30, 'STREAMS', 'stream', '>');
    batch.xack('stream', 'readers', '1600000000700-1');
    batch.xgroup('CREATECONSUMER', 'stream', 'readers', 'idle');
    batch.xadd('small stream', '5-1', 'a', '1');
    batch.xadd('small stream', '18446744073709551615-18446744073709551614', 'a', '2');
    batch.xgroup('CREATE', 'empty stream', 'group', '7-7', 'MKSTREAM');
    batch.set('\0binary\xff', Buffer.from([0, 255, 13, 10]));
    batch.set('empty', '');
    batch.set('large', 'abcdefgh'.repeat(50_000));
    batch.hset('large hash', ...list(3000, (i) => [`field ${i}`, `value ${i}`]).flat());
    batch.rpush('large list', ...list(5000, (i) => `element ${i}`));
    batch.sadd('large set', ...list(3000, (i) => `member ${i}`));
    batch.zadd('large zset', ...list(3000, (i) => [i / 16, `member ${i}`]).flat());
    batch.hset('long values', 'a', 'x'.repeat(5000), 'b', 'y'.repeat(30_000));
    batch.pexpireat('large set', soon);
    await batch.exec();
  }
  await client.select(0);
}

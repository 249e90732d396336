/** What a server holds, as text that is the same for the same content: for comparing one server with another, key by key. */
import type { Redis } from 'ioredis';

async function readValue(client: Redis, key: Buffer, type: string): Promise<unknown> {
  const sorted = (texts: readonly string[]): string[] => [...texts].sort();
  const hex = (list: readonly Buffer[]): string[] => list.map((one) => one.toString('hex'));
  switch (type) {
    case 'string':
      return (await client.getBuffer(key))?.toString('hex');
    case 'list':
      return hex(await client.lrangeBuffer(key, 0, -1));
    case 'set':
      return sorted(hex(await client.smembersBuffer(key)));
    case 'zset':
      return hex(await client.zrangeBuffer(key, '0', '-1', 'WITHSCORES'));
    case 'hash': {
      const flat = hex((await client.callBuffer('HGETALL', key)) as Buffer[]);
      return sorted(flat.flatMap((text, i) => (i % 2 === 0 ? [`${text} ${flat[i + 1]}`] : [])));
    }
    case 'stream':
      return readStream(client, key);
    default:
      return type;
  }
}

/** Without the times at which its consumers were seen. */
async function readStream(client: Redis, key: Buffer): Promise<unknown> {
  const about = (await client.call('XINFO', 'STREAM', key)) as unknown[];
  const known = ['length', 'last-generated-id', 'max-deleted-entry-id', 'entries-added'];
  const state = known.map((name) => about[about.indexOf(name) + 1]);
  const groups = (await client.call('XINFO', 'GROUPS', key)) as unknown[][];
  const details: unknown[] = [];
  for (const group of groups) {
    const name = group[1] as string;
    const consumers = (await client.call('XINFO', 'CONSUMERS', key, name)) as unknown[][];
    const pending = (await client.call('XPENDING', key, name, '-', '+', 10_000)) as unknown[][];
    details.push(
      consumers.map((consumer) => consumer.slice(0, 4)),
      pending.map(([id, consumer, , deliveries]) => [id, consumer, deliveries]),
    );
  }
  return [state, groups, details, await client.xrange(key, '-', '+')];
}

/** Key (hexadecimal, with its database) -> type, expiry and value. */
export async function contentOf(client: Redis, databases: number): Promise<Map<string, string>> {
  const content = new Map<string, string>();
  for (let db = 0; db < databases; db++) {
    await client.select(db);
    let cursor = '0';
    do {
      const [next, keys] = await client.scanBuffer(cursor, 'COUNT', 500);
      cursor = next.toString();
      await Promise.all(
        keys.map(async (key) => {
          const type = await client.type(key);
          const value = await readValue(client, key, type);
          content.set(`${db} ${key.toString('hex')}`, JSON.stringify([type, await client.pexpiretime(key), value]));
        }),
      );
    } while (cursor !== '0');
  }
  await client.select(0);
  return content;
}

/** The first differences, in words; none = the same. */
export function differences(a: ReadonlyMap<string, string>, b: ReadonlyMap<string, string>): string[] {
  const found: string[] = [];
  for (const [key, value] of a) {
    if (b.get(key) !== value) found.push(`${key}: ${value.slice(0, 200)} and ${b.get(key)?.slice(0, 200)}`);
  }
  for (const key of b.keys()) if (!a.has(key)) found.push(`${key}: only there`);
  return found.slice(0, 10);
}

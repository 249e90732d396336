/**
 * A recorded workload for durable pools: what step n of a client does, and what its keys hold after so many steps.
 *
 * Each client has keys of its own, so its state is a function of how many steps it has made. Every fifth step or so is a
 * transaction, a script, a memcached command: one that must be there as a whole. Invariant: `stateAfter` knows nothing of the server.
 */

import { RawClient } from './raw-client.js';
import { parseReply, replyEnd } from './resp-reply.js';

/** One request over either protocol, and the end of its answer. */
interface Step {
  readonly resp?: readonly string[];
  /** Sent together; the answer of the last one tells. */
  readonly transaction?: readonly (readonly string[])[];
  readonly memcached?: string;
}

const KINDS = 12;
const FAR_MS = 4_000_000_000_000;

function stepOf(client: string, n: number): Step {
  const key = (name: string): string => `${client}:${name}`;
  const value = `${n}`.padEnd(1 + ((n * 37) % 300), 'v');
  switch (n % KINDS) {
    case 0:
      return { resp: ['INCR', key('count')] };
    case 1:
      return { resp: ['RPUSH', key('list'), value, `${n}`] };
    case 2:
      return {
        transaction: [
          ['SET', key('a'), `${n}`],
          ['INCRBY', key('sum'), `${n}`],
          ['RPUSH', key('log'), `${n}`],
          ['SET', key('b'), `${n}`],
        ],
      };
    case 3:
      return {
        resp: [
          'EVAL',
          "redis.call('INCR', KEYS[1]) redis.call('LPUSH', KEYS[2], ARGV[1]) redis.call('SPOP', KEYS[3]) return redis.call('INCR', KEYS[4])",
          '4',
          key('x'),
          key('scripts'),
          key('nothing'),
          key('y'),
          `${n}`,
        ],
      };
    case 4:
      return { resp: ['HSET', key('hash'), `f${n % 7}`, value] };
    case 5:
      return { resp: ['ZADD', key('zset'), `${n % 50}`, `m${n % 11}`] };
    case 6:
      return { memcached: `set ${key('mc')} ${n % 1000} 0 ${value.length}\r\n${value}\r\n` };
    case 7:
      return { resp: ['LPOP', key('list')] };
    case 8:
      return { resp: ['XADD', key('stream'), `${n}-1`, 'n', `${n}`] };
    case 9:
      return { resp: ['SET', key('expiring'), value, 'PXAT', `${FAR_MS + n}`] };
    case 10:
      return { resp: ['APPEND', key('text'), `,${n}`] };
    default:
      return n % 24 === 11
        ? { resp: ['SMOVE', key('s1'), key('s2'), `${n - 12}`] }
        : { resp: ['SADD', key('s1'), `${n}`] };
  }
}

/** What a client's keys hold after so many steps, as `readState` finds them. */
export function stateAfter(steps: number): Record<string, unknown> {
  const list: string[] = [];
  const hash = new Map<string, string>();
  const zset = new Map<string, number>();
  const s1 = new Set<string>();
  const s2 = new Set<string>();
  const state = { count: 0, a: '', b: '', sum: 0, x: 0, y: 0, mc: '', flags: 0, expiring: '', expiry: 0, text: '' };
  const log: string[] = [];
  const scripts: string[] = [];
  const stream: string[] = [];
  for (let n = 0; n < steps; n++) {
    const value = `${n}`.padEnd(1 + ((n * 37) % 300), 'v');
    const kind = n % KINDS;
    if (kind === 0) state.count++;
    else if (kind === 1) list.push(value, `${n}`);
    else if (kind === 2) {
      state.a = state.b = `${n}`;
      state.sum += n;
      log.push(`${n}`);
    } else if (kind === 3) {
      state.x++;
      state.y++;
      scripts.unshift(`${n}`);
    } else if (kind === 4) hash.set(`f${n % 7}`, value);
    else if (kind === 5) zset.set(`m${n % 11}`, n % 50);
    else if (kind === 6) {
      state.mc = value;
      state.flags = n % 1000;
    } else if (kind === 7) list.shift();
    else if (kind === 8) stream.push(`${n}-1`);
    else if (kind === 9) {
      state.expiring = value;
      state.expiry = FAR_MS + n;
    } else if (kind === 10) state.text += `,${n}`;
    else if (n % 24 === 11) {
      if (s1.delete(`${n - 12}`)) s2.add(`${n - 12}`);
    } else s1.add(`${n}`);
  }
  return {
    ...state,
    list,
    log,
    scripts,
    stream,
    hash: [...hash].sort(),
    zset: [...zset].sort(),
    s1: [...s1].sort(),
    s2: [...s2].sort(),
  };
}

/** Connections of one client. */
export class WorkloadClient {
  acknowledged = 0;
  readonly #name: string;
  readonly #redis: RawClient;
  readonly #memcached: RawClient;

  private constructor(name: string, redis: RawClient, memcached: RawClient) {
    this.#name = name;
    this.#redis = redis;
    this.#memcached = memcached;
  }

  static async connect(name: string, redisPort: number, memcachedPort: number): Promise<WorkloadClient> {
    return new WorkloadClient(name, await RawClient.connect(redisPort), await RawClient.connect(memcachedPort));
  }

  get name(): string {
    return this.#name;
  }

  close(): void {
    this.#redis.destroy();
    this.#memcached.destroy();
  }

  /** Steps until the server is gone, or `limit` steps are made. Resolves to the number that was answered. */
  async run(limit: number): Promise<number> {
    while (this.acknowledged < limit) {
      try {
        await this.#step(stepOf(this.#name, this.acknowledged));
      } catch (error) {
        if (this.#redis.isClosed || this.#memcached.isClosed) break;
        throw error;
      }
      this.acknowledged++;
    }
    return this.acknowledged;
  }

  async #step({ resp, transaction, memcached }: Step): Promise<void> {
    if (memcached !== undefined) {
      this.#memcached.write(memcached);
      const answer = await this.#memcached.line();
      if (answer !== 'STORED') throw new Error(`memcached answered ${answer}`);
      return;
    }
    const requests = transaction === undefined ? [resp!] : [['MULTI'], ...transaction, ['EXEC']];
    this.#redis.write(requests.map(multibulk).join(''));
    for (const request of requests) {
      const reply = await this.reply();
      if (reply.startsWith('-')) throw new Error(`${request.join(' ').slice(0, 60)}: ${reply}`);
    }
  }

  /** The next whole reply of the Redis connection. */
  async reply(): Promise<string> {
    let end = -1;
    await this.#redis.until(() => {
      end = replyEnd(this.#redis.text, 0);
      return end >= 0;
    }, 'a reply');
    return (await this.#redis.read(end)).toString('latin1');
  }

  async ask(...request: readonly string[]): Promise<unknown> {
    this.#redis.write(multibulk(request));
    return parseReply(await this.reply());
  }

  /** What the keys hold, in the form of `stateAfter`. */
  async readState(): Promise<Record<string, unknown>> {
    const key = (name: string): string => `${this.#name}:${name}`;
    const text = async (name: string): Promise<string> => ((await this.ask('GET', key(name))) as string | null) ?? '';
    const number = async (name: string): Promise<number> => Number(await text(name));
    const list = async (name: string): Promise<unknown> => this.ask('LRANGE', key(name), '0', '-1');
    const set = async (name: string): Promise<unknown> => ((await this.ask('SMEMBERS', key(name))) as string[]).sort();
    const pairs = (flat: readonly string[], convert: (value: string) => unknown): unknown[] => {
      const result: [string, unknown][] = [];
      for (let i = 0; i < flat.length; i += 2) result.push([flat[i], convert(flat[i + 1])]);
      return result.sort();
    };
    const mc = await text('mc');
    this.#memcached.write(`get ${key('mc')}\r\n`);
    const line = await this.#memcached.line();
    if (line.startsWith('VALUE')) await this.#memcached.read(mc.length + 2 + 'END\r\n'.length);
    const entries = (await this.ask('XRANGE', key('stream'), '-', '+')) as [string, unknown][];
    return {
      count: await number('count'),
      a: await text('a'),
      b: await text('b'),
      sum: await number('sum'),
      x: await number('x'),
      y: await number('y'),
      mc,
      flags: line.startsWith('VALUE') ? Number(line.split(' ')[2]) : 0,
      expiring: await text('expiring'),
      expiry: Math.max(0, (await this.ask('PEXPIRETIME', key('expiring'))) as number),
      text: await text('text'),
      list: await list('list'),
      log: await list('log'),
      scripts: await list('scripts'),
      stream: entries.map(([id]) => id),
      hash: pairs((await this.ask('HGETALL', key('hash'))) as string[], String),
      zset: pairs((await this.ask('ZRANGE', key('zset'), '0', '-1', 'WITHSCORES')) as string[], Number),
      s1: await set('s1'),
      s2: await set('s2'),
    };
  }
}

function multibulk(words: readonly string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word, 'latin1')}\r\n${word}\r\n`).join('')}`;
}

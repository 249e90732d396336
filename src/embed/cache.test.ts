import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { attach, detach } from '../store/attach.js';
import { checkInvariants } from '../store/invariants.js';
import { findStore } from '../store/open.js';
import { type Cache, CacheError, open } from './index.js';

let path: string;
let cache: Cache;

beforeEach(async () => {
  path = mkdtempSync(join(tmpdir(), 'entresol-embed-'));
  cache = await open({ path, dram: '32mb' });
});

afterEach(() => {
  cache.close();
  const handle = findStore(path);
  if (handle !== null) {
    const keyspace = attach(handle);
    checkInvariants(keyspace);
    detach(keyspace);
    rmSync(handle.dramPath);
  }
  rmSync(path, { recursive: true });
});

function codeOf(action: () => unknown): string | undefined {
  try {
    action();
  } catch (error) {
    if (error instanceof CacheError) return error.code;
    throw error;
  }
  return undefined;
}

describe('Cache', () => {
  it('stores strings and bytes', () => {
    expect(cache.get('k')).toBeUndefined();
    expect(cache.set('k', 'värde €')).toBe(true);
    expect(cache.get('k')).toBe('värde €');
    expect(cache.getBytes('k')).toEqual(new TextEncoder().encode('värde €'));
    cache.set('b', Uint8Array.of(0, 255, 1));
    expect(cache.getBytes('b')).toEqual(Uint8Array.of(0, 255, 1));
    expect(cache.getBytes('absent')).toBeUndefined();
    cache.set('', 'empty key');
    expect(cache.get('')).toBe('empty key');
    cache.set('ключ', '');
    expect(cache.get(new TextEncoder().encode('ключ'))).toBe('');
    expect(cache.size).toBe(4);
  });

  it('stores large values', () => {
    const value = 'x'.repeat(5_000_000);
    cache.set('large', value);
    expect(cache.get('large')).toBe(value);
    cache.set('large', 'small');
    expect(cache.get('large')).toBe('small');
  });

  it('deletes', () => {
    cache.set('k', 'v');
    expect(cache.has('k')).toBe(true);
    expect(cache.delete('k')).toBe(true);
    expect(cache.delete('k')).toBe(false);
    expect(cache.has('k')).toBe(false);
  });

  it('counts', () => {
    expect(cache.incr('n')).toBe(1);
    expect(cache.incr('n', 41)).toBe(42);
    expect(cache.incr('n', -50)).toBe(-8);
    expect(cache.get('n')).toBe('-8');
    cache.set('text', 'abc');
    expect(codeOf(() => cache.incr('text'))).toBe('ERR_ENTRESOL_NOT_AN_INTEGER');
    expect(cache.get('text')).toBe('abc');
    cache.set('big', String(Number.MAX_SAFE_INTEGER));
    expect(codeOf(() => cache.incr('big'))).toBe('ERR_ENTRESOL_NOT_AN_INTEGER');
  });

  it('expires to the millisecond', async () => {
    cache.set('k', 'v', { ttl: 40 });
    expect(cache.ttl('k')).toBeGreaterThan(0);
    expect(cache.get('k')).toBe('v');
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(cache.get('k')).toBeUndefined();
    expect(cache.ttl('k')).toBeUndefined();
    cache.set('k', 'v');
    expect(cache.ttl('k')).toBe(Number.POSITIVE_INFINITY);
    expect(cache.expire('k', 5000)).toBe(true);
    cache.set('k', 'w', { keepTtl: true });
    expect(cache.ttl('k')).toBeLessThanOrEqual(5000);
    cache.incr('counter');
    cache.expire('counter', 5000);
    cache.incr('counter');
    expect(cache.ttl('counter')).toBeLessThanOrEqual(5000);
    expect(cache.expire('k', Number.POSITIVE_INFINITY)).toBe(true);
    expect(cache.ttl('k')).toBe(Number.POSITIVE_INFINITY);
    expect(cache.expire('absent', 1)).toBe(false);
  });

  it('stores only if absent or present', () => {
    expect(cache.set('k', '1', { only: 'present' })).toBe(false);
    expect(cache.set('k', '1', { only: 'absent' })).toBe(true);
    expect(cache.set('k', '2', { only: 'absent' })).toBe(false);
    expect(cache.set('k', '3', { only: 'present' })).toBe(true);
    expect(cache.mget(['k', 'absent'])).toEqual(['3', undefined]);
  });

  it('separates namespaces', () => {
    const a = cache.namespace('a');
    a.set('k', 'of a');
    cache.set('k', 'of the root');
    expect(a.get('k')).toBe('of a');
    expect(cache.get('a:k')).toBe('of a');
    expect(a.namespace('b').has('k')).toBe(false);
    cache.clear();
    expect(a.get('k')).toBeUndefined();
    expect(cache.size).toBe(0);
  });

  it('lists the keys of a view', () => {
    const a = cache.namespace('a');
    for (let i = 0; i < 500; i++) a.set(`user:${i}`, 'v');
    a.set('other', 'v');
    cache.set('user:of the root', 'v');
    a.set('gone', 'v', { ttl: 1 });
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    expect([...a.keys()].sort()).toEqual([...Array.from({ length: 500 }, (_, i) => `user:${i}`), 'other'].sort());
    expect([...cache.keys('user:')]).toEqual(['user:of the root']);
    for (const key of a.keys('user:')) a.delete(key);
    expect([...a.keys()]).toEqual(['other']);
  });

  it('refuses what it cannot store, and goes on', () => {
    expect(codeOf(() => cache.set('k'.repeat(65_536), 'v'))).toBe('ERR_ENTRESOL_KEY');
    expect(codeOf(() => cache.set('k', 'v', { ttl: 0 }))).toBe('ERR_ENTRESOL_OPTION');
    expect(codeOf(() => cache.set('k', 'v', { ttl: Number.NaN }))).toBe('ERR_ENTRESOL_OPTION');
    expect(codeOf(() => cache.set('k', new Uint8Array(100 << 20)))).toBe('ERR_ENTRESOL_OUT_OF_MEMORY');
    cache.set('k', 'v');
    expect(cache.get('k')).toBe('v');
    cache.close();
    expect(codeOf(() => cache.get('k'))).toBe('ERR_ENTRESOL_CLOSED');
  });

  it('refuses what is neither a string nor bytes, as programs without types pass it: it was stored as an empty value', async () => {
    const wrong = [5, 5n, true, null, undefined, {}, new ArrayBuffer(8), new DataView(new ArrayBuffer(8)), [1]];
    cache.set('k', 'v');
    for (const argument of wrong as never[]) {
      expect(codeOf(() => cache.set('k', argument))).toBe('ERR_ENTRESOL_VALUE');
      expect(codeOf(() => cache.set(argument, 'v'))).toBe('ERR_ENTRESOL_KEY');
      expect(codeOf(() => cache.get(argument))).toBe('ERR_ENTRESOL_KEY');
      expect(codeOf(() => cache.namespace('n').delete(argument))).toBe('ERR_ENTRESOL_KEY');
      await expect(cache.getOrCompute('computed', () => argument)).rejects.toThrow(CacheError);
    }
    expect(codeOf(() => cache.getOrCompute(Uint8Array.of(1) as never, () => 'v'))).toBe('ERR_ENTRESOL_KEY');
    expect(codeOf(() => cache.set('k', 'w', { ttl: '5' as never }))).toBe('ERR_ENTRESOL_OPTION');
    expect(codeOf(() => cache.set('k', 'w', { only: 'never' as never }))).toBe('ERR_ENTRESOL_OPTION');
    expect(cache.get('k')).toBe('v');
    expect(cache.size).toBe(1);
  });

  it('evicts when it is full', () => {
    const value = 'v'.repeat(1000);
    for (let i = 0; i < 60_000; i++) cache.set(`k${i}`, value);
    expect(cache.get('k59999')).toBe(value);
    expect(cache.stats().evicted).toBeGreaterThan(10_000);
  });
});

describe('open', () => {
  it('refuses a policy that there is not', async () => {
    await expect(open({ path, dram: '32mb', policy: 'lru' as never })).rejects.toMatchObject({
      code: 'ERR_ENTRESOL_OPTION',
    });
  });

  it('gives a pool to one alone when asked to, and says who has it', async () => {
    await expect(open({ path, exclusive: true })).rejects.toMatchObject({ code: 'POOL_BUSY' });
    cache.set('k', 'v');
    cache.close();
    const alone = await open({ path, exclusive: true });
    expect(alone.get('k')).toBe('v');
    await expect(open({ path })).rejects.toMatchObject({
      code: 'POOL_BUSY',
      message: expect.stringContaining(`process ${process.pid} has the pool open for itself alone`),
    });
    alone.close();
    cache = await open({ path });
    expect(cache.get('k')).toBe('v');
  });
});

describe('getOrCompute', () => {
  it('computes once however many ask', async () => {
    let computed = 0;
    const compute = async () => {
      computed++;
      await new Promise((resolve) => setTimeout(resolve, 20));
      return `value ${computed}`;
    };
    const other = await open({ path });
    const answers = await Promise.all([
      ...Array.from({ length: 50 }, () => cache.getOrCompute('k', compute)),
      ...Array.from({ length: 50 }, () => other.getOrCompute('k', compute)),
    ]);
    expect(new Set(answers)).toEqual(new Set(['value 1']));
    expect(computed).toBe(1);
    expect(cache.size).toBe(1);
    other.close();
  });

  it('lets the next one compute when one fails', async () => {
    await expect(
      cache.getOrCompute('k', () => {
        throw new Error('no luck');
      }),
    ).rejects.toThrow('no luck');
    expect(await cache.getOrCompute('k', () => 'second', { ttl: 1000 })).toBe('second');
    expect(cache.ttl('k')).toBeLessThanOrEqual(1000);
  });

  it('gives up waiting after waitTimeout', async () => {
    const other = await open({ path });
    const slow = other.getOrCompute('k', () => new Promise<string>((resolve) => setTimeout(resolve, 150, 'late')));
    await expect(cache.getOrCompute('k', () => 'mine', { waitTimeout: 20 })).rejects.toMatchObject({
      code: 'ERR_ENTRESOL_COMPUTE_TIMEOUT',
    });
    expect(await slow).toBe('late');
    other.close();
  });
});

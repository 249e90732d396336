/**
 * A hundred keys changed by one request in a full store that evicts, killed at any step: afterwards all of them have their new values,
 * or none has.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Bytes } from '../../src/layout/bytes.js';
import type { PolicyName } from '../../src/store/policy.js';
import { Arena } from './arena.js';

const GROUP = fileURLToPath(new URL('./group.mjs', import.meta.url));
const KEYS = 100;
/** Deaths tried, evenly over the request's steps. */
const DEATHS = Number(process.env.ENTRESOL_CRASH_ROUNDS ?? 8);

function multibulk(...words: string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${word.length}\r\n${word}\r\n`).join('')}`;
}

/** Sizes of several slab classes. */
function groupValue(key: number, round: string): string {
  return `${round}:`.padEnd(100 + (key % 7) * 150, 'x');
}

const keys = Array.from({ length: KEYS }, (_, i) => `group:${i}`);

const REQUESTS: Record<string, (round: string) => string> = {
  MSET: (round) => multibulk('MSET', ...keys.flatMap((key, i) => [key, groupValue(i, round)])),
  EXEC: (round) =>
    [
      multibulk('MULTI'),
      ...keys.map((key, i) => multibulk('SET', key, groupValue(i, round))),
      multibulk('INCR', 'counter'),
      multibulk('EXEC'),
    ].join(''),
};

describe.each(Object.keys(REQUESTS))('%s of a hundred keys', (name) => {
  const policy: PolicyName = 'allkeys-lru';
  let arena: Arena;
  beforeAll(() => {
    arena = new Arena({ dramMib: 18, capacityMib: 0, policy });
    // Until old ones have gone.
    for (let i = 0; i < 60_000; i++) store(`filler:${i}`, 'f'.repeat(100 + (i % 7) * 150));
    expect(arena.keyspace.stats().evicted).toBeGreaterThan(1000);
  });
  afterAll(() => arena.close());

  function store(name: string, value: string): void {
    const { keyspace } = arena;
    const key = Bytes.from(name);
    const hash = keyspace.hash(0, key, 0, key.length);
    keyspace.enterBatch();
    if (!keyspace.stage(hash, 0, key, 0, key.length, value.length)) throw new Error('refused');
    keyspace.staged.u8.set(Buffer.from(value), keyspace.stagedOffset);
    keyspace.lock(hash);
    keyspace.commit(1, 0, 0, 0);
    keyspace.unlock(hash);
    keyspace.leaveBatch();
  }

  /** Which round a key's value is of; '' = the key is gone. */
  function roundOf(i: number): string {
    const { keyspace } = arena;
    const key = Bytes.from(keys[i]);
    const hash = keyspace.hash(0, key, 0, key.length);
    keyspace.enterBatch();
    keyspace.lock(hash);
    let text = '';
    if (keyspace.find(hash, 0, key, 0, key.length)) {
      const { value, valueOffset, valueLength } = keyspace;
      text = Buffer.from(value.u8.slice(valueOffset, valueOffset + valueLength)).toString();
    }
    keyspace.unlock(hash);
    keyspace.leaveBatch();
    if (text === '') return '';
    const round = text.slice(0, text.indexOf(':'));
    expect(text).toBe(groupValue(i, round));
    return round;
  }

  function run(round: string, dieAt: number): { readonly steps: number; readonly signal: string | null } {
    const setup = { handle: arena.handle, request: REQUESTS[name](round), dieAt };
    const result = spawnSync(process.execPath, [GROUP, JSON.stringify(setup)], { encoding: 'utf8' });
    if (result.signal === null && result.status !== 0) throw new Error(result.stderr);
    return { steps: Number(result.stdout), signal: result.signal };
  }

  it('leaves all or nothing when it is killed', async () => {
    let fewest = Number.POSITIVE_INFINITY;
    for (let i = 0; i < 3; i++) fewest = Math.min(fewest, run('whole', 0).steps);
    expect(new Set(keys.map((_, i) => roundOf(i)))).toEqual(new Set(['whole']));
    expect(fewest).toBeGreaterThan(2 * KEYS);
    let nothing = 0;
    let all = 0;
    for (let death = 0; death < DEATHS; death++) {
      const dieAt = 1 + Math.floor((death * (fewest - 1)) / (DEATHS - 1));
      const round = `r${death}`;
      expect(run(round, dieAt).signal, `death at step ${dieAt} of ${fewest}`).toBe('SIGKILL');
      await arena.collect(0);
      arena.check();
      const rounds = keys.map((_, i) => roundOf(i));
      const fresh = rounds.filter((found) => found === round).length;
      expect([0, KEYS], `keys with new values after a death at step ${dieAt} of ${fewest}`).toContain(fresh);
      if (fresh === 0) nothing++;
      else all++;
      // Full again, so that the next one must make room as well.
      for (let i = 0; i < 300; i++) store(`filler:${death}:${i}`, 'f'.repeat(100 + (i % 7) * 150));
    }
    console.log(`${name}: ${fewest} steps, ${DEATHS} deaths: ${nothing} left nothing, ${all} everything`);
    expect(nothing).toBeGreaterThan(0);
  }, 600_000);
});

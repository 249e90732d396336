/**
 * A run of elements is cut out of a large collection by a process that is killed at any step: afterwards the elements are all there or all
 * gone, and no chunk is lost.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Session } from '../helpers/session.js';
import { Arena } from './arena.js';

const GROUP = fileURLToPath(new URL('./group.mjs', import.meta.url));
const ELEMENTS = 30_000;
const DEATHS = Number(process.env.ENTRESOL_CRASH_ROUNDS ?? 6);

describe.each([
  ['LTRIM k 10000 19999', 'RPUSH', (i: number) => [`m${i}`], 'LLEN k', 10_000],
  ['ZREMRANGEBYRANK k 5000 14999', 'ZADD', (i: number) => [String(i), `m${i}`], 'ZCARD k', 20_000],
])('%s', (request, add, words, size, left) => {
  let arena: Arena;
  let session: Session;
  beforeAll(() => {
    arena = new Arena({ dramMib: 32, capacityMib: 0, policy: 'noeviction' });
    session = new Session(arena.keyspace);
    for (let i = 0; i < ELEMENTS; i += 100) {
      session.send([add, 'big', ...Array.from({ length: 100 }, (_, n) => words(i + n)).flat()]);
    }
  });
  afterAll(() => arena.close());

  function run(dieAt: number): { readonly steps: number; readonly signal: string | null } {
    const line = request.split(' ');
    const bytes = `*${line.length}\r\n${line.map((word) => `$${word.length}\r\n${word}\r\n`).join('')}`;
    const result = spawnSync(
      process.execPath,
      [GROUP, JSON.stringify({ handle: arena.handle, request: bytes, dieAt })],
      {
        encoding: 'utf8',
      },
    );
    if (result.signal === null && result.status !== 0) throw new Error(result.stderr);
    return { steps: Number(result.stdout), signal: result.signal };
  }

  it('leaves all or nothing of the run', { timeout: 240_000 }, async () => {
    session.send('COPY big k REPLACE');
    const { steps } = run(0);
    expect(session.send(size)).toBe(`:${left}\r\n`);
    await arena.collect(1);
    for (let death = 0; death < DEATHS; death++) {
      session.send('COPY big k REPLACE');
      // Most of them in the cut, which comes at the end.
      const { signal } = run(
        Math.max(1, steps - 1 - Math.floor(Math.random() * Math.min(steps, death === 0 ? steps : 120))),
      );
      if (signal !== null) expect(await arena.collect(1)).toBe(1);
      arena.check();
      const after = session.send(size);
      expect(signal === null ? [`:${left}\r\n`] : [`:${ELEMENTS}\r\n`, `:${left}\r\n`]).toContain(after);
    }
  });
});

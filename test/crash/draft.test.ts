/**
 * A large collection is stored over another one, killed at any step: afterwards the key has the old one or the new one whole, and nothing
 * is left of what was being made.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Database, DatabaseState } from '../../src/layout/superblock.js';
import { Session } from '../helpers/session.js';
import { Arena } from './arena.js';

const GROUP = fileURLToPath(new URL('./group.mjs', import.meta.url));
/** More than one undo journal holds. */
const MEMBERS = 30_000;
const DEATHS = Number(process.env.ENTRESOL_CRASH_ROUNDS ?? 8);

describe.each([
  ['SUNIONSTORE d big', 'SADD', (i: number) => [`m${i}`], 'SCARD d'],
  ['ZUNIONSTORE d 1 big', 'ZADD', (i: number) => [String(i), `m${i}`], 'ZCARD d'],
  ['COPY big d REPLACE', 'RPUSH', (i: number) => [`m${i}`], 'LLEN d'],
])('%s', (request, add, words, size) => {
  let arena: Arena;
  let session: Session;
  beforeAll(() => {
    arena = new Arena({ dramMib: 32, capacityMib: 0, policy: 'noeviction' });
    session = new Session(arena.keyspace);
    for (let i = 0; i < MEMBERS; i += 100) {
      session.send([add, 'big', ...Array.from({ length: 100 }, (_, n) => words(i + n)).flat()]);
    }
  });
  afterAll(() => arena.close());

  function begin(): void {
    session.send('DEL d');
    for (let i = 0; i < 600; i += 100) {
      session.send([add, 'd', ...Array.from({ length: 100 }, (_, n) => words(i + n)).flat()]);
    }
  }

  function run(dieAt: number): { readonly steps: number; readonly signal: string | null } {
    const line = request.split(' ');
    const bytes = `*${line.length}\r\n${line.map((word) => `$${word.length}\r\n${word}\r\n`).join('')}`;
    const setup = { handle: arena.handle, request: bytes, dieAt };
    const result = spawnSync(process.execPath, [GROUP, JSON.stringify(setup)], { encoding: 'utf8' });
    if (result.signal === null && result.status !== 0) throw new Error(result.stderr);
    return { steps: Number(result.stdout), signal: result.signal };
  }

  it('leaves the old one or the new one', { timeout: 240_000 }, async () => {
    begin();
    const { steps } = run(0);
    expect(session.send(size)).toBe(`:${MEMBERS}\r\n`);
    await arena.collect(1);
    const seen = new Set<string>();
    for (let death = 0; death < DEATHS; death++) {
      begin();
      // Half of the deaths in the hand-over at the end.
      const at =
        death % 2 === 0 ? Math.ceil((steps * (death + 1)) / (DEATHS + 1)) : steps - Math.floor(Math.random() * 40);
      const { signal } = run(at);
      // How many steps it takes depends on how many turns it took: it may have come to its end before.
      if (signal !== null) expect(await arena.collect(1)).toBe(1);
      arena.check();
      const after = session.send(size);
      expect(signal === null ? [`:${MEMBERS}\r\n`] : [':600\r\n', `:${MEMBERS}\r\n`]).toContain(after);
      seen.add(after);
      expect(session.send('KEYS *')).toMatch(/^\*2\r\n/);
      expectNoDrafts();
    }
    expect(seen).toContain(':600\r\n');
  });

  /** The background removes what the dead have left. */
  function expectNoDrafts(): void {
    const { keyspace } = arena;
    const { ctl, databaseTable, shardCount } = keyspace.memory;
    const drafts = (): number => {
      let items = 0;
      for (let shard = 0; shard < shardCount; shard++) {
        items += ctl[databaseTable + Database.COUNTS_WORD + shard * Database.SHARD_WORDS + Database.DRAFTS];
      }
      return items;
    };
    const state = databaseTable + Database.STATE_WORD + Database.DRAFTS;
    for (let rounds = 0; rounds < 2000 && (drafts() > 0 || ctl[state] !== DatabaseState.FREE); rounds++) {
      keyspace.enterBatch();
      keyspace.background(1000);
      keyspace.leaveBatch();
    }
    expect(drafts()).toBe(0);
    expect(ctl[state]).toBe(DatabaseState.FREE);
    arena.check();
  }
});

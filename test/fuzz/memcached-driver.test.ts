/**
 * A short fuzzing run over a whole memcached connection and over datagrams: mutations of the corpus, cut at random places,
 * against a small real store. What is checked: no handler throws, the session never gets stuck, and the store's
 * invariants hold at the end. FUZZ_RUNS sets the number of mutations; a failure prints its seed.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkInvariants } from '../../src/store/invariants.js';
import { MemcachedSession } from '../helpers/memcached-session.js';
import { openTestStore } from '../helpers/store.js';
import { mutate, random } from './mutate.js';

const CORPUS = join(import.meta.dirname, 'corpus', 'memcached');
const RUNS = Number(process.env.FUZZ_RUNS ?? 1500);
const INTERESTING = [
  '\r\n',
  ' ',
  'noreply',
  '-1',
  '20000',
  '2000000',
  ' q',
  ' b',
  ' I',
  ' N5',
  ' C1',
  'get a\r\n',
  'mn\r\n',
  'lru_crawler metadump all\r\n',
  'lru_crawler mgdump 1,2\r\n',
  'stats cachedump 1 5\r\n',
  'stats detail on\r\n',
  'slabs reassign 1 2\r\n',
  'lru tune 1 2 3 4\r\n',
  'cache_memlimit 9\r\n',
  'watch fetchers\r\n',
];

describe('memcached connection under fuzz', () => {
  const corpus = readdirSync(CORPUS).map((name) => readFileSync(join(CORPUS, name)));

  it(`takes ${RUNS} mutations of the corpus`, () => {
    const store = openTestStore({ dramBytes: 16 * 1024 * 1024, policy: 'allkeys-lru' });
    const session = new MemcachedSession(store);
    session.settings.enableShutdown = true;
    const base = Number(process.env.FUZZ_SEED ?? (Math.random() * 2 ** 31) | 0);
    for (let run = 0; run < RUNS; run++) {
      const next = random(base + run * 7919);
      const bytes = mutate(corpus[next(corpus.length)], corpus[next(corpus.length)], INTERESTING, next);
      try {
        if (run % 8 === 0) {
          session.datagram(Buffer.concat([Buffer.from([1, 2, 0, 0, 0, 1, 0, 0]), bytes]));
          session.datagram(bytes);
        }
        for (let at = 0; at < bytes.length && !session.isClosed; ) {
          const end = at + 1 + next(400);
          session.send(bytes.subarray(at, end));
          at = end;
        }
        session.close();
        session.client = session.connect();
      } catch (error) {
        throw new Error(`FUZZ_SEED=${base} run ${run}: ${JSON.stringify(bytes.toString('latin1'))}`, { cause: error });
      }
    }
    checkInvariants(store);
    expect(session.send('mn\r\n')).toBe('MN\r\n');
  });
});

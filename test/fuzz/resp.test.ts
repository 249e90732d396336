/**
 * A short fuzzing run over everything behind a RESP connection: mutated corpus files, cut at random places, through the
 * parser, the executor and all commands on a real store.
 *
 * What is checked: no handler throws, replies are well formed, nothing stays staged or locked, the store's invariants hold.
 * FUZZ_RUNS sets the number of mutations (default 4,000); a failure prints its seed.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Closing } from '../../src/protocol/driver.js';
import { checkInvariants } from '../../src/store/invariants.js';
import { replyEnd } from '../helpers/resp-reply.js';
import { Session } from '../helpers/session.js';
import { openTestStore } from '../helpers/store.js';
import { mutate, random } from './mutate.js';

const RUNS = Number(process.env.FUZZ_RUNS ?? 4000);
/** Walking the whole store costs milliseconds. */
const INVARIANTS_EVERY = 200;

const INTERESTING = [
  '\r\n',
  '\r',
  '\0',
  '*1\r\n$4\r\nPING\r\n',
  '*1\r\n',
  '$0\r\n\r\n',
  '$-1\r\n',
  '*2147483647\r\n',
  '$536870912\r\n',
  '$17000\r\n',
  '-9223372036854775808',
  '9223372036854775807',
  '1e400',
  'nan',
  '"',
  "'",
  '\\x',
  '*5\r\n$5\r\nMULTI\r\n',
];

describe('fuzzing RESP', () => {
  const folder = join(import.meta.dirname, 'corpus', 'resp');
  const seeds = readdirSync(folder).map((file) => readFileSync(join(folder, file)));
  const store = openTestStore({ policy: 'allkeys-lru' });

  it('survives the corpus as it is', () => {
    seeds.forEach((seed, i) => {
      run(seed, random(i + 1), `corpus file ${i}`);
    });
    checkInvariants(store);
  });

  it(`survives ${RUNS} mutations`, { timeout: 120_000 + RUNS * 20 }, () => {
    const first = Date.now() & 0x7fffffff;
    for (let i = 0; i < RUNS; i++) {
      const seed = first + i;
      const next = random(seed);
      const bytes = mutate(seeds[next(seeds.length)], seeds[next(seeds.length)], INTERESTING, next);
      run(bytes, next, `seed ${seed}`);
      if (i % INVARIANTS_EVERY === 0) checkInvariants(store);
    }
    checkInvariants(store);
  });

  /** One connection's life. Large values are received into the store, as the server does it. */
  function run(bytes: Buffer, next: (limit: number) => number, name: string): void {
    const session = new Session(store);
    let replies = '';
    let at = 0;
    try {
      while (at < bytes.length && session.client.closing === Closing.NO && !session.client.suspended) {
        const { client } = session;
        if (client.intoLength > 0) {
          const part = Math.min(client.intoLength, bytes.length - at);
          if (part < client.intoLength) break;
          const arena = store.memory.arenas.find((range) => range.arena === client.intoArena);
          arena?.u8.set(bytes.subarray(at, at + part), client.intoOffset);
          at += part;
          session.driver.resumeInto(client);
          continue;
        }
        // What was left behind when a value goes into the store counts first, as in the pump.
        const end = Math.min(bytes.length, at + 1 + next(400));
        replies += session.raw(bytes.subarray(at, end));
        at = end - session.takePendingForInto();
      }
      session.driver.closed(session.client);
      expect(store.hasStaged).toBe(false);
      for (let offset = 0; offset < replies.length; ) {
        offset = replyEnd(replies, offset);
        if (offset < 0) throw new Error(`a reply is cut off: ${JSON.stringify(replies.slice(-100))}`);
      }
    } catch (error) {
      throw new Error(`${name}: ${JSON.stringify(bytes.toString('latin1').slice(0, 400))}`, { cause: error });
    }
  }
});

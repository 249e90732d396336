/** Random histories of streams with groups in a real store: its invariants hold, also where others must be evicted for each node. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Session } from '../../../test/helpers/session.js';
import { openTestStore } from '../../../test/helpers/store.js';
import { checkInvariants } from '../../store/invariants.js';

const MIB = 1024 * 1024;
const RUNS = Number(process.env.ENTRESOL_STREAM_RUNS ?? 15);

const text = (...parts: fc.Arbitrary<string>[]): fc.Arbitrary<string> =>
  fc.tuple(...parts).map((drawn) => drawn.filter((word) => word !== '').join(' '));
const word = (...options: string[]): fc.Arbitrary<string> => fc.constantFrom(...options);
const number = (max: number): fc.Arbitrary<string> => fc.integer({ min: 0, max }).map(String);
const key = word('a', 'b');
const group = word('g', 'h', `long${'g'.repeat(1200)}`);
const consumer = word('x', 'y', 'z'.repeat(300), 'z'.repeat(1500));
const id = fc.tuple(number(400), number(3)).map((parts) => parts.join('-'));
const count = word('', 'COUNT 1', 'COUNT 30', 'COUNT 500');
const value = fc.constantFrom(1, 5, 30, 30, 300, 3000).map((length) => 'v'.repeat(length));

const step: fc.Arbitrary<string> = fc.oneof(
  { weight: 8, arbitrary: text(word('XADD'), key, word('*'), word('f', 'f', 'other', 'third'), value) },
  { weight: 4, arbitrary: text(word('ADD'), key, number(300)) },
  { weight: 1, arbitrary: text(word('XADD'), key, word('MAXLEN ~ 300', 'MAXLEN 200'), word('* f v')) },
  { weight: 3, arbitrary: text(word('XDEL'), key, id, id, id) },
  { weight: 1, arbitrary: text(word('XTRIM'), key, word('MAXLEN'), number(300)) },
  { weight: 2, arbitrary: text(word('XGROUP CREATE'), key, group, id) },
  {
    weight: 8,
    arbitrary: text(word('XREADGROUP GROUP'), group, consumer, count, word('STREAMS'), key, word('>')),
  },
  { weight: 2, arbitrary: text(word('XREADGROUP GROUP'), group, consumer, count, word('STREAMS'), key, word('0')) },
  { weight: 4, arbitrary: text(word('ACK'), key, group, number(400)) },
  { weight: 2, arbitrary: text(word('XAUTOCLAIM'), key, group, consumer, word('0'), id, count) },
  { weight: 2, arbitrary: text(word('XCLAIM'), key, group, consumer, word('0'), id, id, id, word('FORCE')) },
  { weight: 1, arbitrary: text(word('XGROUP SETID'), key, group, fc.oneof(id, word('$'))) },
  { weight: 1, arbitrary: text(word('XGROUP DELCONSUMER'), key, group, consumer) },
  { weight: 1, arbitrary: text(word('XGROUP DESTROY'), key, group) },
  { weight: 1, arbitrary: word('COPY a b REPLACE', 'COPY b a REPLACE', 'RENAME a b', 'XSETID a 500-0') },
  { weight: 1, arbitrary: text(word('XINFO STREAM'), key, word('FULL')) },
);

/** ADD: so many entries, ids in sequence; ACK: twenty ids. */
function play(session: Session, request: string): string {
  const [command, name, of, at] = request.split(' ');
  if (command === 'ADD') {
    for (let i = 0; i < Number(of); i++) session.send(`XADD ${name} ${i}-* f ${i} g v`);
    return '';
  }
  if (command === 'ACK') {
    const ids = Array.from({ length: 20 }, (_, i) => `${Number(at) + (i >> 1)}-${i & 1}`);
    return session.send(`XACK ${name} ${of} ${ids.join(' ')}`);
  }
  return session.send(request);
}

describe('random histories of streams', () => {
  it('leave a sound store', () => {
    const keyspace = openTestStore();
    const session = new Session(keyspace);
    fc.assert(
      fc.property(fc.array(step, { minLength: 60, maxLength: 200, size: 'max' }), (steps) => {
        session.send('FLUSHALL');
        for (const each of steps) expect(play(session, each)).not.toMatch(/^-(OOM|ERR syntax)/);
        checkInvariants(keyspace);
      }),
      { numRuns: RUNS, endOnFailure: true },
    );
  });

  it('leave a sound store where others must go for them', () => {
    const keyspace = openTestStore({ dramBytes: 16 * MIB, policy: 'volatile-lru' });
    const session = new Session(keyspace);
    let filled = 0;
    const fill = (count: number): void => {
      for (let i = 0; i < count; i++, filled++) {
        session.send(`SET filler:${filled % 60_000} ${'f'.repeat((filled * 7) % 500)} EX 10000`);
      }
    };
    fill(60_000);
    fc.assert(
      fc.property(fc.array(step, { minLength: 60, maxLength: 200, size: 'max' }), (steps) => {
        session.send('DEL a b');
        steps.forEach((each, i) => {
          fill(20);
          play(session, each);
          if (i % 50 === 0) checkInvariants(keyspace);
        });
        checkInvariants(keyspace);
      }),
      { numRuns: Math.ceil(RUNS / 3), endOnFailure: true },
    );
    expect(session.send('INFO stats')).toMatch(/evicted_keys:[1-9]/);
  });
});

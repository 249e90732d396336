/**
 * Commands while their keys move between the tiers: the same replies as from a store where nothing ever moves.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { blurTimes, histories } from '../../../test/helpers/random-commands.js';
import { multibulk, Session } from '../../../test/helpers/session.js';
import { openTestStore } from '../../../test/helpers/store.js';
import { checkInvariants } from '../../store/invariants.js';
import { Stat } from '../../store/statistics.js';

const MIB = 1024 * 1024;
const FILLER_BYTES = 8000;
/** Fillers written after each tenth of a history: more than DRAM holds by the end of it. */
const FILLERS = 300;
const FILLER_KEYS = 4000;
const RUNS = Number(process.env.RANDOM_RUNS ?? 15);

describe('commands on two tiers', () => {
  const small = openTestStore({ dramBytes: 16 * MIB, capacityBytes: 96 * MIB });
  const session = new Session(small);
  const model = new Session(openTestStore({ dramBytes: 64 * MIB }));
  let filler = 0;

  /** Pushes what is in DRAM out of it. */
  function fill(): void {
    const requests: Uint8Array[] = [];
    for (let i = 0; i < FILLERS; i++) {
      filler = (filler + 1) % FILLER_KEYS;
      requests.push(multibulk(['SET', `filler:${filler}`, 'f'.repeat(FILLER_BYTES)]));
    }
    const replies = session.raw(Buffer.concat(requests));
    expect(replies).toBe('+OK\r\n'.repeat(FILLERS));
  }

  it('answer as on one', () => {
    fc.assert(
      fc.property(histories(60), (history) => {
        for (const side of [session, model]) {
          side.client = side.connect();
          side.send('DEL a b c d');
          side.send('SELECT 1');
          side.send('DEL a b c d');
          side.send('SELECT 0');
        }
        history.forEach((request, i) => {
          if (i % 6 === 5 && session.client.transaction === null) {
            const { db } = session.client;
            session.send('SELECT 0');
            fill();
            session.send(`SELECT ${db}`);
          }
          expect(blurTimes(session.send(request)), String(request)).toBe(blurTimes(model.send(request)));
        });
        checkInvariants(small);
      }),
      { numRuns: RUNS },
    );
    expect(small.statistics[Stat.CAPACITY_HITS]).toBeGreaterThan(0);
  }, 300_000);
});

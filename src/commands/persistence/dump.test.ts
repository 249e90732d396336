/** RESTORE in a store without room: what the key had stays. */
import { expect, it } from 'vitest';
import { Session } from '../../../test/helpers/session.js';
import { openTestStore } from '../../../test/helpers/store.js';
import { checkInvariants } from '../../store/invariants.js';

it('RESTORE REPLACE that finds no memory leaves the key as it was', () => {
  const store = openTestStore({ policy: 'noeviction', dramBytes: 24 << 20 });
  const session = new Session(store);
  for (let i = 0; i < 40_000; i += 1000) {
    const members = Array.from({ length: 1000 }, (_, k) => `a member of some length ${i + k} ${'x'.repeat(40)}`);
    expect(session.send(['SADD', 'large', ...members])).toBe(':1000\r\n');
  }
  const reply = Buffer.from(session.send('DUMP large'), 'latin1');
  const payload = reply.subarray(reply.indexOf('\r\n') + 2, reply.length - 2);
  session.send('SET k old');
  // So much that another such set has no room.
  for (let i = 0; session.send(['SET', `fill:${i}`, 'y'.repeat(60_000)]) === '+OK\r\n'; i++);
  expect(session.send(['RESTORE', 'k', '0', payload, 'REPLACE'])).toMatch(/^-OOM/);
  expect(session.send('GET k')).toBe('$3\r\nold\r\n');
  expect(session.send('DEL large')).toBe(':1\r\n');
  checkInvariants(store);
});

/** A second item of a command that found no room left the first one, linked by then, in the staged slot: a repair would have freed it. */
import { expect, it } from 'vitest';
import { Bytes } from '../../src/layout/bytes.js';
import { checkInvariants } from '../../src/store/invariants.js';
import { openTestStore } from '../helpers/store.js';

it('an item that was stored stays nobody else’s when the next one of its command is refused', () => {
  const keyspace = openTestStore({ dramBytes: 18 * 1024 * 1024, policy: 'noeviction' });
  const key = Bytes.from('a');
  const hash = keyspace.hash(0, key, 0, 1);
  keyspace.lock(hash);
  expect(keyspace.stage(hash, 0, key, 0, 1, 100)).toBe(true);
  expect(keyspace.commit(1, 0, 0, 0)).toBe(true);
  expect(keyspace.stage(hash, 0, key, 0, 1, 500 * 1024 * 1024)).toBe(false);
  keyspace.unlock(hash);
  expect(checkInvariants(keyspace)).toBe(1);
});

/** What is kept of the keys that one command has changed, however many they are. */
import { expect, it } from 'vitest';
import { Bytes } from '../../layout/bytes.js';
import { ChangedKeys, Mark } from './changed-keys.js';

it('keeps the marks of each of a thousand keys', () => {
  const changed = new ChangedKeys();
  for (let round = 0; round < 2; round++) {
    const keys = Array.from({ length: 1000 }, (_, i) => Bytes.from(`key:${i}`));
    // Hashes that collide, too.
    for (const [i, key] of keys.entries()) changed.add(i % 300, 0, key, 0, key.length, Mark.STATE);
    for (const [i, key] of keys.entries()) {
      if (i % 2 === 0) changed.add(i % 300, 0, key, 0, key.length, Mark.EXPIRY);
    }
    expect(changed.count).toBe(1000);
    const marks = keys.map((key, i) => changed.marksOf(i % 300, 0, key, 0, key.length));
    expect(marks).toEqual(keys.map((_, i) => (i % 2 === 0 ? Mark.STATE | Mark.EXPIRY : Mark.STATE)));
    expect(changed.marksOf(0, 1, keys[0], 0, keys[0].length)).toBe(0);
    changed.clear();
    expect(changed.marksOf(0, 0, keys[0], 0, keys[0].length)).toBe(0);
  }
});

/**
 * While one participant emptied a slab page, another's hand freed chunks of that very page, which the class cannot hand out: false OOM under
 * allkeys-lru, for as long as it took.
 */
import { expect, it } from 'vitest';
import { itemBytes } from '../../src/layout/item.js';
import { unitsOf } from '../../src/layout/location.js';
import { SlabClass } from '../../src/layout/superblock.js';
import { CLASS_OF_UNITS } from '../../src/memory/slab-classes.js';
import { Session } from '../helpers/session.js';
import { openTestStore } from '../helpers/store.js';

const KEY_BYTES = 7;
const VALUE = 'v'.repeat(30_000);

it.each(['allkeys-lru', 'allkeys-random'] as const)(
  '%s: room is made in other pages than the one that is being emptied',
  (policy) => {
    const keyspace = openTestStore({ dramBytes: 16 * 1024 * 1024, policy });
    const session = new Session(keyspace);
    let key = 1_000_000;
    const set = (): string => session.send(['SET', String(key++), VALUE]);
    while (keyspace.stats().evicted === 0) expect(set()).toBe('+OK\r\n');
    const word = keyspace.slabs.classWord(CLASS_OF_UNITS[unitsOf(itemBytes(KEY_BYTES, VALUE.length))]);
    const page = keyspace.memory.ctl[word + SlabClass.HAND_PAGE_WORD];
    expect(keyspace.slabs.closePage(page)).toBe(true);
    for (let i = 0; i < 200; i++) expect(set()).toBe('+OK\r\n');
    keyspace.slabs.reopenPage(page);
  },
);

/** Items that live in DRAM and come back after a reboot: which are written, what lets a copy go, and what going up and down costs. */
import { afterEach, describe, expect, it } from 'vitest';
import { WarmStore } from '../../test/helpers/warm-store.js';
import { CheckpointWriter } from '../rdb/checkpoint-writer.js';
import { WriteBehind } from './write-behind.js';

const SIZES = { dramMib: 18, capacityMib: 16 };
/** Steps of more than a round. */
const ROUND = 40;

const open: WarmStore[] = [];
afterEach(() => {
  for (const store of open.splice(0)) store.close();
});

function start(medium?: Buffer, sizes = SIZES): WarmStore {
  const store = new WarmStore(sizes, medium);
  open.push(store);
  return store;
}

/** The store after a reboot. */
function reboot(store: WarmStore): WarmStore {
  store.flush();
  const again = start(store.powerCut(() => true));
  again.rebuildAll();
  again.check();
  return again;
}

function get(store: WarmStore, key: string): string | null {
  const reply = store.session.send(['GET', key]);
  return reply === '$-1\r\n' ? null : reply.slice(reply.indexOf('\n') + 1, -2);
}

describe('write-behind', () => {
  it('writes what is used, not what was only stored', () => {
    const store = start();
    for (const key of ['used', 'changed', 'unused']) store.session.send(['SET', key, `${key}:1`]);
    get(store, 'used');
    store.session.send(['SET', 'changed', 'changed:2']);
    store.session.send(['HSET', 'hash', 'field', 'value']);
    store.session.send(['HGETALL', 'hash']);
    store.writeBehind(ROUND);
    store.check();
    expect(store.keyspace.stats().writtenBehind).toBe(3);
    const again = reboot(store);
    expect(get(again, 'used')).toBe('used:1');
    expect(get(again, 'changed')).toBe('changed:2');
    expect(again.session.send('HGET hash field')).toBe('$5\r\nvalue\r\n');
    expect(get(again, 'unused')).toBe(null);
  });

  it('writes each once as long as it stays the same', () => {
    const store = start();
    store.session.send(['SET', 'key', 'value']);
    get(store, 'key');
    store.writeBehind(ROUND * 3);
    expect(store.keyspace.stats().writtenBehind).toBe(1);
  });

  it('waits until an item has been left alone for a round', () => {
    const store = start();
    const writeBehind = new WriteBehind(store.keyspace, new CheckpointWriter(store.keyspace));
    const round = (): void => {
      for (let waitMs = 0; waitMs === 0; ) {
        store.keyspace.enterBatch();
        waitMs = writeBehind.step();
        store.keyspace.leaveBatch();
      }
    };
    store.session.send(['SET', 'key', '1']);
    get(store, 'key');
    round();
    expect(store.keyspace.stats().writtenBehind).toBe(0);
    round();
    // The next round is a second away.
    expect(store.keyspace.stats().writtenBehind).toBe(0);
  });

  const changes: readonly (readonly string[])[] = [
    ['SET', 'key', '2'],
    ['APPEND', 'key', '2'],
    ['SETRANGE', 'key', '0', '2'],
    ['INCR', 'key'],
    ['DEL', 'key'],
    ['RENAME', 'key', 'other'],
    ['SETBIT', 'key', '3', '0'],
    ['GETDEL', 'key'],
    ['FLUSHALL'],
  ];
  it.each(changes)('a copy does not outlive its item: %s', (...request) => {
    const store = start();
    store.session.send(['SET', 'key', '1']);
    get(store, 'key');
    store.writeBehind(ROUND);
    expect(store.keyspace.stats().writtenBehind).toBe(1);
    store.session.send([...request]);
    store.check();
    expect(get(reboot(store), 'key')).toBe(null);
  });

  it('takes a new expiry along', () => {
    const store = start();
    store.session.send(['SET', 'key', '1']);
    get(store, 'key');
    store.writeBehind(ROUND);
    store.session.send(['PEXPIREAT', 'key', '4000000000001']);
    const again = reboot(store);
    expect(again.session.send('PEXPIRETIME key')).toBe(':4000000000001\r\n');
  });

  it('a change of a small collection lets its copy go', () => {
    const store = start();
    for (const add of ['SADD key a', 'SMEMBERS key', 'SADD key b']) store.session.send(add);
    store.writeBehind(ROUND);
    store.session.send('SREM key a');
    store.check();
    expect(reboot(store).session.send('EXISTS key')).toBe(':0\r\n');
  });

  const fill: Record<string, string[]> = {
    hash: ['HSET', 'large'],
    list: ['RPUSH', 'large'],
    set: ['SADD', 'large'],
    zset: ['ZADD', 'large'],
    stream: [],
  };

  /** Some thousands of elements: a tree, in several parts. */
  function grow(store: WarmStore, type: string): void {
    for (let i = 0; i < 4000; i++) {
      const member = `${i}:`.padEnd(60, 'm');
      if (type === 'stream') store.session.send(['XADD', 'large', `${i + 1}-1`, 'field', member]);
      else if (type === 'hash') store.session.send([...fill.hash, member, `v${i}`]);
      else if (type === 'zset') store.session.send([...fill.zset, String(i % 97), member]);
      else store.session.send([...fill[type], member]);
    }
    if (type === 'stream') store.session.send(['XGROUP', 'CREATE', 'large', 'group', '0']);
  }

  it.each(Object.keys(fill))('a large %s comes back from its checkpoint', (type) => {
    const store = start();
    grow(store, type);
    store.session.send(['PEXPIREAT', 'large', '4000000000001']);
    const dump = store.session.send('DUMP large');
    store.writeBehind(ROUND);
    store.check();
    expect(store.keyspace.stats().writtenBehind).toBe(1);
    let again = reboot(store);
    expect(again.session.send('TYPE large')).toBe(store.session.send('TYPE large'));
    expect(again.session.send('DUMP large')).toBe(dump);
    expect(again.session.send('PEXPIRETIME large')).toBe(':4000000000001\r\n');
    expect(again.field('rebuild_items')).toBe(1);
    // The checkpoint stays its copy.
    again.writeBehind(ROUND);
    expect(again.keyspace.stats().writtenBehind).toBe(0);
    again = reboot(again);
    expect(again.session.send('DUMP large')).toBe(dump);
    // A change lets it go: nothing of it comes back.
    again.session.send('PERSIST large');
    again.session.send(type === 'stream' ? 'XTRIM large MAXLEN 3999' : 'COPY large other');
    if (type === 'hash') again.session.send('HSET large new field');
    else if (type === 'list') again.session.send('LPOP large');
    else if (type === 'set') again.session.send('SADD large new');
    else if (type === 'zset') again.session.send('ZADD large 1 new');
    again.check();
    expect(reboot(again).session.send('EXISTS large')).toBe(':0\r\n');
  });

  it('a checkpoint that lacks a part does not come back in part', () => {
    const store = start();
    grow(store, 'set');
    store.session.send('SCARD large');
    store.writeBehind(ROUND);
    store.flush();
    const medium = store.powerCut(() => true);
    const at = medium.indexOf('1999:mmmm');
    medium[at + 20] ^= 1;
    const again = start(medium);
    again.rebuildAll();
    again.check();
    expect(again.session.send('EXISTS large')).toBe(':0\r\n');
    expect(again.field('rebuild_corrupt')).toBeGreaterThan(0);
  });

  it('going down to a copy writes nothing, coming up keeps it', () => {
    const store = start();
    const value = 'v'.repeat(2000);
    const keys = 6000;
    for (let i = 0; i < keys; i++) store.session.send(['SET', `key:${i}`, value]);
    for (let i = 0; i < keys; i += 40) for (let read = 0; read < 4; read++) get(store, `key:${i}`);
    for (let i = 0; i < 20; i++) store.background();
    const { promoted } = store.keyspace.stats();
    expect(promoted).toBeGreaterThan(10);
    store.check();
    const again = reboot(store);
    let present = 0;
    for (let i = 0; i < keys; i += 40) if (get(again, `key:${i}`) === value) present++;
    expect(present).toBeGreaterThanOrEqual(promoted);
    for (let i = 0; i < keys * 3; i++) store.session.send(['SET', `more:${i}`, value]);
    store.check();
    expect(store.keyspace.stats().demotedClean).toBeGreaterThan(0);
  });

  it('under noeviction everything is worth it, and copies make way for what cannot go elsewhere', {
    timeout: 60_000,
  }, () => {
    const store = start(undefined, { dramMib: 18, capacityMib: 16 });
    store.keyspace.setPolicy('noeviction');
    const value = 'v'.repeat(8000);
    let stored = 0;
    for (; stored < 20_000; stored++) {
      if (store.session.send(['SET', `key:${stored}`, value]) !== '+OK\r\n') break;
      if (stored % 250 === 0) store.writeBehind(ROUND);
    }
    store.check();
    expect(store.keyspace.stats().writtenBehind).toBeGreaterThan(300);
    for (let i = 0; i < stored; i++) expect(get(store, `key:${i}`)).toBe(value);
    const plain = start(undefined, { dramMib: 18, capacityMib: 16 });
    plain.keyspace.setPolicy('noeviction');
    let without = 0;
    while (plain.session.send(['SET', `key:${without}`, value]) === '+OK\r\n') without++;
    expect(stored).toBeGreaterThan(without * 0.9);
  });
});

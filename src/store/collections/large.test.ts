/**
 * Collections of three levels of nodes: filled, read by rank, thinned out and emptied, in order and at random; then the graveyard.
 */
import { describe, expect, it } from 'vitest';
import { openTestStore } from '../../../test/helpers/store.js';
import { Bytes } from '../../layout/bytes.js';
import { Order } from '../../layout/collection.js';
import { checkInvariants } from '../invariants.js';
import { Change, type Collection, HASHES, LISTS, SETS, type Shape, SORTED_SETS } from './collection.js';

const ELEMENTS = 20_000;
const MIB = 1024 * 1024;
const PATIENCE_MS = 120_000;
const STREAM_LIKE: Shape = { ...HASHES, order: Order.BYTES };

/** Numbers below a limit that are the same in every run. */
function pseudoRandom(seed: number): (limit: number) => number {
  let state = seed;
  return (limit) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return state % limit;
  };
}

/** A permutation of 0..n-1 that always is the same. */
function shuffled(n: number): number[] {
  const order = Array.from({ length: n }, (_, i) => i);
  const next = pseudoRandom(12345);
  for (let i = n - 1; i > 0; i--) {
    const k = next(i + 1);
    [order[i], order[k]] = [order[k], order[i]];
  }
  return order;
}

/** `expect` takes longer than what it looks at here. */
function must(holds: boolean): void {
  if (!holds) throw new Error('the collection answers otherwise than it should');
}

const ascending = (n: number) => Array.from({ length: n }, (_, i) => i);
const descending = (n: number) => ascending(n).reverse();

describe.each([
  { name: 'hash', shape: HASHES },
  { name: 'set', shape: SETS },
  { name: 'sorted set', shape: SORTED_SETS },
  { name: 'stream', shape: STREAM_LIKE },
] as const)('$name', ({ shape }) => {
  const keyspace = openTestStore({ dramBytes: 64 * MIB });
  const key = Bytes.from('big');
  const hash = keyspace.hash(0, key, 0, key.length);

  function command<T>(work: (c: Collection) => T): T {
    keyspace.enterBatch();
    keyspace.lock(hash);
    try {
      const c = keyspace.collections[1];
      c.open(shape, hash, 0, key, 0, key.length);
      return work(c);
    } finally {
      keyspace.unlock(hash);
      keyspace.leaveBatch();
    }
  }

  const memberOf = (i: number) => Bytes.from(`member:${String(i).padStart(8, '0')}`);
  // Many members share a score, so that separators tie.
  const scoreOf = (i: number) => Math.floor(i / 1000) - 20;

  function add(c: Collection, i: number): void {
    const member = memberOf(i);
    if (shape.order === Order.SCORE) {
      must(c.insertScored(scoreOf(i), member, 0, member.length) === Change.DONE);
    } else {
      must(!c.seekKey(member, 0, member.length));
      const change = shape.valued
        ? c.insertPair(member, 0, member.length, member, 0, 6, 0)
        : c.insert(member, 0, member.length);
      must(change === Change.DONE);
    }
  }

  it.each([
    ['ascending', ascending],
    ['descending', descending],
    ['shuffled', shuffled],
  ] as const)('%s', { timeout: PATIENCE_MS }, (_, sequence) => {
    const order = sequence(ELEMENTS);
    for (let from = 0; from < ELEMENTS; from += 500) {
      command((c) => {
        for (const i of order.slice(from, from + 500)) add(c, i);
      });
    }
    checkInvariants(keyspace);
    command((c) => {
      expect(c.count).toBe(ELEMENTS);
      for (let i = 0; i < ELEMENTS; i += 37) {
        const member = memberOf(i);
        must(c.seekKey(member, 0, member.length));
        const { rank } = c;
        must(shape.order === Order.HASH || rank === i);
        must(c.seekRank(rank));
        c.load();
        expect(c.key.u8[c.keyOffset + c.keyLength - 1]).toBe(member.u8[member.length - 1]);
      }
    });
    // Nine of ten go, in another order.
    const gone = shuffled(ELEMENTS).filter((i) => i % 10 !== 3);
    for (let from = 0; from < gone.length; from += 500) {
      command((c) => {
        for (const i of gone.slice(from, from + 500)) {
          const member = memberOf(i);
          must(c.seekKey(member, 0, member.length));
          must(c.remove() === Change.DONE);
        }
      });
    }
    checkInvariants(keyspace);
    command((c) => {
      let count = 0;
      for (let more = c.first(); more; more = c.next()) count++;
      expect(count).toBe(ELEMENTS / 10);
      c.removeKey();
    });
    checkInvariants(keyspace);
    keyspace.enterBatch();
    while (keyspace.graveyard.step(100) > 0);
    keyspace.leaveBatch();
    expect(keyspace.graveyard.count).toBe(0);
    checkInvariants(keyspace);
  });
});

describe('scores', () => {
  const keyspace = openTestStore({ dramBytes: 64 * MIB });
  const key = Bytes.from('ranked');
  const hash = keyspace.hash(0, key, 0, key.length);
  const members = ascending(ELEMENTS / 2).map((i) => Bytes.from(`member:${i}`));
  const scores = members.map((_, i) => i);
  const next = pseudoRandom(777);

  function command(work: (c: Collection) => void): void {
    keyspace.enterBatch();
    keyspace.lock(hash);
    const c = keyspace.collections[0];
    c.open(SORTED_SETS, hash, 0, key, 0, key.length);
    work(c);
    keyspace.unlock(hash);
    keyspace.leaveBatch();
  }

  function move(c: Collection, i: number, score: number): void {
    const { length } = members[i];
    must(c.seekKey(members[i], 0, length));
    must(c.changeScore(score, members[i], 0, length) === Change.DONE);
    scores[i] = score;
    c.load();
    must(c.score === score && c.keyLength === length);
  }

  it('change by little, by much, and all to one', { timeout: PATIENCE_MS }, () => {
    for (let i = 0; i < members.length; i++) {
      command((c) => must(c.insertScored(scores[i], members[i], 0, members[i].length) === Change.DONE));
    }
    for (let round = 0; round < 60; round++) {
      command((c) => {
        for (let k = 0; k < 500; k++) {
          const i = next(members.length);
          if (round % 3 === 0) move(c, i, scores[i] + next(9) - 4);
          else if (round % 3 === 1) move(c, i, next(1_000_000) / 64 - 3000);
          else if (round > 40) move(c, i, 5);
        }
      });
      if (round % 20 === 19) checkInvariants(keyspace);
    }
    const order = ascending(members.length).sort(
      (a, b) => scores[a] - scores[b] || Buffer.compare(members[a].u8, members[b].u8),
    );
    command((c) => {
      expect(c.count).toBe(members.length);
      for (let rank = 0; rank < order.length; rank += 7) {
        must(c.seekKey(members[order[rank]], 0, members[order[rank]].length));
        must(c.rank === rank);
      }
    });
  });
});

describe('list', () => {
  const keyspace = openTestStore({ dramBytes: 64 * MIB });
  const key = Bytes.from('long');
  const hash = keyspace.hash(0, key, 0, key.length);

  it('keeps its order through pushes, inserts in the middle and trims', { timeout: PATIENCE_MS }, () => {
    const model: string[] = [];
    keyspace.enterBatch();
    for (let round = 0; round < 60; round++) {
      keyspace.lock(hash);
      const c = keyspace.collections[0];
      c.open(LISTS, hash, 0, key, 0, key.length);
      for (let i = 0; i < 500; i++) {
        const element = `${round}/${i}`;
        const bytes = Bytes.from(element);
        const at = i % 3 === 0 ? 0 : i % 3 === 1 ? model.length : (i * 7919 + round * 104729) % (model.length + 1);
        c.seekRank(at);
        must(c.insert(bytes, 0, bytes.length) === Change.DONE);
        model.splice(at, 0, element);
      }
      if (round % 5 === 4) {
        const from = (round * 31) % model.length;
        c.seekRank(from);
        const count = Math.min(1200, model.length - from - 1);
        for (let i = 0; i < count; i++) must(c.remove() === Change.DONE);
        model.splice(from, count);
      }
      keyspace.unlock(hash);
      if (round % 10 === 9) {
        checkInvariants(keyspace);
        keyspace.lock(hash);
        c.open(LISTS, hash, 0, key, 0, key.length);
        const found: string[] = [];
        for (let more = c.first(); more; more = c.next()) {
          c.load();
          found.push(Buffer.from(c.key.u8.subarray(c.keyOffset, c.keyOffset + c.keyLength)).toString());
        }
        expect(found).toEqual(model);
        keyspace.unlock(hash);
      }
    }
    keyspace.leaveBatch();
  });
});

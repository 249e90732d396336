/**
 * A collection of the store beside a plain array of what it should hold, for property tests: every step is done on both and compared.
 *
 * Invariant: `elements` stands in the order in which the collection must hand its elements out, except for hashes and sets, which are
 * compared as maps.
 */
import { expect } from 'vitest';
import { Bytes } from '../../src/layout/bytes.js';
import { Order } from '../../src/layout/collection.js';
import { Change, type Collection, Opened, type Shape } from '../../src/store/collections/collection.js';
import type { Keyspace } from '../../src/store/keyspace.js';

export interface Element {
  readonly key: string;
  readonly value: string;
  readonly score: number;
  readonly expiryMs: number;
}

export class CollectionModel {
  elements: Element[] = [];
  readonly key: Bytes;
  readonly hash: number;

  constructor(
    readonly keyspace: Keyspace,
    readonly shape: Shape,
    name: string,
  ) {
    this.key = Bytes.from(name);
    this.hash = keyspace.hash(0, this.key, 0, this.key.length);
  }

  /** Runs `work` with the collection open under its lock, as a command would. */
  command<T>(work: (collection: Collection) => T): T {
    const { keyspace, key } = this;
    const collection = keyspace.collections[0];
    keyspace.enterBatch();
    keyspace.lock(this.hash);
    try {
      const opened = collection.open(this.shape, this.hash, 0, key, 0, key.length);
      expect(opened).toBe(this.elements.length > 0 ? Opened.OPEN : Opened.ABSENT);
      const result = work(collection);
      expect(collection.count).toBe(this.elements.length);
      return result;
    } finally {
      keyspace.unlock(this.hash);
      keyspace.leaveBatch();
    }
  }

  /** Adds or replaces by key, as HSET, SADD, ZADD and XADD do. */
  put(key: string, value: string, score: number, expiryMs: number): void {
    const { shape } = this;
    const bytes = Bytes.from(key);
    const valueBytes = Bytes.from(value);
    this.command((c) => {
      if (c.seekKey(bytes, 0, bytes.length)) {
        if (shape.order === Order.SCORE) {
          c.load();
          if (c.score === score) return;
          expect(c.changeScore(score, bytes, 0, bytes.length)).toBe(Change.DONE);
        } else if (shape.valued) {
          expect(c.replaceValue(valueBytes, 0, valueBytes.length, expiryMs)).toBe(Change.DONE);
        }
      } else if (shape.order === Order.SCORE) {
        expect(c.insertScored(score, bytes, 0, bytes.length)).toBe(Change.DONE);
      } else if (shape.valued) {
        const { length } = valueBytes;
        expect(c.insertPair(bytes, 0, bytes.length, valueBytes, 0, length, expiryMs)).toBe(Change.DONE);
      } else {
        expect(c.insert(bytes, 0, bytes.length)).toBe(Change.DONE);
      }
      c.load();
      expect(text(c.key, c.keyOffset, c.keyLength)).toBe(key);
      const at = this.elements.findIndex((element) => element.key === key);
      const element = {
        key,
        value: shape.valued ? value : '',
        score: shape.order === Order.SCORE ? score : 0,
        expiryMs: shape.valued ? expiryMs : 0,
      };
      if (at < 0) this.elements.push(element);
      else this.elements[at] = element;
      this.sort();
      if (shape.order === Order.SCORE || shape.order === Order.BYTES) {
        expect(c.rank).toBe(this.elements.indexOf(element));
      }
    });
  }

  delete(key: string): void {
    const bytes = Bytes.from(key);
    this.command((c) => {
      const found = c.seekKey(bytes, 0, bytes.length);
      const at = this.elements.findIndex((element) => element.key === key);
      expect(found).toBe(at >= 0);
      if (!found) return;
      expect(c.remove()).toBe(Change.DONE);
      this.elements.splice(at, 1);
    });
  }

  insertAt(rank: number, key: string): void {
    const bytes = Bytes.from(key);
    this.command((c) => {
      c.seekRank(rank);
      expect(c.rank).toBe(rank);
      expect(c.insert(bytes, 0, bytes.length)).toBe(Change.DONE);
      this.elements.splice(rank, 0, { key, value: '', score: 0, expiryMs: 0 });
      expect(c.rank).toBe(rank);
    });
  }

  replaceAt(rank: number, key: string): void {
    const bytes = Bytes.from(key);
    this.command((c) => {
      expect(c.seekRank(rank)).toBe(true);
      expect(c.replace(bytes, 0, bytes.length)).toBe(Change.DONE);
      this.elements[rank] = { key, value: '', score: 0, expiryMs: 0 };
    });
  }

  /** Removes `count` elements from `rank` on. */
  removeAt(rank: number, count: number): void {
    this.command((c) => {
      c.seekRank(rank);
      for (let i = 0; i < count && !c.atEnd; i++) expect(c.remove()).toBe(Change.DONE);
      this.elements.splice(rank, count);
    });
  }

  sort(): void {
    const { order } = this.shape;
    if (order === Order.SCORE) {
      this.elements.sort((a, b) => a.score - b.score || Buffer.compare(Buffer.from(a.key), Buffer.from(b.key)));
    } else if (order === Order.BYTES) {
      this.elements.sort((a, b) => Buffer.compare(Buffer.from(a.key), Buffer.from(b.key)));
    }
  }

  /** Reads all of it forwards, backwards and by rank. */
  compareAll(): void {
    if (this.elements.length === 0) return this.command(() => {});
    this.command((c) => {
      const forwards: Element[] = [];
      for (let more = c.first(); more; more = c.next()) forwards.push(current(c));
      const backwards: Element[] = [];
      for (let more = c.last(); more; more = c.previous()) backwards.push(current(c));
      expect(backwards.reverse()).toEqual(forwards);
      if (this.shape.order === Order.HASH) {
        const byKey = (a: Element, b: Element) => (a.key < b.key ? -1 : 1);
        expect([...forwards].sort(byKey)).toEqual([...this.elements].sort(byKey));
      } else {
        expect(forwards).toEqual(this.elements);
      }
      const step = Math.max(1, Math.floor(forwards.length / 50));
      for (let rank = 0; rank < forwards.length; rank += step) {
        expect(c.seekRank(rank)).toBe(true);
        expect(current(c)).toEqual(forwards[rank]);
        expect(c.rank).toBe(rank);
      }
      expect(c.seekRank(forwards.length)).toBe(false);
      expect(c.atEnd).toBe(true);
    });
  }
}

function current(c: Collection): Element {
  c.load();
  return {
    key: text(c.key, c.keyOffset, c.keyLength),
    value: text(c.value, c.valueOffset, c.valueLength),
    score: c.order === Order.SCORE ? c.score : 0,
    expiryMs: c.expiryMs,
  };
}

function text(bytes: Bytes, offset: number, length: number): string {
  return Buffer.from(bytes.u8.subarray(offset, offset + length)).toString('utf8');
}

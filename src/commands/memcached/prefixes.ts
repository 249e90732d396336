/**
 * stats detail: gets, hits, sets and deletes by key prefix (what stands before the delimiter).
 *
 * Each worker counts for itself while counting is on, which is a shared word; `dump` sums over all. Invariant: at most
 * MAX_PREFIXES are counted, so that random keys cannot fill the memory.
 */
import { SharedWord } from '../../layout/counters.js';
import type { PrefixCounts } from '../control.js';
import type { MemcachedContext } from './context.js';

const MAX_PREFIXES = 65_536;

export class Prefixes {
  private readonly context: MemcachedContext;
  private readonly shared: Int32Array;
  private readonly delimiter: number;
  private readonly counts = new Map<string, PrefixCounts>();

  constructor(context: MemcachedContext, shared: Int32Array) {
    this.context = context;
    this.shared = shared;
    this.delimiter = context.settings.memcachedPrefixDelimiter.charCodeAt(0);
    context.control?.provide('memcachedPrefixes', () => [...this.counts.values()]);
    context.control?.provide('memcachedPrefixesReset', () => {
      this.counts.clear();
      return true;
    });
  }

  /** Hot path: one load. */
  get isOn(): boolean {
    return this.shared[SharedWord.prefixCounting] !== 0;
  }

  switch(isOn: boolean): void {
    Atomics.store(this.shared, SharedWord.prefixCounting, isOn ? 1 : 0);
  }

  get(isHit: boolean): void {
    const counts = this.find();
    if (counts === null) return;
    counts.gets++;
    if (isHit) counts.hits++;
  }

  set(): void {
    const counts = this.find();
    if (counts !== null) counts.sets++;
  }

  delete(): void {
    const counts = this.find();
    if (counts !== null) counts.deletes++;
  }

  /** The counts of the current key's prefix; null for a key without one. */
  private find(): PrefixCounts | null {
    const { key, keyOffset, keyLength } = this.context;
    let end = keyOffset;
    while (end < keyOffset + keyLength && key.u8[end] !== this.delimiter) end++;
    if (end === keyOffset + keyLength) return null;
    const prefix = Buffer.from(key.u8.slice(keyOffset, end)).toString('latin1');
    let counts = this.counts.get(prefix);
    if (counts === undefined) {
      if (this.counts.size >= MAX_PREFIXES) return null;
      counts = { prefix, gets: 0, hits: 0, sets: 0, deletes: 0 };
      this.counts.set(prefix, counts);
    }
    return counts;
  }
}

/** `PREFIX name get N hit N set N del N` lines, summed over the workers. */
export function prefixLines(answers: readonly (readonly PrefixCounts[])[]): string {
  const sums = new Map<string, PrefixCounts>();
  for (const counts of answers.flat()) {
    const sum = sums.get(counts.prefix);
    if (sum === undefined) {
      sums.set(counts.prefix, { ...counts });
      continue;
    }
    sum.gets += counts.gets;
    sum.hits += counts.hits;
    sum.sets += counts.sets;
    sum.deletes += counts.deletes;
  }
  let text = '';
  for (const { prefix, gets, hits, sets, deletes } of sums.values()) {
    text += `PREFIX ${prefix} get ${gets} hit ${hits} set ${sets} del ${deletes}\r\n`;
  }
  return text;
}

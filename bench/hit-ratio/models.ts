/** Exact LRU and SIEVE over a budget of bytes: what the figures of real caches are held against. Plain JavaScript, not fast. */
import { KEY_BYTES, type Trace, valueBytes } from './traces.js';

/** Charged for each item beyond key and value: what memcached's header and hash chain take. */
const OVERHEAD_BYTES = 56;

function itemBytes(key: number): number {
  return KEY_BYTES + valueBytes(key) + OVERHEAD_BYTES;
}

/** Misses from `warm` on. */
export function lruMisses(trace: Trace, budget: number): number {
  // A Map keeps its keys in the order of insertion.
  const items = new Map<number, number>();
  let used = 0;
  let misses = 0;
  for (let i = 0; i < trace.keys.length; i++) {
    const key = trace.keys[i];
    if (items.delete(key)) {
      items.set(key, 0);
      continue;
    }
    if (i >= trace.warm) misses++;
    items.set(key, 0);
    used += itemBytes(key);
    while (used > budget) {
      const oldest = items.keys().next().value as number;
      items.delete(oldest);
      used -= itemBytes(oldest);
    }
  }
  return misses;
}

interface Node {
  readonly key: number;
  visited: boolean;
  newer: Node | null;
  older: Node | null;
}

/** SIEVE (NSDI'24): a queue in order of insertion; the hand moves from its old end to its new one and takes what was not visited. */
export function sieveMisses(trace: Trace, budget: number): number {
  const items = new Map<number, Node>();
  let newest: Node | null = null;
  let oldest: Node | null = null;
  let hand: Node | null = null;
  let used = 0;
  let misses = 0;
  const evict = (): void => {
    let victim = hand ?? (oldest as Node);
    while (victim.visited) {
      victim.visited = false;
      victim = victim.newer ?? (oldest as Node);
    }
    hand = victim.newer;
    if (victim.newer === null) newest = victim.older;
    else victim.newer.older = victim.older;
    if (victim.older === null) oldest = victim.newer;
    else victim.older.newer = victim.newer;
    items.delete(victim.key);
    used -= itemBytes(victim.key);
  };
  for (let i = 0; i < trace.keys.length; i++) {
    const key = trace.keys[i];
    const found = items.get(key);
    if (found !== undefined) {
      found.visited = true;
      continue;
    }
    if (i >= trace.warm) misses++;
    while (used + itemBytes(key) > budget) evict();
    const node: Node = { key, visited: false, newer: null, older: newest };
    if (newest === null) oldest = node;
    else (newest as Node).newer = node;
    newest = node;
    items.set(key, node);
    used += itemBytes(key);
  }
  return misses;
}

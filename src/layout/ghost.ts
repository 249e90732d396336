/**
 * The ghost table: 16-bit fingerprints of keys that were lately dropped from DRAM, in Cache Meta behind the page table.
 *
 *     bucket, 32 bytes: 16 fingerprints, newest first      word i = fingerprint 2i+1 << 16 | fingerprint 2i, 0 = none
 *
 * A key's bucket is its hash modulo their number, a power of two. Nothing depends on what stands here but what is remembered: no lock, no
 * undo, no repair. A pool without a capacity tier, or of an earlier build, has no table.
 * Example: hash 0x00000001, remembered in an empty bucket 1: word 0 of it = 0x00009e37.
 */
import { Page } from './location.js';

/** DRAM that the table takes, as a divisor: 2 bytes for each 128 of DRAM, where metadata of an item takes 34. */
const DRAM_DIVISOR = 64;
const BUCKET_BYTES = 32;
/** 64 MiB: all tables lie in the first arena. */
const MAX_BUCKETS = 1 << 21;

export const Ghost = {
  BUCKET_WORDS: BUCKET_BYTES / 4,

  /** Never 0. The hash's low bits choose the bucket, so all of its bits go into the print. */
  print(hash: number): number {
    return Math.imul(hash, 0x9e3779b1) >>> 16 || 1;
  },

  /** Buckets of a pool's table: a power of two. */
  bucketCount(dramPages: number, capacityPages: number): number {
    if (capacityPages === 0) return 0;
    const wanted = Math.floor((dramPages * Page.BYTES) / DRAM_DIVISOR / BUCKET_BYTES);
    return Math.min(MAX_BUCKETS, 1 << (31 - Math.clz32(wanted)));
  },
} as const;

/** Random bytes for identities and seeds, from the kernel: node:crypto would take 2 ms of each thread's start. */
import { closeSync, openSync, readSync } from 'node:fs';

export function randomBytes(count: number): Buffer {
  const bytes = Buffer.alloc(count);
  const fd = openSync('/dev/urandom', 'r');
  try {
    // Up to 256 bytes come whole.
    if (readSync(fd, bytes) !== count) throw new Error('/dev/urandom gave fewer bytes than asked for');
  } finally {
    closeSync(fd);
  }
  return bytes;
}

export function randomWords(count: number): Int32Array {
  const bytes = randomBytes(count * 4);
  return new Int32Array(count).map((_, i) => bytes.readInt32LE(i * 4));
}

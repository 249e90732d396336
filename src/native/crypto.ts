/** node:crypto, loaded when something is to be hashed: it takes 2 ms of a thread's start, and most servers never ask. */
import { createRequire } from 'node:module';

type Crypto = typeof import('node:crypto');

let loaded: Crypto | null = null;

export function crypto(): Crypto {
  loaded ??= createRequire(import.meta.url)('node:crypto') as Crypto;
  return loaded;
}

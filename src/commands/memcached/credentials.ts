/**
 * Who may use memcached's protocols: user `default` with the server's password (requirepass), and the users of the
 * authentication file (`user:password` lines, as of memcached's option -Y). One object a worker; the file is read at its start.
 */

import { readFileSync } from 'node:fs';
import { ConfigError, type Settings } from '../../config/index.js';
import { crypto } from '../../native/crypto.js';

const DEFAULT_USER = 'default';

export class Credentials {
  private readonly settings: Readonly<Settings>;
  private readonly passwords: ReadonlyMap<string, Buffer>;

  constructor(settings: Readonly<Settings>) {
    this.settings = settings;
    this.passwords = settings.memcachedAuthFile === '' ? new Map() : readAuthFile(settings.memcachedAuthFile);
  }

  get areNeeded(): boolean {
    return this.settings.requirepass !== '' || this.passwords.size > 0;
  }

  areRight(user: Uint8Array, password: Uint8Array): boolean {
    const name = Buffer.from(user).toString('latin1');
    let expected = this.passwords.get(name);
    if (expected === undefined && name === DEFAULT_USER && this.settings.requirepass !== '') {
      expected = Buffer.from(this.settings.requirepass);
    }
    return expected !== undefined && isSame(Buffer.from(password), expected);
  }
}

/** Throws ConfigError: a server that asks for passwords that nobody has is of no use. */
function readAuthFile(path: string): Map<string, Buffer> {
  const passwords = new Map<string, Buffer>();
  let text: string;
  try {
    text = readFileSync(path, 'latin1');
  } catch (error) {
    throw new ConfigError([`--memcached-auth-file ${path}: ${(error as Error).message}`]);
  }
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line === '') continue;
    const colon = line.indexOf(':');
    if (colon < 1) throw new ConfigError([`--memcached-auth-file ${path}: line ${index + 1} is not user:password.`]);
    passwords.set(line.slice(0, colon), Buffer.from(line.slice(colon + 1), 'latin1'));
  }
  if (passwords.size === 0) throw new ConfigError([`--memcached-auth-file ${path}: holds no user:password line.`]);
  return passwords;
}

/** Takes as long for a wrong password as for the right one. */
function isSame(given: Buffer, expected: Buffer): boolean {
  const padded = Buffer.alloc(expected.length);
  given.copy(padded);
  return crypto().timingSafeEqual(padded, expected) && given.length === expected.length;
}

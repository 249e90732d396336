/**
 * The byte scripts, against Debian's memcached and against our driver without a socket. What is meant to differ is
 * declared with the scripts; anything else that differs fails.
 */
import { afterAll, beforeAll, describe, it } from 'vitest';
import { MemcachedSession } from '../helpers/memcached-session.js';
import { testStore } from '../helpers/store.js';
import { Memcached, memcachedVersion, SocketPeer } from './memcached-oracle.js';
import { compare, type Peer } from './memcached-run.js';
import { scripts } from './memcached-scripts.js';

class SessionPeer implements Peer {
  readonly #session = new MemcachedSession(testStore());

  async exchange(request: string): Promise<string> {
    if (this.#session.isClosed) {
      this.#session.close();
      this.#session.client = this.#session.connect();
    }
    return this.#session.send(request);
  }
}

const version = memcachedVersion();

describe.skipIf(version === null)(`the same replies as memcached ${version}`, () => {
  let memcached: Memcached;
  let theirs: SocketPeer;

  beforeAll(async () => {
    memcached = await Memcached.start();
    theirs = new SocketPeer(memcached.port);
  });

  afterAll(() => {
    theirs?.close();
    memcached?.stop();
  });

  for (const script of scripts) {
    it(script.name, () => compare(script, new SessionPeer(), theirs));
  }
});

/** Authentication in the text protocol: the same replies as memcached -Y, byte by byte. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RawClient } from '../helpers/raw-client.js';
import { startTestServer, type TestServer } from '../helpers/server.js';
import { Memcached, memcachedVersion } from './memcached-oracle.js';

/** Each on a connection of its own. What is sent last gets a reply line. */
const CONVERSATIONS: readonly (readonly string[])[] = [
  ['get a\r\n', 'mg a v\r\n', 'incr a 1\r\n', 'stats\r\n', 'flush_all\r\n', 'set a 0 0 2\r\nhi\r\n', 'version\r\n'],
  ['set x 0 0 7\r\nfoo bab\r\n', 'set x 0 0 7\r\nfoo bar\r\n', 'set a 5 0 2\r\nhi\r\n', 'get a\r\n'],
  ['set x 0 0 10\r\nbaaaz quux\r\n', 'get a\r\n'],
  ['set x 0 0 3\r\nfoo\r\n', 'set x 0 0 7\r\nFOO bar\r\n'],
  ['set x 0 0 10\r\nbaaaz:quux\r\n', 'set x 0 0 4\r\nfoo \r\n', 'set x 0 0 6\r\nfoo ba\r\n'],
];

const version = memcachedVersion();

describe.skipIf(version === null)(`authentication as in memcached ${version}`, () => {
  let folder: string;
  let memcached: Memcached;
  let server: TestServer;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'entresol-test-'));
    const file = join(folder, 'users');
    writeFileSync(file, 'foo:bar\nbaaaz:quux\n');
    memcached = await Memcached.start(['-Y', file]);
    server = await startTestServer({ args: [`--memcached-auth-file=${file}`] });
  });

  afterAll(async () => {
    memcached?.stop();
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  async function replies(port: number, requests: readonly string[]): Promise<string[]> {
    const client = await RawClient.connect(port);
    const lines: string[] = [];
    for (const request of requests) {
      client.write(request);
      let line = await client.line();
      lines.push(line);
      while (/^VALUE|^hi$/.test(line)) {
        line = await client.line();
        lines.push(line);
      }
    }
    client.destroy();
    return lines;
  }

  it.each(CONVERSATIONS.map((requests, i) => [i, requests] as const))('conversation %i', async (_, requests) => {
    expect(await replies(server.memcachedPort, requests)).toEqual(await replies(memcached.port, requests));
  });

  it('counts spaces as part of the password, where memcached reads words', async () => {
    const request = ['set x 0 0 8\r\nfoo  bar\r\n'];
    expect(await replies(memcached.port, request)).toEqual(['STORED']);
    expect(await replies(server.memcachedPort, request)).toEqual(['CLIENT_ERROR authentication failure']);
  });
});

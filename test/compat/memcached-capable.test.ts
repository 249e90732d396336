/** libmemcached's own compliance test of both protocols (memccapable), where Debian's libmemcached-tools is installed. */
import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { startTestServer } from '../helpers/server.js';

/** It answers nothing to -V; usage goes out with the first option that it does not know. */
const isInstalled = /Usage: memccapable/.test(spawnSync('memccapable', ['-?'], { encoding: 'utf8' }).stderr ?? '');

describe.skipIf(!isInstalled)('memccapable', () => {
  it.each([
    ['text', '-a'],
    ['binary', '-b'],
  ])(
    'finds the %s protocol in order',
    async (_, option) => {
      const server = await startTestServer();
      const { stdout, stderr } = spawnSync(
        'memccapable',
        ['-h', '127.0.0.1', '-p', String(server.memcachedPort), option, '-t', '10'],
        { encoding: 'utf8', timeout: 60_000 },
      );
      expect(`${stdout}${stderr}`).toMatch(/All tests passed/);
      expect(stdout.match(/\[pass\]/g)!.length).toBeGreaterThan(20);
      await server.stop();
    },
    90_000,
  );
});

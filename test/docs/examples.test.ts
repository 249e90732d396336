/** Programs that the documentation shows run as they stand. Needs the build. */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { removePool } from '../helpers/pool.js';
import { startTestServer } from '../helpers/server.js';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const MODULES = join(ROOT, 'node_modules');
const RUN_MAX_MS = 120_000;

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'entresol-examples-'));
  for (const name of ['redis', 'vitest', 'jest', 'keyv', 'cache-manager']) link(name, join(MODULES, name));
  link('entresol', ROOT);
});

afterAll(async () => {
  // The pools that the programs make where they run.
  for (const pool of ['cache', 'keyv']) await removePool(join(folder, pool));
  rmSync(folder, { recursive: true, force: true });
});

function link(name: string, target: string): void {
  const path = join(folder, 'node_modules', name);
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(target, path);
}

const page = (name: string): string => readFileSync(join(ROOT, 'docs', name), 'utf8');

/** The code blocks of a page that carry a file's name. */
function filesOf(name: string): Map<string, string> {
  const blocks = page(name).matchAll(/^```js \[([\w.-]+)\]\n([\s\S]*?)^```/gm);
  return new Map([...blocks].map(([, file, text]) => [file, text]));
}

/** The first code block without a name that mentions `word`. */
function blockWith(name: string, word: string): string {
  const blocks = [...page(name).matchAll(/^```js\n([\s\S]*?)^```/gm)].map(([, text]) => text);
  const found = blocks.find((text) => text.includes(word));
  if (found === undefined) throw new Error(`docs/${name} has no program with ${word}`);
  return found;
}

/** Without what this test's own runner has told its processes. */
const bare = { PATH: process.env.PATH, HOME: process.env.HOME };

describe('docs/testing.md', () => {
  beforeAll(() => {
    for (const [file, text] of filesOf('testing.md')) writeFileSync(join(folder, file), text);
    const config = "export default { test: { globalSetup: './global-setup.mjs' } };";
    writeFileSync(join(folder, 'vitest.config.mjs'), config);
  });

  it(
    'has tests for vitest that pass, with its global set-up',
    async () => {
      const args = [join(MODULES, 'vitest/vitest.mjs'), 'run', '--root', folder, 'store.test.js'];
      const { stdout } = await run(process.execPath, args, { cwd: folder, env: bare });
      expect(stdout).toMatch(/1 passed/);
    },
    RUN_MAX_MS,
  );

  it(
    'has tests for jest that pass',
    async () => {
      const args = [join(MODULES, 'jest/bin/jest.js'), '--config', 'jest.config.cjs', '--watchman=false'];
      const { stderr } = await run(process.execPath, args, { cwd: folder, env: bare });
      expect(stderr).toMatch(/Tests: +1 passed, 1 total/);
    },
    RUN_MAX_MS,
  );
});

describe('docs/embed.md', () => {
  it('has a program that uses the library', async () => {
    const text = blockWith('embed.md', 'getOrCompute');
    const program = `const buildReport = async () => 'built';\n${text}\nconsole.log(report);\n`;
    writeFileSync(join(folder, 'embed.mjs'), program.replace("dram: '256mb', capacity: '4gb'", "dram: '32mb'"));
    expect((await run(process.execPath, ['embed.mjs'], { cwd: folder })).stdout).toBe('built\n');
  });

  it('has a program that uses the Keyv store', async () => {
    const text = blockWith('embed.md', 'EntresolStore').replace("path: './cache'", "path: './keyv', dram: '32mb'");
    const program = `${text}
      await manager.set('a', { n: 1 });
      console.log(cache.get('sessions:a'));
      cache.close();\n`;
    writeFileSync(join(folder, 'keyv.mjs'), program);
    expect((await run(process.execPath, ['keyv.mjs'], { cwd: folder })).stdout).toBe('{"value":{"n":1}}\n');
  });
});

describe('docs/migrate-from-redis.md', () => {
  it(
    'has a program that copies all keys with their expiry',
    async () => {
      const [from, to] = await Promise.all([startTestServer(), startTestServer()]);
      const [source, target] = [from, to].map(({ redisPort }) =>
        createClient({ url: `redis://127.0.0.1:${redisPort}` }),
      );
      await Promise.all([source.connect(), target.connect()]);
      for (let i = 0; i < 2500; i++) await source.set(`k${i}`, `v${i}`);
      await source.set('short-lived', 'v', { PX: 3_600_000 });
      await source.hSet('hash', { a: '1', b: '2' });
      await source.rPush('list', ['x', 'y']);

      writeFileSync(join(folder, 'copy.mjs'), blockWith('migrate-from-redis.md', 'scanIterator'));
      const urls = [from, to].map(({ redisPort }) => `redis://127.0.0.1:${redisPort}`);
      await run(process.execPath, ['copy.mjs', ...urls], { cwd: folder });

      expect(await target.dbSize()).toBe(2503);
      expect(await target.get('k2499')).toBe('v2499');
      expect(await target.pExpireTime('short-lived')).toBe(await source.pExpireTime('short-lived'));
      expect(await target.pTTL('k0')).toBe(-1);
      expect({ ...(await target.hGetAll('hash')) }).toEqual({ a: '1', b: '2' });
      expect(await target.lRange('list', 0, -1)).toEqual(['x', 'y']);
      source.destroy();
      target.destroy();
      await Promise.all([from.stop(), to.stop()]);
    },
    RUN_MAX_MS,
  );
});

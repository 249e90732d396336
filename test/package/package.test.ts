/**
 * The tarball that `npm pack` makes, as a user meets it: what is in it, that it installs without network, compiler or scripts,
 * that the command serves, and that import, require and TypeScript find what they should.
 *
 * Here it holds the addon of this machine alone; `npm run release` builds all of them the same way.
 */
import { execFile, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { interpreterOf, targetName } from '../../src/native/find-addon.js';
import { removePool } from '../helpers/pool.js';
import { freePorts } from '../helpers/ports.js';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const BIN = join(ROOT, 'node_modules/.bin');
const TARGET = targetName();
const BUILD_MAX_MS = 300_000;
/** A release is made on Debian: its packages are where Lua's sources come from. */
const isDebian = existsSync('/etc/debian_version');

let folder: string;
let tarball: string;
let app: string;

/** Node.js and npm, and no compiler: neither in PATH nor where node-gyp would ask for it. */
function bareEnvironment(): NodeJS.ProcessEnv {
  const bare = join(folder, 'bin');
  return { PATH: bare, HOME: process.env.HOME, npm_config_cache: process.env.npm_config_cache };
}

beforeAll(async () => {
  if (!isDebian) return;
  folder = mkdtempSync(join(tmpdir(), 'entresol-package-'));
  const args = ['run', '--silent', 'release', '--', '--as-built', '--check', '--targets', TARGET, '--out'];
  const { stdout } = await run('npm', [...args, join(folder, 'pack')], { cwd: ROOT, timeout: BUILD_MAX_MS });
  expect(stdout).toContain(`${TARGET}: the same bytes again`);
  expect(stdout).toContain('the tarball: the same bytes again');
  tarball = join(folder, 'pack', readdirSync(join(folder, 'pack'))[0]);

  const bare = join(folder, 'bin');
  mkdirSync(bare);
  for (const name of ['node', 'npm', 'npx', 'sh']) {
    const { stdout: found } = await run('sh', ['-c', `command -v ${name}`]);
    const path = name === 'node' ? process.execPath : found.trim();
    writeFileSync(join(bare, name), `#!/bin/sh\nexec ${path} "$@"\n`, { mode: 0o755 });
  }
  app = join(folder, 'app');
  mkdirSync(app);
  writeFileSync(join(app, 'package.json'), '{ "private": true }\n');
  const install = ['install', '--offline', '--ignore-scripts', '--no-audit', '--no-fund', tarball];
  await run('npm', install, { cwd: app, env: bareEnvironment() });
}, BUILD_MAX_MS);

afterAll(() => isDebian && rmSync(folder, { recursive: true, force: true }));

describe.runIf(isDebian)('the tarball', () => {
  it('holds what runs, and nothing else', async () => {
    const { stdout } = await run('tar', ['tzf', tarball]);
    const files = stdout.trim().split('\n');
    const expected =
      /^package\/((LICENSE|NOTICE|README\.md|package\.json|bin\/entresol\.js)|dist\/(bundle|cjs)\/([\w-]+\.js|package\.json|types\/[\w/-]+\.d\.ts)|prebuilds\/[\w-]+\/entresol\.node|node_modules\/smol-toml\/.*)$/;
    expect(files.filter((file) => !expected.test(file))).toEqual([]);
    for (const file of ['LICENSE', 'NOTICE', `prebuilds/${TARGET}/entresol.node`, 'dist/cjs/start-worker.js']) {
      expect(files).toContain(`package/${file}`);
    }
  });

  it('asks for no install script and no other package', () => {
    const text = readFileSync(join(app, 'node_modules/entresol/package.json'), 'utf8');
    const { scripts, dependencies, bundleDependencies } = JSON.parse(text) as Record<string, Record<string, string>>;
    expect(Object.keys(scripts).filter((name) => /^(pre|post)?install$|^prepare$/.test(name))).toEqual([]);
    expect(bundleDependencies).toEqual(Object.keys(dependencies));
  });

  it('has an addon that needs a C library of 2018 or later', async () => {
    const addon = join(app, 'node_modules/entresol/prebuilds', TARGET, 'entresol.node');
    expect(interpreterOf(addon)).toBe('');
    const { stdout } = await run('readelf', ['-W', '--dyn-syms', addon]);
    const versions = [...stdout.matchAll(/UND .*@GLIBC_2\.(\d+)/g)].map((match) => Number(match[1]));
    if (TARGET.endsWith('glibc')) expect(versions.length).toBeGreaterThan(10);
    expect(versions.filter((minor) => minor > 28)).toEqual([]);
  });

  it('satisfies publint and attw', async () => {
    await run(join(BIN, 'publint'), ['run', tarball, '--strict']);
    // node10: resolution of before 2022, which knows no `exports`.
    await run(join(BIN, 'attw'), [tarball, '--profile', 'node16', '--format', 'ascii']);
  }, 120_000);
});

/** Asks one inline command. */
function ask(port: number, command: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(`${command}\r\n`));
    socket.once('data', (data) => {
      socket.destroy();
      resolve(data.toString('latin1'));
    });
    socket.once('error', reject);
  });
}

describe.runIf(isDebian)('installed', () => {
  it('serves by npx', async () => {
    const [port, memcachedPort] = await freePorts(2);
    const pool = join(folder, 'pool');
    const args = ['--offline', 'entresol', 'serve', `--port=${port}`, `--memcached-port=${memcachedPort}`];
    const child = spawn('npx', [...args, `--pool=${pool}`, '--dram=32mb', '--capacity=0'], {
      cwd: app,
      env: bareEnvironment(),
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
    });
    const ended = new Promise((resolve) => child.once('exit', resolve));
    try {
      await new Promise((resolve, reject) => {
        child.stdout.once('data', resolve);
        void ended.then(reject);
      });
      expect(await ask(port, 'SET k packed')).toBe('+OK\r\n');
      expect(await ask(port, `EVAL "return cjson.encode({redis.call('GET', KEYS[1])})" 1 k`)).toBe(
        '$10\r\n["packed"]\r\n',
      );
      expect(await ask(memcachedPort, 'get k')).toBe('VALUE k 0 6\r\npacked\r\nEND\r\n');
    } finally {
      process.kill(-(child.pid as number), 'SIGTERM');
      await ended;
      await removePool(pool);
    }
  }, 60_000);

  it.each([
    ['import', 'app.mjs', (name: string, from: string) => `import { ${name} } from '${from}';`],
    ['require', 'app.cjs', (name: string, from: string) => `const { ${name} } = require('${from}');`],
  ])('loads by %s', async (_, file, load) => {
    const modules = { open: 'entresol', startServer: 'entresol/testing', EntresolStore: 'entresol/keyv' };
    const loading = Object.entries(modules).map(([name, from]) => load(name, from));
    const pool = join(folder, `pool-of-${file}`);
    const script = `${loading.join('\n')}
      (async () => {
        const cache = await open({ path: ${JSON.stringify(pool)}, dram: '32mb' });
        await new EntresolStore(cache).set('k', 'v');
        const server = await startServer();
        console.log(cache.get('k'), server.url);
        cache.close();
        await server.stop();
      })();`;
    writeFileSync(join(app, file), script);
    const { stdout } = await run(process.execPath, [file], { cwd: app });
    await removePool(pool);
    expect(stdout).toMatch(/^v redis:\/\/127\.0\.0\.1:\d+\n$/);
  });
});

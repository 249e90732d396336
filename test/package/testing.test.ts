/** entresol/testing: servers of their own, gone with whoever started them. Needs the build. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from 'redis';
import { afterAll, describe, expect, it } from 'vitest';

const GONE_WITHIN_MS = 10_000;
const MODULE_URL = new URL('../../dist/bundle/testing.js', import.meta.url);
const { startServer } = (await import(MODULE_URL.href)) as typeof import('../../src/testing/index.js');

async function until(isTrue: () => boolean): Promise<boolean> {
  const end = performance.now() + GONE_WITHIN_MS;
  while (!isTrue()) {
    if (performance.now() > end) return false;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return true;
}

const isAlive = (pid: number): boolean => existsSync(`/proc/${pid}`);

/** The servers of this file keep their pools in a folder of their own. */
const home = mkdtempSync(join(tmpdir(), 'entresol-testing-test-'));
process.env.TMPDIR = home;
afterAll(() => rmSync(home, { recursive: true, force: true }));
const pools = new Set<string>();

/** What servers of this file have left: pools, and their memory, which is named after them. */
function traces(): string[] {
  const here = readdirSync(home);
  const inMemory = readdirSync('/dev/shm').filter((name) => [...pools].some((pool) => name.includes(pool)));
  return [...here, ...inMemory];
}

function notePools(): void {
  for (const name of readdirSync(home)) pools.add(name);
}

/** A process that starts a server and prints its pid; what it does then is in `script`. */
function parent(script: string): { child: ChildProcess; serverPid: Promise<number>; ended: Promise<void> } {
  const code = `import { startServer } from ${JSON.stringify(MODULE_URL.href)};
    const server = await startServer();
    console.log(server.pid);
    ${script}`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
  const serverPid = new Promise<number>((resolve, reject) => {
    child.stdout?.once('data', (text) => resolve(Number(text)));
    child.once('exit', () => reject(new Error('the parent ended before it had a server')));
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  return { child, serverPid, ended };
}

describe('startServer', () => {
  it('gives servers that know nothing of each other', async () => {
    await using a = await startServer();
    await using b = await startServer();
    const [clientA, clientB] = [createClient({ url: a.url }), createClient({ url: b.url })];
    await Promise.all([clientA.connect(), clientB.connect()]);
    await clientA.set('k', 'a');
    expect(await clientB.get('k')).toBeNull();
    expect(await clientA.get('k')).toBe('a');
    expect(new Set([a.port, b.port, a.memcachedPort, b.memcachedPort]).size).toBe(4);
    clientA.destroy();
    clientB.destroy();
  });

  it('takes options of serve, and says what is wrong with them', async () => {
    const server = await startServer({ args: ['--requirepass=secret'] });
    const client = createClient({ url: server.url, password: 'secret' });
    await client.connect();
    expect(await client.ping()).toBe('PONG');
    client.destroy();
    await server.stop();
    await server.stop();
    await expect(startServer({ args: ['--prot=1'] })).rejects.toThrow('--prot: unknown option. Did you mean --port?');
  });

  it.each([
    ['is killed', '', 'SIGKILL'],
    ['has nothing left to do', '', null],
    ['throws', "throw Object.assign(new Error('on purpose'), { stack: undefined });", null],
    ['blocks and is killed', 'for (;;) ;', 'SIGKILL'],
  ] as const)('ends with its parent when that %s', async (_, script, signal) => {
    const keepAlive = signal === null || script !== '' ? '' : 'setInterval(() => undefined, 1000);';
    const { child, serverPid, ended } = parent(script + keepAlive);
    const pid = await serverPid;
    notePools();
    if (signal !== null) child.kill(signal);
    await ended;
    expect(await until(() => !isAlive(pid))).toBe(true);
    expect(await until(() => traces().length === 0)).toBe(true);
  });

  it('leaves nothing when the server itself is killed', async () => {
    const server = await startServer();
    notePools();
    expect(traces()).toHaveLength(2);
    process.kill(server.pid, 'SIGKILL');
    expect(await until(() => !isAlive(server.pid))).toBe(true);
    await server.stop();
    expect(await until(() => traces().length === 0)).toBe(true);
  });
});

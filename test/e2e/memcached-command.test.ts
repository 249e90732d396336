/** `entresol memcached` as a process: what memcached's own options do beside settings. */
import { type ChildProcess, spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import memjs from 'memjs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { removePool } from '../helpers/pool.js';
import { freePorts } from '../helpers/ports.js';
import { RawClient } from '../helpers/raw-client.js';

const COMMAND = fileURLToPath(new URL('../../bin/entresol.js', import.meta.url));
const READY_WITHIN_MS = 20_000;

/** True when every user may read what lies there. */
function isPublic(path: string): boolean {
  if ((statSync(path).mode & 0o005) === 0) return false;
  return dirname(path) === path || isPublic(dirname(path));
}

describe('entresol memcached', () => {
  let folder: string;
  let port: number;
  const running = new Set<ChildProcess>();

  beforeAll(() => {
    // Pools of its own lie below TMPDIR.
    folder = mkdtempSync(join(tmpdir(), 'entresol-test-'));
  });

  afterEach(async () => {
    for (const child of running) await stop(child, 'SIGTERM');
  });

  afterAll(async () => {
    await removePool(join(folder, 'kept.entresol'));
    for (const name of inMemory()) rmSync(join('/dev/shm', name));
    rmSync(folder, { recursive: true, force: true });
  });

  /** Files in shared memory of this test's pools. */
  const inMemory = (): string[] => readdirSync('/dev/shm').filter((name) => name.startsWith(`entresol-tcp-${port}-`));

  /** Starts the command and waits for its ports file. */
  async function start(args: readonly string[], environment: Record<string, string> = {}): Promise<ChildProcess> {
    const portsFile = join(folder, 'ports');
    rmSync(portsFile, { force: true });
    const child = spawn(process.execPath, [COMMAND, 'memcached', '-m', '16', ...args], {
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { ...process.env, TMPDIR: folder, MEMCACHED_PORT_FILENAME: portsFile, ...environment },
    });
    running.add(child);
    const deadline = performance.now() + READY_WITHIN_MS;
    while (!existsSync(portsFile)) {
      if (child.exitCode !== null) throw new Error(`ended with ${child.exitCode}`);
      if (performance.now() > deadline) throw new Error('not ready in time');
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return child;
  }

  async function stop(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
    running.delete(child);
    if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
    const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
    child.kill(signal);
    return ended;
  }

  async function exchange(request: string, reply: string, to: number | string = port): Promise<void> {
    const client = await RawClient.connect(to);
    await client.ask(request, reply);
    client.destroy();
  }

  it('begins empty, leaves nothing behind, and takes over what a killed one has left', async () => {
    [port] = await freePorts(1);
    const first = await start(['-p', String(port), '-l', '127.0.0.1', '-P', join(folder, 'pid')]);
    expect(readFileSync(join(folder, 'pid'), 'utf8')).toBe(`${first.pid}\n`);
    expect(readFileSync(join(folder, 'ports'), 'utf8')).toBe(`TCP INET: ${port}\n`);
    await exchange('set k 0 0 1\r\nx\r\n', 'STORED\r\n');
    await stop(first, 'SIGKILL');
    expect(inMemory()).toHaveLength(1);
    const second = await start(['-p', String(port), '-l', '127.0.0.1', '-P', join(folder, 'pid')]);
    expect(inMemory()).toHaveLength(1);
    await exchange('get k\r\n', 'END\r\n');
    // memcached's graceful stop.
    expect(await stop(second, 'SIGUSR1')).toBe(0);
    expect(inMemory()).toEqual([]);
    expect(existsSync(join(folder, 'pid'))).toBe(false);
    expect(readdirSync(join(folder, `entresol-memcached-${process.getuid!()}`))).toEqual([]);
  }, 60_000);

  it('keeps items over a restart with -e', async () => {
    [port] = await freePorts(1);
    const args = ['-p', String(port), '-l', '127.0.0.1', '-e', join(folder, 'kept')];
    const first = await start(args);
    await exchange('set k 0 0 1\r\nx\r\n', 'STORED\r\n');
    await stop(first, 'SIGKILL');
    await start(args);
    await exchange('get k\r\n', 'VALUE k 0 1\r\nx\r\nEND\r\n');
  }, 60_000);

  it('listens on a unix socket alone with -s, with UDP beside TCP with -U', async () => {
    const path = join(folder, 'socket');
    const child = await start(['-s', path, '-a', '700']);
    await exchange('set k 0 0 1\r\nx\r\nget k\r\n', 'STORED\r\nVALUE k 0 1\r\nx\r\nEND\r\n', path);
    expect(readFileSync(join(folder, 'ports'), 'utf8')).toBe('');
    await stop(child, 'SIGTERM');
    await start(['-l', '127.0.0.1', '-p', '-1', '-U', '-1']);
    const [, tcp, udp] = /^TCP INET: (\d+)\nUDP INET: (\d+)\n$/.exec(readFileSync(join(folder, 'ports'), 'utf8'))!;
    expect(tcp).not.toBe(udp);
    await exchange('version\r\n', 'VERSION 1.6.18\r\n', Number(tcp));
  }, 60_000);

  it('listens on the ports that addresses of -l have, on that of -p for the others', async () => {
    const [first, second, third] = await freePorts(3);
    await start(['-p', String(first), '-l', `127.0.0.1,127.0.0.1:${second}`, '-l', `127.0.0.1:${third}`]);
    expect(readFileSync(join(folder, 'ports'), 'utf8')).toBe(
      `TCP INET: ${first}\nTCP INET: ${second}\nTCP INET: ${third}\n`,
    );
    await exchange('set a 0 0 1\r\n1\r\n', 'STORED\r\n', first);
    await exchange('incr a 1\r\n', '2\r\n', second);
    await exchange('incr a 1\r\n', '3\r\n', third);
  });

  it('runs in the background with -d, and returns when it serves', async () => {
    [port] = await freePorts(1);
    const pidFile = join(folder, 'pid');
    const foreground = spawn(
      process.execPath,
      [COMMAND, 'memcached', '-d', '-m', '16', '-p', String(port), '-l', '127.0.0.1', '-P', pidFile],
      { stdio: ['ignore', 'inherit', 'inherit'], env: { ...process.env, TMPDIR: folder } },
    );
    expect(await new Promise((resolve) => foreground.once('exit', resolve))).toBe(0);
    const pid = Number(readFileSync(pidFile, 'utf8'));
    const client = await RawClient.connect(port);
    client.write('stats\r\n');
    await client.until(() => client.text.endsWith('END\r\n'), 'statistics');
    expect(client.text).toContain(`STAT pid ${pid}\r\n`);
    process.kill(pid, 'SIGTERM');
    await client.closed();
    for (let i = 0; existsSync(pidFile) && i < 500; i++) await new Promise((resolve) => setTimeout(resolve, 20));
    expect(existsSync(pidFile)).toBe(false);
  }, 60_000);

  it('lets in the users of MEMCACHED_SASL_PWDB with -S, in the binary protocol alone', async () => {
    [port] = await freePorts(1);
    const users = join(folder, 'users');
    writeFileSync(users, 'ann:secret\n');
    await start(['-S', '-p', String(port), '-l', '127.0.0.1'], { MEMCACHED_SASL_PWDB: users });
    const client = memjs.Client.create(`127.0.0.1:${port}`, { username: 'ann', password: 'secret', timeout: 5 });
    await client.set('k', 'v', {});
    expect((await client.get('k')).value!.toString()).toBe('v');
    client.close();
    const text = await RawClient.connect(port);
    text.write('get k\r\n');
    await text.closed();
    expect(text.text).toBe('');
  }, 60_000);

  it.runIf(process.getuid!() === 0 && isPublic(COMMAND))(
    'runs as the user of -u, when root starts it',
    async () => {
      [port] = await freePorts(1);
      const users = readFileSync('/etc/passwd', 'utf8').split('\n');
      const [, , uid, gid] = users.find((entry) => entry.startsWith('nobody:'))!.split(':');
      chmodSync(folder, 0o777);
      const child = await start(['-u', 'nobody', '-p', String(port), '-l', '127.0.0.1']);
      const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
      expect(status).toMatch(new RegExp(`^Uid:\\t${uid}\\t${uid}\\t${uid}\\t${uid}$`, 'm'));
      expect(status).toMatch(new RegExp(`^Gid:\\t${gid}\\t${gid}\\t${gid}\\t${gid}$`, 'm'));
      expect(status).toMatch(new RegExp(`^Groups:\\t${gid} *$`, 'm'));
      await exchange('set k 0 0 1\r\nx\r\n', 'STORED\r\n');
      expect(await stop(child, 'SIGTERM')).toBe(0);
    },
    60_000,
  );

  it('says what is wrong with an option and ends with 2', async () => {
    const child = spawn(process.execPath, [COMMAND, 'memcached', '-B', 'http'], {
      stdio: ['ignore', 'inherit', 'pipe'],
    });
    let said = '';
    child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    expect(await new Promise((resolve) => child.once('close', resolve))).toBe(2);
    expect(said).toMatch(/^entresol memcached: Invalid value for binding protocol: http\n/);
  }, 30_000);
});

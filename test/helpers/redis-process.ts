/** Debian's redis-server with a folder of its own, for tests of files. Stopped and removed at the end of the test file. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll } from 'vitest';
import { freePorts } from './ports.js';

export interface RedisProcess {
  readonly client: Redis;
  readonly port: number;
  readonly folder: string;
  stop(): Promise<void>;
}

const folders: string[] = [];
const started: { readonly child: ChildProcess; readonly client: Redis; readonly folder: string }[] = [];

afterAll(() => {
  for (const { child, client, folder } of started.splice(0)) {
    client.disconnect();
    child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** A folder for one, or for its files. */
export function redisFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'entresol-redis-'));
  folders.push(folder);
  return folder;
}

/** Settles when it answers, with what it found in its folder loaded. */
export async function startRedis(folder: string, args: readonly string[] = []): Promise<RedisProcess> {
  const [port] = await freePorts(1);
  const fixed = ['--port', String(port), '--dir', folder, '--save', '', '--enable-debug-command', 'yes'];
  const child = spawn('redis-server', [...fixed, ...args], { stdio: 'ignore' });
  const ended = new Promise<void>((resolve) => child.on('exit', () => resolve()));
  // ioredis waits until the server has loaded, and tries again until it listens.
  const client = new Redis(port, { retryStrategy: () => 50, maxRetriesPerRequest: null });
  started.push({ child, client, folder });
  client.on('error', () => undefined);
  const isUp = await Promise.race([client.ping().then(() => true), ended.then(() => false)]);
  if (!isUp) throw new Error(`redis-server ended: it does not like what is in ${folder}`);
  return {
    client,
    port,
    folder,
    stop: async () => {
      client.disconnect();
      child.kill('SIGTERM');
      await ended;
    },
  };
}

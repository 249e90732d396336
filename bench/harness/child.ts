/**
 * Child processes of a run. Every one started here is ended here, by its own id, also when the run fails.
 * A child's output is kept (its last part) so that a failure can be told with the reason.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

const OUTPUT_KEPT_CHARS = 8 << 20;
const STOP_GRACE_MS = 10_000;

const running = new Set<Child>();

export class Child {
  readonly pid: number;
  output = '';
  exited = false;
  private readonly process: ChildProcess;
  private readonly ended: Promise<void>;

  constructor(
    readonly name: string,
    command: readonly string[],
    environment: NodeJS.ProcessEnv = process.env,
  ) {
    this.process = spawn(command[0], command.slice(1), { stdio: ['ignore', 'pipe', 'pipe'], env: environment });
    const keep = (text: string): void => {
      this.output = (this.output + text).slice(-OUTPUT_KEPT_CHARS);
    };
    this.process.stdout?.setEncoding('utf8').on('data', keep);
    this.process.stderr?.setEncoding('utf8').on('data', keep);
    this.ended = new Promise((resolve) => {
      this.process.once('error', (error) => {
        keep(`${error.message}\n`);
        this.exited = true;
        resolve();
      });
      this.process.once('close', () => {
        this.exited = true;
        running.delete(this);
        resolve();
      });
    });
    this.pid = this.process.pid ?? 0;
    running.add(this);
  }

  signal(signal: NodeJS.Signals): void {
    if (!this.exited) this.process.kill(signal);
  }

  /** SIGTERM, and SIGKILL for one that does not go. */
  async stop(): Promise<void> {
    running.delete(this);
    if (this.exited) return;
    this.signal('SIGCONT');
    this.signal('SIGTERM');
    const timer = setTimeout(() => this.signal('SIGKILL'), STOP_GRACE_MS);
    await this.ended;
    clearTimeout(timer);
  }

  /** Exit code of a program that ends by itself. */
  async wait(): Promise<number> {
    await this.ended;
    return this.process.exitCode ?? -1;
  }

  failure(what: string): Error {
    return new Error(`${this.name}: ${what}\n${this.output.slice(-4000)}`);
  }
}

/** Runs a program to its end; throws with its output unless it exits 0. */
export async function runToEnd(
  name: string,
  command: readonly string[],
  environment?: NodeJS.ProcessEnv,
): Promise<string> {
  const child = new Child(name, command, environment);
  const code = await child.wait();
  if (code !== 0) throw child.failure(`exit code ${code}`);
  return child.output;
}

export async function stopAll(): Promise<void> {
  await Promise.all([...running].map((child) => child.stop()));
}

export function pinned(core: number, command: readonly string[]): string[] {
  return ['taskset', '-c', String(core), ...command];
}

const folders = new Set<string>();
export const SHARED_MEMORY = '/dev/shm';

/** A folder that removeTemporaryFolder(s) takes away. `parent`: where it lies, instead of where temporary files do. */
export function temporaryFolder(purpose: string, parent = process.env.ENTRESOL_BENCH_TMP ?? tmpdir()): string {
  const folder = mkdtempSync(join(parent, `entresol-bench-${purpose}-`));
  folders.add(folder);
  return folder;
}

/** Removes the folder, and what a pool in it has left in shared memory: files there carry the folder's name. */
export function removeTemporaryFolder(folder: string): void {
  folders.delete(folder);
  rmSync(folder, { recursive: true, force: true });
  for (const name of readdirSync(SHARED_MEMORY)) {
    if (name.includes(basename(folder))) rmSync(join(SHARED_MEMORY, name), { force: true });
  }
}

export function removeTemporaryFolders(): void {
  for (const folder of [...folders]) removeTemporaryFolder(folder);
}

/** A loopback port nobody listens on now. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      const port = typeof address === 'object' && address !== null ? address.port : 0;
      probe.close(() => resolve(port));
    });
  });
}

/**
 * The servers of a run: ours and its peers, each pinned to the server core, on free loopback ports, without persistence.
 *
 * Ours is `node bin/entresol.js serve`. ENTRESOL_BENCH_NODE_OPTIONS and ENTRESOL_BENCH_FLAGS add words to the node and to
 * the serve command line. ENTRESOL_BENCH_SERVER replaces the whole command ({port}, {memcachedPort}, {dramBytes}, {pool} are
 * filled in): that is how the harness itself is tried, with one Redis against another.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { memcachedStats, redisCommand } from './ask.js';
import { Child, freePort, pinned, removeTemporaryFolder, SHARED_MEMORY, temporaryFolder } from './child.js';
import { rootFolder } from './paths.js';

export type ServerName = 'entresol' | 'redis' | 'memcached';

export interface StoreSize {
  /** What the store may hold: --dram, --maxmemory, -m. */
  readonly dramBytes: number;
  /** A file tier below DRAM (ours only). */
  readonly capacityBytes?: number;
  /** Device whose time accesses to that tier are charged. */
  readonly emulate?: string;
  /** Writes survive a reboot, by this policy: durability durable, the peer's appendonly. */
  readonly appendfsync?: 'always' | 'everysec';
  /** The pool, and with it that tier, lies in shared memory: no disk takes part. */
  readonly inMemory?: boolean;
  /** Full store: drop old items (the peers' LRU policies) instead of refusing new ones. */
  readonly evict?: boolean;
  /** Redis's maxmemory-policy when it evicts. */
  readonly policy?: string;
  readonly nodeOptions?: readonly string[];
}

const READY_TIMEOUT_MS = 60_000;

export class Server {
  constructor(
    readonly name: ServerName,
    readonly process: Child,
    /** 0 = does not speak it. */
    readonly respPort: number,
    readonly memcachedPort: number,
    /** Its working folder, removed with it; for ours, the pool. */
    readonly folder: string,
  ) {}

  get pid(): number {
    return this.process.pid;
  }

  /** Stops the process while another one is measured, so that its timers cost that one nothing. */
  park(): void {
    this.process.signal('SIGSTOP');
  }

  resume(): void {
    this.process.signal('SIGCONT');
  }

  async stop(): Promise<void> {
    await this.process.stop();
    removeTemporaryFolder(this.folder);
  }
}

async function answers(server: Server): Promise<boolean> {
  try {
    if (server.respPort !== 0) await redisCommand(server.respPort, 'PING');
    if (server.memcachedPort !== 0) await memcachedStats(server.memcachedPort);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ECONNREFUSED') return false;
    throw error;
  }
}

async function whenReady(server: Server): Promise<Server> {
  const deadline = Date.now() + READY_TIMEOUT_MS;
  while (!(await answers(server))) {
    if (server.process.exited) throw server.process.failure('ended before it was ready');
    if (Date.now() > deadline) throw server.process.failure(`not ready after ${READY_TIMEOUT_MS} ms`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return server;
}

export async function startRedis(core: number, size: StoreSize): Promise<Server> {
  const port = await freePort();
  const command = ['redis-server', '--port', String(port), '--bind', '127.0.0.1', '--save', ''];
  if (size.appendfsync === undefined) command.push('--appendonly', 'no');
  else command.push('--appendonly', 'yes', '--appendfsync', size.appendfsync);
  const folder = temporaryFolder('redis');
  command.push('--dir', folder);
  if (size.evict === true)
    command.push('--maxmemory', String(size.dramBytes), '--maxmemory-policy', size.policy ?? 'allkeys-lru');
  return whenReady(new Server('redis', new Child('redis-server', pinned(core, command)), port, 0, folder));
}

export async function startMemcached(core: number, size: StoreSize): Promise<Server> {
  const port = await freePort();
  const command = ['memcached', '-l', '127.0.0.1', '-p', String(port), '-U', '0', '-t', '1', '-c', '2048'];
  command.push('-m', String(Math.floor(size.dramBytes / 2 ** 20)), '-u', process.getuid?.() === 0 ? 'root' : 'nobody');
  return whenReady(
    new Server('memcached', new Child('memcached', pinned(core, command)), 0, port, temporaryFolder('memcached')),
  );
}

function words(text: string | undefined): string[] {
  return text === undefined ? [] : text.split(/\s+/).filter((word) => word !== '');
}

/** Settings in the caller's environment would change what is measured. */
function ourEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('ENTRESOL_')));
}

function ourCommand(port: number, memcachedPort: number, pool: string, size: StoreSize): string[] {
  const template = process.env.ENTRESOL_BENCH_SERVER;
  if (template !== undefined) {
    const values: Record<string, string> = {
      port: String(port),
      memcachedPort: String(memcachedPort),
      dramBytes: String(size.dramBytes),
      pool,
    };
    return words(template).map((word) => word.replace(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole));
  }
  const program = join(rootFolder, 'bin', 'entresol.js');
  if (!existsSync(program)) throw new Error(`${program} is not there: run npm run build first`);
  const nodeOptions = [...words(process.env.ENTRESOL_BENCH_NODE_OPTIONS), ...(size.nodeOptions ?? [])];
  const command = [process.execPath, ...nodeOptions, program, 'serve'];
  command.push('--port', String(port), '--memcached-port', String(memcachedPort), '--workers', '1');
  command.push('--dram', String(size.dramBytes), '--pool', pool);
  if (size.capacityBytes === undefined) command.push('--tier', 'none');
  else command.push('--tier', 'file', '--capacity', String(size.capacityBytes));
  if (size.emulate !== undefined) command.push('--emulate', size.emulate);
  if (size.appendfsync !== undefined) command.push('--durability', 'durable', '--appendfsync', size.appendfsync);
  if (size.evict === true) command.push('--maxmemory-policy', 'allkeys-lru');
  return [...command, ...words(process.env.ENTRESOL_BENCH_FLAGS)];
}

export async function startOurs(core: number, size: StoreSize): Promise<Server> {
  const port = await freePort();
  const wantsMemcached =
    process.env.ENTRESOL_BENCH_SERVER === undefined || process.env.ENTRESOL_BENCH_SERVER.includes('{memcachedPort}');
  const memcachedPort = wantsMemcached ? await freePort() : 0;
  const pool = size.inMemory === true ? temporaryFolder('pool', SHARED_MEMORY) : temporaryFolder('pool');
  const command = ourCommand(port, memcachedPort, pool, size);
  const child = new Child('entresol', pinned(core, command), ourEnvironment());
  return whenReady(new Server('entresol', child, port, memcachedPort, pool));
}

/**
 * A server inside the test's own process (the built dist/, worker threads included), for tests that look behind the ports.
 */
import type { Settings } from '../../src/config/index.js';
import type { RunningServer } from '../../src/server/main.js';
import { makePool, removePool } from './pool.js';
import { freePorts } from './ports.js';

export interface InProcessServer {
  readonly server: RunningServer;
  readonly redisPort: number;
  readonly memcachedPort: number;
  /** close() and the temporary pool removed. */
  stop(): Promise<void>;
}

export async function startInProcess(overrides: Partial<Settings> = {}): Promise<InProcessServer> {
  const [redisPort, memcachedPort] = await freePorts(2);
  const pool = await makePool();
  const { startServer } = await fromDist<typeof import('../../src/server/main.js')>('server/main.js');
  const { settingsWith } = await fromDist<typeof import('../../src/config/index.js')>('config/index.js');
  const settings = settingsWith({
    port: redisPort,
    memcachedPort,
    pool,
    dram: 64 * 1024 * 1024,
    tier: 'none',
    loglevel: 'nothing',
    ...overrides,
  });
  const server = await startServer(settings).catch(async (error: unknown) => {
    await removePool(pool);
    throw error;
  });
  return {
    server,
    redisPort,
    memcachedPort,
    stop: async () => {
      await server.close();
      await removePool(pool);
    },
  };
}

/** The built module, with the source's types: threads and the addon need real files. */
async function fromDist<T>(path: string): Promise<T> {
  return (await import(new URL(`../../dist/${path}`, import.meta.url).href)) as T;
}

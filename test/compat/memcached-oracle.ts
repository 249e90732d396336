/**
 * Debian's memcached as the judge: started on a free port, stopped at the end. MEMCACHED names another binary.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { freePorts } from '../helpers/ports.js';
import { RawClient } from '../helpers/raw-client.js';
import type { Peer } from './memcached-run.js';

const BINARY = process.env.MEMCACHED ?? 'memcached';
const STARTS_WITHIN_MS = 5000;
const REPLY_WITHIN_MS = 5000;

/** '1.6.18', or null when there is none on this machine. */
export function memcachedVersion(): string | null {
  const { status, stdout } = spawnSync(BINARY, ['-V'], { encoding: 'utf8' });
  return status === 0 ? (/\d+\.\d+\.\d+\S*/.exec(stdout)?.[0] ?? null) : null;
}

export class Memcached {
  readonly port: number;
  readonly #child: ChildProcess;

  private constructor(port: number, child: ChildProcess) {
    this.port = port;
    this.#child = child;
  }

  static async start(args: readonly string[] = []): Promise<Memcached> {
    const [port] = await freePorts(1);
    const user = process.getuid?.() === 0 ? ['-u', 'root'] : [];
    const child = spawn(BINARY, ['-p', String(port), '-l', '127.0.0.1', '-U', '0', '-t', '1', ...user, ...args], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const server = new Memcached(port, child);
    const deadline = performance.now() + STARTS_WITHIN_MS;
    for (;;) {
      try {
        (await RawClient.connect(port)).destroy();
        return server;
      } catch (error) {
        if (performance.now() > deadline) {
          server.stop();
          throw error;
        }
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
  }

  stop(): void {
    this.#child.kill('SIGKILL');
  }
}

/** A memcached server at a port as a Peer; connects anew when the last step closed the connection. */
export class SocketPeer implements Peer {
  readonly #port: number;
  #client: RawClient | null = null;

  constructor(port: number) {
    this.#port = port;
  }

  async exchange(request: string): Promise<string> {
    if (this.#client === null || this.#client.isClosed) this.#client = await RawClient.connect(this.#port);
    const client = this.#client;
    client.write(request);
    try {
      await client.until(
        () => client.isClosed || client.text.endsWith('MN\r\n'),
        'the end of a reply',
        REPLY_WITHIN_MS,
      );
    } catch (error) {
      // Whatever it is waiting for, the next script begins anew.
      client.destroy();
      this.#client = null;
      throw error;
    }
    return (await client.read(client.receivedBytes)).toString('latin1');
  }

  close(): void {
    this.#client?.destroy();
  }
}

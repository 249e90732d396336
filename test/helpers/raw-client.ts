/**
 * A bare TCP client for tests that care about bytes and connections, not about a protocol.
 *
 * Collects what arrives; every wait has a time-out that says what had arrived.
 */
import { connect, type Socket } from 'node:net';

const WAIT_MS = 10_000;

export class RawClient {
  readonly socket: Socket;
  #received: Buffer[] = [];
  #receivedBytes = 0;
  /** The other side has closed, or the connection has failed. */
  isClosed = false;
  #changed: (() => void) | null = null;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk: Buffer) => {
      this.#received.push(chunk);
      this.#receivedBytes += chunk.length;
      this.#changed?.();
    });
    const onClosed = (): void => {
      this.isClosed = true;
      this.#changed?.();
    };
    socket.on('end', onClosed);
    socket.on('close', onClosed);
    // A reset is one of the ways a connection ends; tests look at isClosed.
    socket.on('error', onClosed);
  }

  static connect(to: number | string, options: { readonly allowHalfOpen?: boolean } = {}): Promise<RawClient> {
    const target = typeof to === 'number' ? { port: to, host: '127.0.0.1' } : { path: to };
    const socket = connect({ ...target, ...options, noDelay: true });
    return new Promise((resolve, reject) => {
      socket.once('error', reject);
      socket.once('connect', () => {
        socket.off('error', reject);
        resolve(new RawClient(socket));
      });
    });
  }

  /** Everything received and not yet taken, as latin1. */
  get text(): string {
    return Buffer.concat(this.#received).toString('latin1');
  }

  get receivedBytes(): number {
    return this.#receivedBytes;
  }

  write(data: string | Uint8Array): void {
    this.socket.write(typeof data === 'string' ? Buffer.from(data, 'latin1') : data);
  }

  /** Takes exactly `length` bytes, when they are there. */
  async read(length: number, waitMs = WAIT_MS): Promise<Buffer> {
    await this.until(() => this.#receivedBytes >= length, `${length} bytes`, waitMs);
    const parts: Buffer[] = [];
    let missing = length;
    while (missing > 0) {
      const [first] = this.#received;
      if (first.length <= missing) {
        parts.push(first);
        this.#received.shift();
      } else {
        parts.push(first.subarray(0, missing));
        this.#received[0] = first.subarray(missing);
      }
      missing -= parts[parts.length - 1].length;
    }
    this.#receivedBytes -= length;
    return Buffer.concat(parts);
  }

  /** Sends and takes the expected answer; throws when it differs. */
  async ask(request: string, answer: string): Promise<void> {
    this.write(request);
    const got = (await this.read(Buffer.byteLength(answer, 'latin1'))).toString('latin1');
    if (got !== answer) throw new Error(`expected ${JSON.stringify(answer)}, got ${JSON.stringify(got)}`);
  }

  /** Takes one line, without its CRLF. */
  async line(waitMs = WAIT_MS): Promise<string> {
    await this.until(() => this.text.includes('\r\n'), 'a line', waitMs);
    const length = this.text.indexOf('\r\n');
    const line = (await this.read(length)).toString('latin1');
    await this.read(2);
    return line;
  }

  /** Settles when the other side has closed. */
  async closed(waitMs = WAIT_MS): Promise<void> {
    await this.until(() => this.isClosed, 'the end of the connection', waitMs);
  }

  async until(condition: () => boolean, what: string, waitMs = WAIT_MS): Promise<void> {
    const deadline = performance.now() + waitMs;
    while (!condition()) {
      const leftMs = deadline - performance.now();
      if (leftMs <= 0 || (this.isClosed && !what.startsWith('the end'))) {
        const why = this.isClosed ? 'the connection ended' : `nothing more came within ${waitMs} ms`;
        throw new Error(`waited for ${what}: ${why}; received ${JSON.stringify(this.text.slice(0, 500))}`);
      }
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, leftMs);
        this.#changed = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  destroy(): void {
    this.socket.destroy();
  }
}

/** redis-server and memcached on a trace, through a socket: a window of reads, then what they missed is stored. */
import { connect, type Socket } from 'node:net';
import { KEY_BYTES, type Trace, valueBytes } from './traces.js';

/** Requests sent at once: a key that is asked for again in the same window, after its miss, counts as a hit. */
const WINDOW = 64;
const LONGEST_VALUE = 'v'.repeat(4096);

function keyName(key: number): string {
  return `k${String(key).padStart(KEY_BYTES - 1, '0')}`;
}

/** Sends a text and waits for an answer that ends the way that only whole ones do. */
class Conversation {
  #waiting: { readonly isWhole: (answer: string) => boolean; readonly resolve: (answer: string) => void } | null = null;
  #answer = '';
  #failure: Error | null = null;

  private constructor(readonly socket: Socket) {
    socket.setEncoding('latin1');
    socket.on('data', (text: string) => {
      this.#answer += text;
      if (this.#waiting?.isWhole(this.#answer) === true) this.#finish();
    });
    socket.on('error', (error) => {
      this.#failure = error;
    });
  }

  static open(port: number): Promise<Conversation> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1');
      socket.once('error', reject);
      socket.once('connect', () => resolve(new Conversation(socket)));
    });
  }

  ask(text: string, isWhole: (answer: string) => boolean): Promise<string> {
    if (this.#failure !== null) throw this.#failure;
    return new Promise((resolve) => {
      this.#waiting = { isWhole, resolve };
      this.socket.write(text, 'latin1');
    });
  }

  #finish(): void {
    const answer = this.#answer;
    const resolve = this.#waiting?.resolve;
    this.#answer = '';
    this.#waiting = null;
    resolve?.(answer);
  }
}

/** How a peer is asked which keys it has, without their values on the wire, and told to store. */
interface Wire {
  reads(keys: readonly number[]): string;
  /** True for each key that was there; null = the answer is not whole yet. */
  hits(answer: string, keys: readonly number[]): readonly boolean[] | null;
  store(key: number): string;
  readonly stored: string;
}

/** GETRANGE of one byte counts as a use, as GET does, and is empty for a key that is not there. */
export const redisWire: Wire = {
  reads: (keys) =>
    keys.map((key) => `*4\r\n$8\r\nGETRANGE\r\n$16\r\n${keyName(key)}\r\n$1\r\n0\r\n$1\r\n0\r\n`).join(''),
  hits: (answer, keys) => {
    // $1 v, or $0 and an empty line.
    const parts = answer.split('\r\n');
    if (parts.length !== keys.length * 2 + 1) return null;
    return keys.map((_, i) => parts[i * 2] === '$1');
  },
  store: (key) => {
    const length = valueBytes(key);
    return `*3\r\n$3\r\nSET\r\n$16\r\n${keyName(key)}\r\n$${length}\r\n${LONGEST_VALUE.slice(0, length)}\r\n`;
  },
  stored: '+OK\r\n',
};

/** mg with s answers the size of the value and counts as a use. */
export const memcachedWire: Wire = {
  reads: (keys) => keys.map((key) => `mg ${keyName(key)} s\r\n`).join(''),
  hits: (answer, keys) => {
    const parts = answer.split('\r\n');
    if (parts.length !== keys.length + 1) return null;
    return keys.map((_, i) => parts[i].startsWith('HD'));
  },
  store: (key) => {
    const length = valueBytes(key);
    return `set ${keyName(key)} 0 0 ${length}\r\n${LONGEST_VALUE.slice(0, length)}\r\n`;
  },
  stored: 'STORED\r\n',
};

/** Misses from `warm` on. */
export async function peerMisses(trace: Trace, wire: Wire, port: number): Promise<number> {
  const conversation = await Conversation.open(port);
  let misses = 0;
  for (let from = 0; from < trace.keys.length; from += WINDOW) {
    const keys = [...trace.keys.subarray(from, from + WINDOW)];
    const answer = await conversation.ask(wire.reads(keys), (text) => wire.hits(text, keys) !== null);
    const hits = wire.hits(answer, keys) ?? [];
    const missed = new Set<number>();
    keys.forEach((key, i) => {
      if (hits[i] || missed.has(key)) return;
      missed.add(key);
      if (from + i >= trace.warm) misses++;
    });
    if (missed.size === 0) continue;
    const wanted = wire.stored.repeat(missed.size);
    const stored = await conversation.ask(
      [...missed].map((key) => wire.store(key)).join(''),
      (text) => text.length >= wanted.length,
    );
    if (stored !== wanted) throw new Error(`a value was refused: ${stored.slice(0, 200)}`);
  }
  conversation.socket.destroy();
  return misses;
}

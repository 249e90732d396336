/**
 * MIGRATE from the main thread's side: connections to other servers, which speak RESP and get keys by RESTORE.
 *
 * Owns the connections; one that is not in use is kept for ten seconds, as in Redis. Invariant: a connection serves one MIGRATE at a time, and
 * is closed unless all its replies have been read, so that none is taken for another's.
 */
import { connect, type Socket } from 'node:net';
import type { MigrateAnswer, MigrateQuestion } from '../commands/control.js';
import { SharedWord } from '../layout/counters.js';

const KEPT_MS = 10_000;
const KEPT_MAX = 64;
const LINE_FEED = 0x0a;
const LINE_BYTES_MAX = 64 * 1024;
const UNREACHABLE = 'IOERR error or timeout connecting to the client';
/** Redis tells of a refused connection when it writes to it. */
const REFUSED = 'IOERR error or timeout writing to target instance';

/** A connection to another server, and the database that it has chosen there. */
class Target {
  db = 0;
  /** Nothing has been heard for so long as the question allows. */
  hasTimedOut = false;
  readonly socket: Socket;
  readonly #lines: string[] = [];
  #rest: Buffer = Buffer.alloc(0);
  #hasEnded = false;
  #wake: () => void = () => undefined;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (bytes: Buffer) => this.#receive(bytes));
    socket.on('error', () => this.#end());
    socket.on('close', () => this.#end());
    socket.on('timeout', () => {
      this.hasTimedOut = true;
      this.#end();
    });
  }

  /** Open, and nothing has come that nobody has asked for. */
  get isUsable(): boolean {
    return !this.#hasEnded && this.#lines.length === 0 && this.#rest.length === 0;
  }

  #end(): void {
    this.#hasEnded = true;
    this.#wake();
  }

  #receive(bytes: Buffer): void {
    let rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    for (let end = rest.indexOf(LINE_FEED); end >= 0; end = rest.indexOf(LINE_FEED)) {
      this.#lines.push(rest.toString('latin1', 0, end).replace(/\r$/, ''));
      rest = rest.subarray(end + 1);
    }
    this.#rest = rest;
    if (rest.length > LINE_BYTES_MAX) this.#hasEnded = true;
    this.#wake();
  }

  /** The next reply, which is a line; null = there will be none. */
  async line(): Promise<string | null> {
    for (;;) {
      const line = this.#lines.shift();
      if (line !== undefined) return line;
      if (this.#hasEnded) return null;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

export class Migrations {
  readonly #shared: Int32Array;
  /** Connections that nobody uses, by address. */
  readonly #kept = new Map<string, { readonly target: Target; readonly timer: NodeJS.Timeout }>();
  /** Those in use. */
  readonly #active = new Set<Socket>();
  #isClosed = false;

  constructor(shared: Int32Array) {
    this.#shared = shared;
  }

  async migrate(question: MigrateQuestion): Promise<MigrateAnswer> {
    const address = `${question.host}:${question.port}`;
    const kept = this.#take(address);
    if (kept !== null) {
      const answer = await this.#send(address, kept, question, true);
      // It had been closed by the other side, perhaps: nothing has been said then, and a new one is tried.
      if (answer !== null) return answer;
    }
    const target = this.#isClosed ? UNREACHABLE : await open(question);
    if (typeof target === 'string') return { acknowledged: [], error: target };
    return (await this.#send(address, target, question, false)) as MigrateAnswer;
  }

  /** Null: a connection that was kept has ended before the first reply. */
  async #send(
    address: string,
    target: Target,
    { auth, db, count, timeoutMs, requests }: MigrateQuestion,
    wasKept: boolean,
  ): Promise<MigrateAnswer | null> {
    const { socket } = target;
    const heads: Uint8Array[] = [];
    if (auth !== null) heads.push(requestOf([Buffer.from('AUTH'), ...auth]));
    if (target.db !== db) heads.push(requestOf([Buffer.from('SELECT'), Buffer.from(String(db))]));
    this.#active.add(socket);
    socket.once('close', () => this.#active.delete(socket));
    socket.setTimeout(timeoutMs);
    socket.write(Buffer.concat([...heads, requests]));
    const acknowledged: boolean[] = [];
    let refusal = '';
    let mayCount = true;
    for (let i = 0; i < heads.length + count; i++) {
      const reply = await target.line();
      if (reply === null) {
        const verb = socket.writableLength > 0 ? 'writing' : 'reading';
        socket.destroy();
        if (i === 0 && wasKept && !target.hasTimedOut) return null;
        return { acknowledged, error: `IOERR error or timeout ${verb} to target instance` };
      }
      const isRefused = reply.startsWith('-');
      // In another database than was meant, or in nobody's name, a RESTORE does not count.
      if (i < heads.length) mayCount &&= !isRefused;
      else acknowledged.push(mayCount && !isRefused);
      if (isRefused && refusal === '') refusal = reply.slice(1);
    }
    target.db = refusal === '' ? db : -1;
    this.#keep(address, target);
    return { acknowledged, error: refusal === '' ? '' : `ERR Target instance replied with error: ${refusal}` };
  }

  #take(address: string): Target | null {
    const kept = this.#kept.get(address);
    if (kept === undefined) return null;
    clearTimeout(kept.timer);
    this.#kept.delete(address);
    this.#publish();
    if (kept.target.isUsable) return kept.target;
    kept.target.socket.destroy();
    return null;
  }

  #keep(address: string, target: Target): void {
    this.#active.delete(target.socket);
    target.socket.setTimeout(0);
    if (this.#isClosed || !target.isUsable || this.#kept.size >= KEPT_MAX || this.#kept.has(address)) {
      target.socket.destroy();
      return;
    }
    const timer = setTimeout(() => this.#take(address)?.socket.destroy(), KEPT_MS);
    this.#kept.set(address, { target, timer });
    this.#publish();
  }

  #publish(): void {
    Atomics.store(this.#shared, SharedWord.migrationSockets, this.#kept.size);
  }

  /** The server stops: those under way end with an error. */
  close(): void {
    this.#isClosed = true;
    for (const address of [...this.#kept.keys()]) this.#take(address)?.socket.destroy();
    for (const socket of this.#active) socket.destroy();
  }
}

/** The error when it cannot be reached within the time. */
function open({ host, port, timeoutMs }: MigrateQuestion): Promise<Target | string> {
  return new Promise((resolve) => {
    if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) return resolve(UNREACHABLE);
    const socket = connect({ host, port: Number(port), noDelay: true });
    const timer = setTimeout(() => {
      socket.destroy();
      resolve(UNREACHABLE);
    }, timeoutMs);
    socket.once('error', (error: NodeJS.ErrnoException) => {
      clearTimeout(timer);
      resolve(error.syscall === 'connect' ? REFUSED : UNREACHABLE);
    });
    socket.once('connect', () => {
      clearTimeout(timer);
      resolve(new Target(socket));
    });
  });
}

function requestOf(words: readonly Uint8Array[]): Uint8Array {
  const parts: Uint8Array[] = [Buffer.from(`*${words.length}\r\n`)];
  for (const word of words) parts.push(Buffer.from(`$${word.length}\r\n`), word, Buffer.from('\r\n'));
  return Buffer.concat(parts);
}

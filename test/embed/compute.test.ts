/**
 * getOrCompute across real threads and processes: one computes however many ask, and the next one does when the computing one is killed,
 * terminated, stopped, or its seat in the pool is another's by then.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { open } from '../../src/embed/index.js';
import { removePool } from '../helpers/pool.js';

const COMPUTER = fileURLToPath(new URL('./computer.mjs', import.meta.url));

interface Question {
  readonly key: string;
  readonly callers: number;
  /** How long the computation takes; -1 = for ever. */
  readonly takesMs: number;
  readonly options?: { readonly computeTimeout?: number; readonly waitTimeout?: number };
}

interface Report {
  readonly ready?: true;
  readonly computing?: string;
  readonly answers?: readonly string[];
  readonly error?: string;
}

let path = '';
let log = '';
const users: User[] = [];

beforeEach(async () => {
  path = mkdtempSync(join(tmpdir(), 'entresol-compute-'));
  log = join(path, 'computed');
  writeFileSync(log, '');
  (await open({ path, dram: '32mb' })).close();
});
afterEach(async () => {
  await Promise.all(users.splice(0).map((user) => user.kill()));
  await removePool(path);
  rmSync(path, { recursive: true, force: true });
});

/** A thread or a process with the library. */
class User {
  readonly #worker: Worker | ChildProcess;
  readonly #reports: Report[] = [];
  #onReport: () => void = () => undefined;

  private constructor(kind: 'thread' | 'process', name: string) {
    const setup = { path, log, name };
    this.#worker =
      kind === 'thread' ? new Worker(COMPUTER, { workerData: setup }) : fork(COMPUTER, [JSON.stringify(setup)]);
    this.#worker.on('message', (report: Report) => {
      this.#reports.push(report);
      this.#onReport();
    });
    this.#worker.on('error', (error: Error) => {
      this.#reports.push({ error: error.message });
      this.#onReport();
    });
  }

  static async start(kind: 'thread' | 'process', name: string): Promise<User> {
    const user = new User(kind, name);
    users.push(user);
    await user.next();
    return user;
  }

  async next(): Promise<Report> {
    while (this.#reports.length === 0) {
      await new Promise<void>((resolve) => {
        this.#onReport = resolve;
      });
    }
    return this.#reports.shift()!;
  }

  post(question: Question): void {
    if (this.#worker instanceof Worker) this.#worker.postMessage(question);
    else this.#worker.send(question);
  }

  /** Asks and waits for the answers. */
  async ask(question: Question): Promise<readonly string[]> {
    this.post(question);
    for (;;) {
      const report = await this.next();
      if (report.error !== undefined) throw new Error(report.error);
      if (report.answers !== undefined) return report.answers;
    }
  }

  /** Asks, and returns when the computation has begun. */
  async begin(question: Question): Promise<void> {
    this.post(question);
    expect(await this.next()).toEqual({ computing: question.key });
  }

  signal(signal: NodeJS.Signals): void {
    process.kill((this.#worker as ChildProcess).pid!, signal);
  }

  /** SIGKILL or terminate(). */
  async kill(): Promise<void> {
    if (this.#worker instanceof Worker) {
      await this.#worker.terminate();
      return;
    }
    if (this.#worker.exitCode !== null || this.#worker.signalCode !== null) return;
    this.#worker.kill('SIGKILL');
    await once(this.#worker, 'exit');
  }
}

/** Who computed a key, in order. */
function computedBy(key: string): string[] {
  const lines = readFileSync(log, 'utf8').split('\n');
  return lines.filter((line) => line.endsWith(` ${key}`)).map((line) => line.split(' ')[0]);
}

/** Far above what any test may take: an answer before it was not the time limit's doing. */
const LONG = { computeTimeout: 600_000 };

describe('one computes, all get its value', () => {
  it.each([
    ['threads', ['thread', 'thread', 'thread', 'thread']],
    ['processes', ['process', 'process', 'process', 'process']],
    ['threads and processes', ['thread', 'process', 'thread', 'process']],
  ] as const)('%s', async (_, kinds) => {
    const all = await Promise.all(kinds.map((kind, i) => User.start(kind, `user${i}`)));
    for (let round = 0; round < 20; round++) {
      const key = `k${round}`;
      const answers = await Promise.all(all.map((user) => user.ask({ key, callers: 25, takesMs: 10, options: LONG })));
      const [by, ...others] = computedBy(key);
      expect(others, `of ${key}`).toEqual([]);
      expect(new Set(answers.flat())).toEqual(new Set([`by ${by}`]));
    }
  });
});

describe.each(['process', 'thread'] as const)('the computing %s dies', (kind) => {
  it('and one of those who wait computes', async () => {
    const first = await User.start(kind, 'first');
    const others = await Promise.all([User.start('process', 'p'), User.start('thread', 't')]);
    await first.begin({ key: 'k', callers: 5, takesMs: -1, options: LONG });
    const asked = others.map((user) => user.ask({ key: 'k', callers: 5, takesMs: 20, options: LONG }));
    // They wait: nobody has an answer before the death.
    const early = Promise.race(asked).then(() => 'answered');
    expect(await Promise.race([early, new Promise((resolve) => setTimeout(resolve, 100, 'waiting'))])).toBe('waiting');
    await first.kill();
    const answers = (await Promise.all(asked)).flat();
    const by = computedBy('k');
    expect(by).toHaveLength(2);
    expect(new Set(answers)).toEqual(new Set([`by ${by[1]}`]));
  });

  it('and its seat is taken by another: the lease is not', async () => {
    const first = await User.start(kind, 'first');
    await first.begin({ key: 'k', callers: 1, takesMs: -1, options: LONG });
    await first.kill();
    // Opening mends what the dead one left, which frees its seat; the next take the seats in order.
    (await open({ path })).close();
    await User.start('thread', 'heir');
    const last = await User.start('process', 'last');
    expect(await last.ask({ key: 'k', callers: 3, takesMs: 0, options: LONG })).toEqual(Array(3).fill('by last'));
  });
});

it('a computation that hangs loses its turn when its time is over', async () => {
  const first = await User.start('process', 'first');
  const second = await User.start('process', 'second');
  const options = { computeTimeout: 300 };
  await first.begin({ key: 'k', callers: 1, takesMs: 1000, options });
  first.signal('SIGSTOP');
  expect(await second.ask({ key: 'k', callers: 3, takesMs: 0, options })).toEqual(Array(3).fill('by second'));
  first.signal('SIGCONT');
});

it('a late computation does not end the turn of the one that took over', async () => {
  const late = await User.start('thread', 'late');
  const second = await User.start('thread', 'second');
  const third = await User.start('thread', 'third');
  await late.begin({ key: 'k', callers: 1, takesMs: 400, options: { computeTimeout: 100 } });
  // Takes over after 100 ms and is still at it when the late one ends.
  const lease = '\0entresol-lease:k';
  await second.begin({ key: 'k', callers: 1, takesMs: -1, options: LONG });
  expect((await late.next()).answers).toEqual(['by late']);
  const cache = await open({ path });
  expect(cache.get(lease)).toBeDefined();
  cache.close();
  expect(await third.ask({ key: 'k', callers: 1, takesMs: 0 })).toEqual(['by late']);
});

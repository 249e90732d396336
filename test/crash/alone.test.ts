/**
 * A participant alone in its pool, which takes lock words by plain stores, under random load: others come in its middle and lock as ever,
 * or it is killed and the next one mends what it held.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { Arena } from './arena.js';

const ROUNDS = Number(process.env.ENTRESOL_CRASH_ROUNDS ?? 5);
const WRITER = fileURLToPath(new URL('./writer.mjs', import.meta.url));
const LOOKS = 3;

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function ended(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => child.once('exit', (code, signal) => resolve(signal ?? `code ${code}`)));
}

describe.each([
  { name: 'in batches, as a server', single: false },
  { name: 'in single calls, as the embedded library', single: true },
])('alone, $name', ({ single }) => {
  const arena = new Arena({ dramMib: 96, capacityMib: 0, policy: 'noeviction' });
  afterAll(() => arena.close());

  /** Resolves when the writer has taken its first lock as the lone participant. */
  async function startWriter(round: number): Promise<ChildProcess> {
    const options = {
      handle: arena.handle,
      ackPath: arena.ackPath,
      large: single ? 0 : 1_500_000,
      atomicGroups: true,
      exclusive: true,
      single,
      id: 0,
      seed: round + 1,
      dieAt: 0,
      firstStamp: (round + 1) * 100_000,
    };
    const child = spawn(process.execPath, [WRITER, JSON.stringify(options)], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    await new Promise<void>((resolve, reject) => {
      child.on('message', (message) => message === 'lone' && resolve());
      child.once('exit', () => reject(new Error('the writer ended early')));
    });
    return child;
  }

  it(
    `${ROUNDS} newcomers meet it at work, and ${ROUNDS} find it dead`,
    async () => {
      for (let round = 0; round < ROUNDS * 2; round++) {
        arena.leave();
        const child = await startWriter(round);
        const end = ended(child);
        await pause(Math.random() * 30);
        if (round % 2 === 0) {
          arena.join();
          for (let look = 0; look < LOOKS; look++) {
            arena.check();
            await pause(5);
          }
          child.kill('SIGKILL');
        } else {
          child.kill('SIGKILL');
          await end;
          arena.join();
        }
        expect(await end).toBe('SIGKILL');
        expect(await arena.collect(1), 'seats taken').toBe(1);
        arena.check();
        arena.checkWriter(0);
      }
    },
    60_000 + ROUNDS * 6000,
  );
});

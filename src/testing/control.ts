/**
 * The control plane of a test server whose worker runs in the main thread: it begins when the worker serves already, and whoever asks it
 * something sooner waits for so long.
 *
 * Nothing that it prints goes through the main thread, which never returns to its event loop. Invariant: the worker is told to stop when the
 * parent's pipe ends, however that ends.
 */
import { writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { workerData } from 'node:worker_threads';
import { logFor } from '../server/log.js';
import type { ControlData } from '../server/serve-here.js';
import { Supervisor } from '../server/supervisor.js';
import { UsersOnDemand } from '../server/users-on-demand.js';

const STDIN = 0;
const STDERR = 2;

function print(line: string): void {
  writeSync(STDERR, `${line}\n`);
}

async function main({ settings, store, blocks, worker }: ControlData): Promise<void> {
  const log = logFor(settings, print);
  const users = await UsersOnDemand.open(settings, log);
  const supervisor = new Supervisor({
    settings,
    store,
    users,
    log,
    blocks,
    prepared: [],
    effects: null,
    hosted: worker,
  });
  await supervisor.start();
  const parent = new Socket({ fd: STDIN, readable: true, writable: false });
  const parentIsGone = new Promise<void>((resolve) => {
    parent.on('end', resolve).on('error', resolve).on('close', resolve).resume();
  });
  await Promise.race([parentIsGone, supervisor.done]);
  await supervisor.close();
}

/** A fault here ends the process: nobody else would tell the worker to stop. */
export function runControl(): void {
  main(workerData as ControlData).catch((error: unknown) => {
    print(`entresol/testing: ${error instanceof Error ? error.stack : String(error)}`);
    process.kill(process.pid, 'SIGKILL');
  });
}

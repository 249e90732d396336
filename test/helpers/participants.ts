/**
 * Several participants of one small pool in this thread, each with its own executor and connections: what workers are to each
 * other, without their threads. Messages arrive when a test says so (`turn`).
 *
 * Invariant: everything is detached, checked and removed at the end of the test file.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import type { Client } from '../../src/commands/clients/client.js';
import type { Control } from '../../src/commands/control.js';
import type { ClientHost } from '../../src/commands/messaging/host.js';
import type { CommandTable } from '../../src/commands/table.js';
import { attach, detach } from '../../src/store/attach.js';
import { checkInvariants } from '../../src/store/invariants.js';
import type { Keyspace } from '../../src/store/keyspace.js';
import { openStore } from '../../src/store/open.js';
import { Session } from './session.js';

const MIB = 1024 * 1024;
const closers: (() => void)[] = [];

afterAll(() => {
  for (const close of closers.splice(0)) close();
});

/** As much of a control plane as commands on keys ask for: there are others, nobody is paused, nothing is slow. */
const CONTROL: Partial<Control> = {
  workerCount: 2,
  isWritePaused: false,
  isSlow: () => false,
  recordLatency: () => undefined,
};

/** One participant: its connections and what they have got. */
export class Participant implements ClientHost {
  readonly session: Session;
  readonly wakeFd = -1;
  monotonicMs = 0;
  readonly #clients: Client[] = [];

  constructor(
    readonly keyspace: Keyspace,
    table?: CommandTable,
  ) {
    this.session = new Session(keyspace, CONTROL as Control, table);
    this.session.executor.hub.attach(this);
  }

  connect(): Client {
    const client = this.session.connect();
    this.#clients.push(client);
    return client;
  }

  /** Sends a request for a client; returns its reply ('' while it is blocked). */
  send(client: Client, request: string | readonly string[]): string {
    this.session.client = client;
    return this.session.send(request);
  }

  /** What the client has got beside its replies, since the last call. */
  got(client: Client): string {
    return this.session.got(client.conn);
  }

  /** A turn of the loop, as far as messages go, `ms` later. */
  turn(ms = 0): void {
    this.monotonicMs += ms;
    const { hub } = this.session.executor;
    this.keyspace.refreshClock();
    this.keyspace.enterBatch();
    if (hub.isDue(this.monotonicMs)) hub.turn(this.monotonicMs);
    hub.endTurn();
    this.keyspace.leaveBatch();
  }

  close(client: Client): void {
    this.#clients.splice(this.#clients.indexOf(client), 1);
    this.session.driver.closed(client);
  }

  // ---- ClientHost

  clientWithId(id: number): Client | null {
    return this.#clients.find((client) => client.id === id) ?? null;
  }

  outputQueued(): number {
    return 0;
  }

  resume(conn: number, clientId: number, write: (() => void) | null): void {
    const client = this.clientWithId(clientId);
    if (client === null || client.conn !== conn) return;
    client.suspended = false;
    if (write !== null) this.session.write(conn, write);
  }

  closeClient(conn: number): void {
    const client = this.#clients.find((candidate) => candidate.conn === conn);
    if (client !== undefined) this.close(client);
  }

  limitsChanged(): void {}
}

/** `count` participants of a fresh pool. */
export function openParticipants(count: number, table?: CommandTable): Participant[] {
  const pool = mkdtempSync(join(tmpdir(), 'entresol-test-'));
  const handle = openStore({ pool, dramBytes: 32 * MIB, capacityBytes: 0, policy: 'noeviction', shards: 32 });
  const participants = Array.from({ length: count }, () => new Participant(attach(handle), table));
  closers.push(() => {
    checkInvariants(participants[0].keyspace);
    for (const { keyspace } of participants) detach(keyspace);
    rmSync(handle.dramPath, { force: true });
    rmSync(pool, { recursive: true, force: true });
  });
  return participants;
}

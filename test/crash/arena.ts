/**
 * What the crash tests share: a pool, the file of intents and acknowledgements, and the look at everything after each death.
 *
 * The writers run from dist/; build before.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Participant, ParticipantState } from '../../src/layout/superblock.js';
import { attach, detach } from '../../src/store/attach.js';
import { checkInvariants } from '../../src/store/invariants.js';
import type { Keyspace } from '../../src/store/keyspace.js';
import { openStore, type StoreHandle } from '../../src/store/open.js';
import type { PolicyName } from '../../src/store/policy.js';
import { collectDead } from '../../src/store/repair.js';
import { checkWriter } from './acknowledged.js';
import { OWN_KEYS } from './values.mjs';

export const WRITERS = 8;
const MIB = 1024 * 1024;

export interface ArenaOptions {
  readonly dramMib: number;
  readonly capacityMib: number;
  readonly policy: PolicyName;
  /** A pool that survives reboots; `medium`: what its capacity file holds at the start, after one. */
  readonly isWarm?: boolean;
  readonly medium?: Buffer;
  /** Intents and acknowledgements of before. */
  readonly acknowledged?: Buffer;
}

export class Arena {
  readonly handle: StoreHandle;
  keyspace: Keyspace;
  readonly ackPath: string;
  readonly mayLose: boolean;
  readonly #pool: string;

  constructor(options: ArenaOptions) {
    this.#pool = mkdtempSync(join(tmpdir(), 'entresol-crash-'));
    this.mayLose = options.policy !== 'noeviction' || options.isWarm === true;
    if (options.medium !== undefined) writeFileSync(join(this.#pool, 'capacity.entresol'), options.medium);
    this.handle = openStore({
      pool: this.#pool,
      dramBytes: options.dramMib * MIB,
      capacityBytes: options.capacityMib * MIB,
      policy: options.policy,
      shards: 32,
      ...(options.isWarm === true ? { tier: 'file', durability: 'warm' } : {}),
    });
    this.keyspace = attach(this.handle);
    this.ackPath = join(this.#pool, 'acknowledged');
    writeFileSync(this.ackPath, options.acknowledged ?? Buffer.alloc(WRITERS * OWN_KEYS * 8));
  }

  /** Leaves the pool to the others, until `join`. */
  leave(): void {
    detach(this.keyspace);
  }

  join(): void {
    this.keyspace = attach(this.handle);
  }

  /** Finishes the repair of whoever has died (a survivor may be at it as well). Returns how many seats are still taken. */
  async collect(living: number): Promise<number> {
    const { keyspace } = this;
    const { memory } = keyspace;
    let taken = 0;
    for (let tries = 0; tries < 100; tries++) {
      keyspace.refreshClock();
      keyspace.enterBatch();
      collectDead(keyspace);
      keyspace.leaveBatch();
      taken = 0;
      for (let p = 0; p < Participant.MAX; p++) {
        if (memory.ctl[memory.participantWord(p) + Participant.STATE_WORD] !== ParticipantState.FREE) taken++;
      }
      if (taken === living) break;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    return taken;
  }

  /** Stops the others for a moment and looks at everything. Returns the number of items. */
  check(): number {
    const { keyspace } = this;
    keyspace.enterBatch();
    keyspace.closeGate();
    try {
      return checkInvariants(keyspace);
    } finally {
      keyspace.openGate();
      keyspace.leaveBatch();
    }
  }

  /** See acknowledged.ts. */
  checkWriter(id: number): void {
    checkWriter(this.keyspace, this.ackPath, id, this.mayLose);
  }

  close(): void {
    detach(this.keyspace);
    rmSync(this.handle.dramPath, { force: true });
    rmSync(this.#pool, { recursive: true, force: true });
  }
}

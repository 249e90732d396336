/**
 * What the crash tests share: a pool, the file of intents and acknowledgements, and the look at everything after each death.
 *
 * The writers run from dist/; build before.
 */
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Bytes } from '../../src/layout/bytes.js';
import { Participant, ParticipantState } from '../../src/layout/superblock.js';
import { attach, detach } from '../../src/store/attach.js';
import { HASHES } from '../../src/store/collections/collection.js';
import { checkInvariants } from '../../src/store/invariants.js';
import type { Keyspace } from '../../src/store/keyspace.js';
import { openStore, type StoreHandle } from '../../src/store/open.js';
import type { PolicyName } from '../../src/store/policy.js';
import { collectDead } from '../../src/store/repair.js';
import { FIRST_FIELD, OWN_KEYS, verify } from './values.mjs';

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

  /**
   * Every acknowledged write of a (dead) writer is there; the write that was under way when it died is there whole or not at all, and
   * counts as acknowledged from now on.
   */
  checkWriter(id: number): void {
    const { keyspace } = this;
    const file = readFileSync(this.ackPath);
    const notes = new Int32Array(file.buffer, file.byteOffset, file.length / 4);
    keyspace.refreshClock();
    keyspace.enterBatch();
    for (let key = 0; key < OWN_KEYS; key++) {
      const at = (id * OWN_KEYS + key) * 2;
      const name = `own:${id}:${key}`;
      const stamp = key < FIRST_FIELD ? this.#stampOf(name) : this.#stampOfField(`fields:${id}`, name);
      const [intended, acknowledged] = [notes[at], notes[at + 1]];
      const settled = stamp === 0 ? Math.min(acknowledged, 0) : stamp;
      const isRight =
        stamp === 0 ? acknowledged <= 0 || intended < 0 || this.mayLose : stamp === acknowledged || stamp === intended;
      if (!isRight) throw new Error(`${name}: stamp ${stamp}, acknowledged ${acknowledged}, intended ${intended}`);
      notes[at] = settled;
      notes[at + 1] = settled;
    }
    keyspace.leaveBatch();
    // Only this writer's part: the others go on writing theirs.
    const fd = openSync(this.ackPath, 'r+');
    writeSync(fd, file, id * OWN_KEYS * 8, OWN_KEYS * 8, id * OWN_KEYS * 8);
    closeSync(fd);
  }

  #stampOf(name: string): number {
    const { keyspace } = this;
    const bytes = Bytes.from(name);
    const hash = keyspace.hash(0, bytes, 0, bytes.length);
    keyspace.lock(hash);
    let stamp = 0;
    let problem = '';
    if (keyspace.find(hash, 0, bytes, 0, bytes.length)) {
      problem = verify(name, keyspace.value.u8, keyspace.valueOffset, keyspace.valueLength);
      stamp = keyspace.value.view.getInt32(keyspace.valueOffset, true);
    }
    keyspace.unlock(hash);
    if (problem !== '') throw new Error(problem);
    return stamp;
  }

  #stampOfField(key: string, field: string): number {
    const { keyspace } = this;
    const bytes = Bytes.from(key);
    const fieldBytes = Bytes.from(field);
    const hash = keyspace.hash(0, bytes, 0, bytes.length);
    const fields = keyspace.collections[0];
    keyspace.lock(hash);
    let stamp = 0;
    let problem = '';
    fields.open(HASHES, hash, 0, bytes, 0, bytes.length);
    if (fields.seekKey(fieldBytes, 0, fieldBytes.length)) {
      fields.load();
      problem = verify(field, fields.value.u8, fields.valueOffset, fields.valueLength);
      stamp = fields.value.view.getInt32(fields.valueOffset, true);
    }
    keyspace.unlock(hash);
    if (problem !== '') throw new Error(problem);
    return stamp;
  }

  close(): void {
    detach(this.keyspace);
    rmSync(this.handle.dramPath, { force: true });
    rmSync(this.#pool, { recursive: true, force: true });
  }
}

/**
 * A small warm pool in this process, and power cuts: a capacity file as some medium would have it, opened without the DRAM tier.
 *
 * The medium has what was persistent at the last flush, and of what changed since, any 4 KiB blocks. Invariant: `close` leaves no file.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CheckpointRestorer } from '../../src/commands/persistence/checkpoint-restorer.js';
import { CheckpointWriter } from '../../src/rdb/checkpoint-writer.js';
import { attach, detach } from '../../src/store/attach.js';
import { checkInvariants } from '../../src/store/invariants.js';
import type { Keyspace } from '../../src/store/keyspace.js';
import { openStore, type StoreHandle } from '../../src/store/open.js';
import { Persister } from '../../src/store/persister.js';
import { Rebuild } from '../../src/store/rebuild.js';
import { WriteBehind } from '../../src/store/write-behind.js';
import { Session } from './session.js';

const MIB = 1024 * 1024;
const BLOCK = 4096;

export interface WarmOptions {
  readonly dramMib: number;
  readonly capacityMib: number;
}

export class WarmStore {
  readonly pool: string;
  readonly handle: StoreHandle;
  readonly keyspace: Keyspace;
  readonly session: Session;
  readonly rebuild: Rebuild;
  readonly #persister: Persister;
  readonly #writeBehind: WriteBehind;
  #flushed: Buffer;

  /** `medium`: what the capacity file holds at the start; absent = a new pool. */
  constructor(options: WarmOptions, medium?: Buffer) {
    this.pool = mkdtempSync(join(tmpdir(), 'entresol-test-'));
    if (medium !== undefined) writeFileSync(join(this.pool, 'capacity.entresol'), medium);
    try {
      this.handle = openStore({
        growth: 1,
        pool: this.pool,
        dramBytes: options.dramMib * MIB,
        capacityBytes: options.capacityMib * MIB,
        policy: 'allkeys-lru',
        shards: 32,
        tier: 'file',
        durability: 'warm',
      });
    } catch (error) {
      rmSync(this.pool, { recursive: true, force: true });
      throw error;
    }
    this.keyspace = attach(this.handle);
    this.session = new Session(this.keyspace);
    this.rebuild = new Rebuild(this.keyspace, new CheckpointRestorer(this.keyspace, this.session.settings));
    this.#persister = new Persister(this.keyspace);
    this.#writeBehind = new WriteBehind(this.keyspace, new CheckpointWriter(this.keyspace));
    this.#flushed = this.#file();
  }

  /** What the durability thread does each half second. */
  flush(): void {
    this.#persister.run();
    this.noteFlushed();
  }

  /** A command has flushed everything. */
  noteFlushed(): void {
    this.#flushed = this.#file();
  }

  /** One step of the rebuild; true when there is more. */
  rebuildStep(): boolean {
    this.keyspace.enterBatch();
    this.keyspace.refreshClock();
    const hasMore = this.rebuild.step();
    this.keyspace.leaveBatch();
    return hasMore;
  }

  rebuildAll(): void {
    while (this.rebuildStep());
  }

  /** Some steps of the write-behind; its clock does not matter. */
  writeBehind(steps: number): void {
    for (let i = 0; i < steps; i++) {
      if (i % 40 === 0) this.#writeBehind.beginLast();
      this.keyspace.enterBatch();
      this.keyspace.refreshClock();
      this.#writeBehind.step();
      this.keyspace.leaveBatch();
    }
  }

  background(): void {
    this.keyspace.enterBatch();
    this.keyspace.background(1000);
    this.keyspace.leaveBatch();
  }

  /** The capacity file after a power cut now. `isNew(block)`: whether a block that changed since the last flush has reached the medium. */
  powerCut(isNew: (block: number) => boolean): Buffer {
    const medium = this.#file();
    // What lies behind the tier is written with fdatasync: a SWAPDB does not wait for the flush.
    const tierBytes = this.keyspace.memory.capacityPages * MIB;
    for (let at = 0, block = 0; at < tierBytes; at += BLOCK, block++) {
      if (!isNew(block)) this.#flushed.copy(medium, at, at, at + BLOCK);
    }
    return medium;
  }

  field(name: string): number {
    const line = this.session.send('INFO persistence').match(new RegExp(`${name}:(\\d+)`));
    if (line === null) throw new Error(`INFO has no ${name}`);
    return Number(line[1]);
  }

  check(): void {
    checkInvariants(this.keyspace);
  }

  close(): void {
    detach(this.keyspace);
    rmSync(this.handle.dramPath, { force: true });
    rmSync(this.pool, { recursive: true, force: true });
  }

  #file(): Buffer {
    // Mapped pages are read as they are: the file is what the mapping shows.
    return readFileSync(this.handle.capacityPath!);
  }
}

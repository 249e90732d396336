/**
 * Writing a checkpoint: the states of all keys, while others go on changing them.
 *
 * The walk is BGSAVE's (rdb/snapshot): each key whole, once, under its lock. That is no moment of the store, and needs to be none: the log
 * that follows begins before the walk, and each state says by its version which of the log's effects are in it already (recovery).
 * Invariant: a draft is whole and on the medium when it has been written. It gets its name from whoever writes the log: see LogWriter.
 */
import { closeSync, fsyncSync, ftruncateSync, openSync, rmSync, writeSync } from 'node:fs';
import { Group, Piece, Segment } from '../../layout/effects.js';
import { Super } from '../../layout/superblock.js';
import { Snapshot, type SnapshotTarget } from '../../rdb/snapshot.js';
import { RdbValueEncoder } from '../../rdb/value-encoder.js';
import { writeState } from '../../store/effects/effects.js';
import { RecordBuffer } from '../../store/effects/record-buffer.js';
import { pieceBytes } from '../../store/effects/ring.js';
import type { Keyspace } from '../../store/keyspace.js';
import { GroupBuffer, writeHeader } from './group-buffer.js';
import { draftPath } from './log-files.js';

const GROUP_BYTES = 1 << 20;
/** Seat of its parts. */
const NOBODY = -1;

/** Writes checkpoint `number` of `databases` databases as a draft. Returns its length. */
export function writeCheckpoint(
  keyspace: Keyspace,
  databases: number,
  folder: string,
  number: number,
  isStopped: () => boolean,
): number {
  const draft = draftPath(folder, number);
  const fd = openSync(draft, 'w', 0o600);
  let bytes: number;
  try {
    const target = new CheckpointTarget(fd, number);
    new Snapshot(keyspace, target, isStopped).write(databases);
    bytes = target.end(Atomics.load(keyspace.memory.ctl, Super.EFFECTS_NUMBER_WORD));
    ftruncateSync(fd, bytes);
    fsyncSync(fd);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  } finally {
    closeSync(fd);
  }
  return bytes;
}

export class CheckpointTarget implements SnapshotTarget {
  readonly values = { onPause: null as (() => void) | null };

  readonly #fd: number;
  readonly #number: number;
  readonly #encoder = new RdbValueEncoder();
  readonly #states = new RecordBuffer();
  readonly #group = new GroupBuffer();
  #db = 0;
  #timeMs = 0;
  #position = 0;

  constructor(fd: number, number: number) {
    this.#fd = fd;
    this.#number = number;
    this.#group.clear();
    writeHeader(this.#group.buffer.bytes, number);
    this.#write(Segment.HEADER_BYTES);
  }

  database(db: number): void {
    this.#flush();
    this.#db = db;
  }

  key(keyspace: Keyspace): void {
    // What is alive at a later moment is alive at this one: so one time serves for many keys.
    if (this.#states.length === 0) this.#timeMs = keyspace.nowMs;
    this.#encoder.onPause = this.values.onPause;
    writeState(keyspace, this.#encoder, this.#states, this.#db);
  }

  rewind(): void {
    // Nothing of the key has been kept: see key.
  }

  drain(): void {
    if (this.#states.length >= GROUP_BYTES) this.#flush();
  }

  #flush(): void {
    const payload = this.#states.length;
    if (payload === 0) return;
    const group = this.#group;
    group.clear();
    group.part(NOBODY, pieceBytes(payload));
    const { buffer } = group;
    buffer.int32(payload);
    buffer.int32(0);
    buffer.int32(this.#timeMs | 0);
    buffer.int32(Math.floor(this.#timeMs / 0x1_0000_0000) | Piece.FIRST | Piece.LAST);
    buffer.raw(this.#states.bytes, 0, payload);
    while (buffer.length % Group.ALIGN !== 0) buffer.byte(0);
    group.seal(Group.MAGIC, 0, this.#position, this.#number);
    this.#write(group.length);
    this.#states.clear();
  }

  /** The last group; returns the file's length. */
  end(cut: number): number {
    this.#flush();
    this.#group.clear();
    this.#group.seal(Group.END_MAGIC, cut, this.#position, this.#number);
    this.#write(this.#group.length);
    return this.#position;
  }

  #write(length: number): void {
    const { u8 } = this.#group.buffer.bytes;
    for (let at = 0; at < length; ) at += writeSync(this.#fd, u8, at, length - at, this.#position + at);
    this.#position += length;
  }
}

/**
 * Writes the effect log: groups into segments, made persistent by the policy; says when writes must be refused, and when a checkpoint is due.
 *
 * Runs in a thread of its own (log-thread). Invariants: what EFFECTS_PERSISTENT_WORD says is on the medium, with all before it; the next
 * segment is reserved when the one in use is half full, and without one writes are refused while what is left still takes those under way.
 */
import { Doubt, Group, Segment } from '../../layout/effects.js';
import { Super } from '../../layout/superblock.js';
import { addon } from '../../native/addon.js';
import type { Keyspace } from '../../store/keyspace.js';
import { Collector } from './collector.js';
import { GroupBuffer, writeHeader } from './group-buffer.js';
import { nameCheckpoint, segmentPath, syncFolder } from './log-files.js';
import { createLogFile, type LogFile } from './log-medium.js';

export type Policy = 'always' | 'everysec' | 'no';

/** A segment has room for so much, or for the one group that is larger. */
const SEGMENT_BYTES = 16 << 20;
const SYNC_PERIOD_MS = 1000;
/** Between two attempts to write or to reserve what has failed. */
const RETRY_MS = 200;
const EIO = 5;

export interface WriterHost {
  log(level: 'notice' | 'warning', message: string): void;
  /** The state of all keys is to be written down; segments before `number` are not needed then. */
  checkpoint(number: number): void;
  /** Checkpoint `number` has its name: what it replaces may go. That takes its time, and is not the log's. */
  named(number: number): void;
}

export class LogWriter {
  policy: Policy = 'everysec';
  /** A checkpoint is due when the log has grown by so many bytes, and so many percent of the last checkpoint; 0 percent: never. */
  minBytes = 64 << 20;
  percentage = 100;

  readonly #ctl: Int32Array;
  readonly #folder: string;
  readonly #host: WriterHost;
  readonly #collector: Collector;
  readonly #group = new GroupBuffer();
  /** The group has not been written, or not wholly. */
  #isLeft = false;
  #cut = 0;
  #file: LogFile;
  #next: LogFile | null = null;
  #number: number;
  #position = Segment.HEADER_BYTES;
  /** Up to where the segment is persistent. */
  #safe = 0;
  /** Records below this number are in the file. */
  #written: number;
  #nextSyncMs = 0;
  #retryAtMs = 0;
  #failure: NodeJS.ErrnoException | null = null;
  /** Bytes of the log since the last checkpoint was begun; of that checkpoint. */
  #grown = 0;
  #checkpointBytes: number;
  #isCheckpointing = false;
  #checkpointAtMs = 0;
  /** Number of the checkpoint that has been written and has no name yet; 0 = there is none. */
  #draft = 0;
  #checkpointNumber = 0;

  constructor(keyspace: Keyspace, folder: string, number: number, checkpointBytes: number, host: WriterHost) {
    this.#ctl = keyspace.memory.ctl;
    this.#folder = folder;
    this.#host = host;
    this.#collector = new Collector(keyspace);
    this.#number = number;
    this.#checkpointBytes = checkpointBytes;
    this.#written = Atomics.load(this.#ctl, Super.EFFECTS_NUMBER_WORD);
    this.#file = this.#create(number);
    this.#begin();
  }

  get number(): number {
    return this.#number;
  }

  // ---- a turn

  /** Takes what there is, writes it, makes it persistent when that is due. True = there was something. */
  turn(): boolean {
    const nowMs = addon.monotonicMs();
    if (nowMs < this.#retryAtMs) return false;
    let hasWorked = false;
    try {
      const isUpToDate = !this.#isLeft;
      if (isUpToDate) {
        this.#cut = this.#collector.collect(this.#group);
        this.#isLeft = !this.#group.isEmpty;
      }
      if (this.#isLeft) {
        this.#write();
        hasWorked = true;
      }
      this.#written = this.#cut;
      const namesDraft = this.#draft !== 0 && isUpToDate;
      if (namesDraft || this.#policyIsDue(nowMs)) this.#persist(nowMs);
      if (namesDraft) this.#nameDraft();
      this.#reserveNext();
      this.#recover();
    } catch (error) {
      this.#fail(error as NodeJS.ErrnoException, nowMs);
    }
    this.#look(nowMs);
    return hasWorked;
  }

  get hasMore(): boolean {
    return this.#isLeft || this.#collector.hasMore();
  }

  #policyIsDue(nowMs: number): boolean {
    if (this.#position === this.#safe && Atomics.load(this.#ctl, Super.EFFECTS_PERSISTENT_WORD) === this.#written)
      return false;
    if (this.policy === 'always') return true;
    return this.policy === 'everysec' && nowMs >= this.#nextSyncMs;
  }

  #write(): void {
    const group = this.#group;
    if (this.#position + group.length > this.#file.bytes) this.#rotate(group.length);
    group.seal(Group.MAGIC, this.#cut, this.#safe, this.#number);
    this.#file.write(group.buffer.bytes, group.length, this.#position);
    this.#position += group.length;
    this.#grown += group.length;
    this.#isLeft = false;
  }

  #persist(nowMs: number): void {
    this.#nextSyncMs = nowMs + SYNC_PERIOD_MS;
    if (this.#position !== this.#safe) this.#file.persist();
    this.#safe = this.#position;
    this.#publish();
  }

  /** While the log is in doubt, nothing becomes persistent by it: the checkpoint that ends the doubt does it. */
  #publish(): void {
    if (Atomics.load(this.#ctl, Super.EFFECTS_DOUBT_WORD) !== Doubt.NO) return;
    Atomics.store(this.#ctl, Super.EFFECTS_PERSISTENT_WORD, this.#written);
    this.#collector.wakeWaiting();
  }

  // ---- segments

  #create(number: number, bytes = SEGMENT_BYTES): LogFile {
    const file = createLogFile(segmentPath(this.#folder, number), bytes);
    syncFolder(this.#folder);
    return file;
  }

  /** The header of the segment in use. */
  #begin(): void {
    const header = new GroupBuffer();
    header.clear();
    writeHeader(header.buffer.bytes, this.#number);
    this.#file.write(header.buffer.bytes, Segment.HEADER_BYTES, 0);
    this.#position = Segment.HEADER_BYTES;
    this.#safe = 0;
  }

  /** Goes on in the next segment, in which a group of so many bytes has room. What the last one holds is persistent first. */
  #rotate(groupBytes: number): void {
    const needed = Segment.HEADER_BYTES + groupBytes;
    if (this.#next !== null && this.#next.bytes < needed) {
      this.#next.close();
      this.#next = null;
    }
    this.#next ??= this.#create(this.#number + 1, Math.max(SEGMENT_BYTES, needed));
    if (this.#position !== this.#safe) this.#file.persist();
    this.#file.close();
    this.#file = this.#next;
    this.#next = null;
    this.#number++;
    this.#begin();
  }

  #reserveNext(): void {
    if (this.#next !== null || this.#position < this.#file.bytes / 2) return;
    this.#next = this.#create(this.#number + 1);
  }

  // ---- failures

  #fail(error: NodeJS.ErrnoException, nowMs: number): void {
    this.#retryAtMs = nowMs + RETRY_MS;
    const isFull = error.code === 'ENOSPC' || error.code === 'EDQUOT';
    // Nobody knows what of the pages that could not be written is on the medium: the state of all keys is written anew.
    if (!isFull) Atomics.store(this.#ctl, Super.EFFECTS_DOUBT_WORD, Doubt.YES);
    const errno = Math.abs(error.errno ?? EIO) || EIO;
    Atomics.store(this.#ctl, Super.EFFECTS_REFUSED_WORD, errno);
    if (this.#failure === null)
      this.#host.log('warning', `the effect log cannot be written, writes are refused: ${error.message}`);
    this.#failure = error;
  }

  /** Nothing has failed in this turn. */
  #recover(): void {
    if (this.#failure === null) return;
    this.#failure = null;
    Atomics.store(this.#ctl, Super.EFFECTS_REFUSED_WORD, 0);
    this.#host.log('notice', 'the effect log is written again');
  }

  // ---- checkpoints

  #look(nowMs: number): void {
    if (this.#isCheckpointing || this.#failure !== null || nowMs < this.#checkpointAtMs) return;
    const isInDoubt = Atomics.load(this.#ctl, Super.EFFECTS_DOUBT_WORD) !== Doubt.NO;
    const limit = Math.max(this.minBytes, (this.#checkpointBytes * this.percentage) / 100);
    if (isInDoubt || (this.percentage > 0 && this.#grown >= limit)) this.beginCheckpoint();
  }

  /** From here on the log goes into a segment of its own, which the checkpoint is for. */
  beginCheckpoint(): void {
    try {
      // Whatever is lost from here on is in doubt again.
      Atomics.compareExchange(this.#ctl, Super.EFFECTS_DOUBT_WORD, Doubt.YES, Doubt.BEING_SETTLED);
      if (this.#isLeft) this.#write();
      this.#cut = this.#collector.collect(this.#group);
      this.#isLeft = !this.#group.isEmpty;
      if (this.#isLeft) this.#write();
      this.#written = this.#cut;
      this.#rotate(0);
    } catch (error) {
      this.#fail(error as NodeJS.ErrnoException, addon.monotonicMs());
      return;
    }
    this.#isCheckpointing = true;
    this.#checkpointNumber = this.#number;
    this.#grown = 0;
    this.#host.checkpoint(this.#number);
  }

  /** The checkpoint that was asked for has been written, so many bytes; -1 = that has failed. */
  endCheckpoint(bytes: number): void {
    if (bytes < 0) return this.#giveUpCheckpoint();
    this.#checkpointBytes = bytes;
    this.#draft = this.#checkpointNumber;
  }

  /** The state of all keys is to be written anew, in a while. */
  #giveUpCheckpoint(): void {
    this.#isCheckpointing = false;
    this.#checkpointAtMs = addon.monotonicMs() + SYNC_PERIOD_MS;
    Atomics.compareExchange(this.#ctl, Super.EFFECTS_DOUBT_WORD, Doubt.BEING_SETTLED, Doubt.YES);
  }

  /**
   * All that was appended while the checkpoint was written is on the medium. Read with a log that ends before, it would show of a transaction
   * the keys that the log has told of before as they were then, and others as the walk found them.
   */
  #nameDraft(): void {
    const number = this.#draft;
    this.#draft = 0;
    try {
      nameCheckpoint(this.#folder, number);
    } catch (error) {
      this.#host.log('warning', `a checkpoint gets no name: ${(error as Error).message}`);
      return this.#giveUpCheckpoint();
    }
    this.#isCheckpointing = false;
    Atomics.compareExchange(this.#ctl, Super.EFFECTS_DOUBT_WORD, Doubt.BEING_SETTLED, Doubt.NO);
    this.#publish();
    this.#host.named(number);
  }

  /** Everything that has been appended is on the medium. Throws when it cannot be written. */
  close(): void {
    while (this.hasMore) {
      if (!this.#isLeft) this.#cut = this.#collector.collect(this.#group);
      if (!this.#group.isEmpty) this.#write();
      this.#isLeft = false;
    }
    this.#file.persist();
    if (this.#draft !== 0) this.#nameDraft();
    this.#file.close();
    this.#next?.close();
  }
}

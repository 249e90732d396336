/**
 * Messages between participants: each one's mailbox, and the queue of what a participant sends to itself.
 *
 * Owns the rings (layout/mailbox) and, on the sender's side, what a full ring did not take. A message to oneself has the same
 * form, in ordinary memory. Invariants: nobody waits for a receiver; what one participant sends to another arrives in
 * order; what does not fit into BACKLOG_BYTES_MAX is dropped, and the receiver knows that something was (`takeLost`).
 */
import { Bytes } from '../layout/bytes.js';
import { Page, pageOffset } from '../layout/location.js';
import { Mailbox, Message, MessageKind, recordBytes } from '../layout/mailbox.js';
import { PageKind, Participant, ParticipantState } from '../layout/superblock.js';
import { addon } from '../native/addon.js';
import { copyBytes } from '../native/copy.js';
import type { Memory } from './memory.js';
import { NO_PAGE, type PagePool } from './page-pool.js';

/** Longer messages go in parts, so that one does not take the whole ring. */
const PART_BYTES = 64 * 1024;
/** What a sender keeps for a receiver whose ring is full. */
const BACKLOG_BYTES_MAX = 64 * 1024 * 1024;
const LOCAL_BYTES = 64 * 1024;
/** A local queue that has grown beyond this is given back when it is empty. */
const LOCAL_BYTES_KEPT = 1024 * 1024;

export type Receive = (record: Bytes, offset: number) => void;

interface Backlog {
  readonly records: Uint8Array[];
  bytes: number;
}

export class Mailboxes {
  /** Bytes in the queue to oneself. */
  localBytes = 0;

  readonly #memory: Memory;
  readonly #pool: PagePool;
  #local = Bytes.allocate(LOCAL_BYTES);
  /** Own ring, while there is one. */
  #ring: Bytes | null = null;
  #ringOffset = 0;
  readonly #backlogs = new Map<number, Backlog>();
  /** Pieces of long messages, by sender. */
  readonly #parts = new Map<number, Uint8Array[]>();
  /** A full backlog drops a receiver's messages until it is empty again. */
  readonly #dropping = new Set<number>();
  /** Whose messages wait, and these. */
  #heldFor = NOBODY;
  #held: Uint8Array[] = [];

  constructor(memory: Memory, pool: PagePool) {
    this.#memory = memory;
    this.#pool = pool;
  }

  /** Gives this participant a mailbox, if it has none; false = no memory. `wakeFd` -1: it is not woken, it looks. */
  open(wakeFd: number): boolean {
    if (this.#ring !== null) return true;
    const memory = this.#memory;
    const page = this.#pool.takeDram(PageKind.MAILBOX, 0, 0);
    if (page === NO_PAGE) return false;
    const ring = memory.arenas[page >>> Page.ARENA_SHIFT];
    const offset = pageOffset(page);
    ring.i32.fill(0, offset >>> 2, (offset + Mailbox.RING_OFFSET) >>> 2);
    this.#ring = ring;
    this.#ringOffset = offset;
    const at = memory.participantWord(memory.self);
    memory.ctl[at + Participant.WAKE_FD_WORD] = wakeFd;
    Atomics.store(memory.ctl, at + Participant.MAILBOX_WORD, page);
    return true;
  }

  /** What waits in ordinary memory: for oneself, for full rings, pieces of long messages. */
  get heapBytes(): number {
    let bytes = this.#local.length;
    for (const backlog of this.#backlogs.values()) bytes += backlog.bytes;
    for (const parts of this.#parts.values()) bytes += parts.length * PART_BYTES;
    return bytes;
  }

  // ---- sending

  /**
   * Sends to participant `to`, oneself included. False when it receives nothing, or was not keeping up (it will know). Allocates
   * nothing while the ring has room and the message is short.
   */
  send(
    to: number,
    kind: MessageKind,
    a: number,
    b: number,
    bytesA: Bytes,
    offsetA: number,
    lengthA: number,
    bytesB: Bytes,
    offsetB: number,
    lengthB: number,
  ): boolean {
    const total = recordBytes(lengthA, lengthB);
    const { self } = this.#memory;
    if (to === this.#heldFor && kind !== MessageKind.SERVED) {
      const record = Bytes.allocate(total);
      writeRecord(record, 0, total, kind, self, a, b, bytesA, offsetA, lengthA, bytesB, offsetB, lengthB);
      this.#held.push(record.u8);
      return true;
    }
    if (to === self) {
      const at = this.#reserveLocal(total);
      writeRecord(this.#local, at, total, kind, self, a, b, bytesA, offsetA, lengthA, bytesB, offsetB, lengthB);
      this.localBytes += total;
      return true;
    }
    if (total <= PART_BYTES && !this.#backlogs.has(to)) {
      const place = this.#lockRing(to, total);
      if (place >= 0) {
        const { ring, start } = this.#target;
        const at = start + Mailbox.RING_OFFSET + place;
        writeRecord(ring!, at, total, kind, self, a, b, bytesA, offsetA, lengthA, bytesB, offsetB, lengthB);
        this.#publish(to, place + total);
        return true;
      }
      if (place === CLOSED) return false;
    }
    const record = Bytes.allocate(total);
    writeRecord(record, 0, total, kind, self, a, b, bytesA, offsetA, lengthA, bytesB, offsetB, lengthB);
    return this.#queue(to, record.u8);
  }

  /** What is sent to this participant waits until `endHold`, but for a served client's reply: that goes before what it has brought about. */
  hold(to: number): void {
    this.#heldFor = to;
  }

  endHold(): void {
    const to = this.#heldFor;
    this.#heldFor = NOBODY;
    if (this.#held.length === 0) return;
    for (const record of this.#held) {
      if (to === this.#memory.self) {
        const at = this.#reserveLocal(record.length);
        this.#local.u8.set(record, at);
        this.localBytes += record.length;
      } else {
        this.#queue(to, record);
      }
    }
    this.#held = [];
  }

  /** True while something waits for room in others' rings: call `flush` again soon. */
  get hasBacklog(): boolean {
    return this.#backlogs.size !== 0;
  }

  /** Moves what waits into the rings, as far as they have room. */
  flush(): void {
    for (const [to, backlog] of this.#backlogs) {
      while (backlog.records.length > 0) {
        const record = backlog.records[0];
        const place = this.#lockRing(to, record.length);
        if (place === FULL) break;
        if (place === CLOSED) {
          backlog.records.length = 0;
          break;
        }
        const { ring, start } = this.#target;
        ring!.u8.set(record, start + Mailbox.RING_OFFSET + place);
        this.#publish(to, place + record.length);
        backlog.records.shift();
        backlog.bytes -= record.length;
      }
      if (backlog.records.length > 0) continue;
      this.#backlogs.delete(to);
      this.#dropping.delete(to);
    }
  }

  #queue(to: number, record: Uint8Array): boolean {
    if (this.#memory.ctl[this.#memory.participantWord(to) + Participant.MAILBOX_WORD] === NO_PAGE) return false;
    let backlog = this.#backlogs.get(to);
    if (backlog === undefined) {
      backlog = { records: [], bytes: 0 };
      this.#backlogs.set(to, backlog);
    }
    if (this.#dropping.has(to) || backlog.bytes + record.length > BACKLOG_BYTES_MAX) {
      // In the middle of a gap nothing is sent: the receiver closes those who miss something.
      this.#dropping.add(to);
      this.#markLost(to);
      return false;
    }
    if (record.length <= PART_BYTES) backlog.records.push(record);
    else for (let from = 0; from < record.length; from += PART_BYTES) backlog.records.push(this.#part(record, from));
    backlog.bytes += record.length;
    this.flush();
    return true;
  }

  #part(record: Uint8Array, from: number): Uint8Array {
    const length = Math.min(PART_BYTES, record.length - from);
    const total = recordBytes(length, 0);
    const part = Bytes.allocate(total);
    part.u8.set(record.subarray(from, from + length), Message.HEADER_BYTES);
    const { i32 } = part;
    i32[Message.BYTES_WORD] = total;
    const more = from + length < record.length ? Message.MORE : 0;
    i32[Message.KIND_WORD] = MessageKind.PART | (this.#memory.self << 8) | more;
    i32[Message.A_WORD] = from;
    i32[Message.LENGTH_A_WORD] = length;
    return part.u8;
  }

  /** Where #lockRing has found room. */
  readonly #target: { ring: Bytes | null; start: number } = { ring: null, start: 0 };

  /** Locks the receiver's mailbox and finds room for a record: its place in the ring; FULL or CLOSED (not locked then). */
  #lockRing(to: number, total: number): number {
    const memory = this.#memory;
    const { ctl } = memory;
    const at = memory.participantWord(to);
    if (ctl[at + Participant.MAILBOX_WORD] === NO_PAGE) return CLOSED;
    memory.lock(at + Participant.MAILBOX_LOCK_WORD);
    const page = Atomics.load(ctl, at + Participant.MAILBOX_WORD);
    if (page === NO_PAGE) {
      memory.unlock(at + Participant.MAILBOX_LOCK_WORD);
      return CLOSED;
    }
    const ring = memory.arenas[page >>> Page.ARENA_SHIFT];
    const start = pageOffset(page);
    if (this.#target.ring !== ring) this.#target.ring = ring;
    this.#target.start = start;
    const place = findRoom(ring, start, total);
    if (place < 0) memory.unlock(at + Participant.MAILBOX_LOCK_WORD);
    return place;
  }

  /** The record is whole: lets the receiver see it, and wakes it if it sleeps. */
  #publish(to: number, tail: number): void {
    const memory = this.#memory;
    const { ring, start } = this.#target;
    const words = ring!.i32;
    const at = memory.participantWord(to);
    Atomics.store(words, (start >>> 2) + Mailbox.TAIL_WORD, tail);
    memory.unlock(at + Participant.MAILBOX_LOCK_WORD);
    if (Atomics.exchange(words, (start >>> 2) + Mailbox.SLEEPING_WORD, 0) === 1) this.#wake(at);
  }

  /** Only in the receiver's own process: a receiver in another one looks into its mailbox with its next background slice. */
  #wake(at: number): void {
    const { ctl } = this.#memory;
    const fd = ctl[at + Participant.WAKE_FD_WORD];
    if (fd < 0 || ctl[at + Participant.PID_WORD] !== process.pid) return;
    try {
      addon.wake(fd);
    } catch (error) {
      // It has closed its end: it is ending.
      if ((error as NodeJS.ErrnoException).code !== 'EBADF') throw error;
    }
  }

  #markLost(to: number): void {
    const memory = this.#memory;
    const at = memory.participantWord(to);
    memory.lock(at + Participant.MAILBOX_LOCK_WORD);
    const page = Atomics.load(memory.ctl, at + Participant.MAILBOX_WORD);
    if (page !== NO_PAGE) {
      const words = memory.arenas[page >>> Page.ARENA_SHIFT].i32;
      Atomics.store(words, (pageOffset(page) >>> 2) + Mailbox.LOST_WORD, 1);
    }
    memory.unlock(at + Participant.MAILBOX_LOCK_WORD);
  }

  #reserveLocal(total: number): number {
    const at = this.localBytes;
    if (at + total > this.#local.length) {
      const grown = Bytes.allocate(Math.max(this.#local.length * 2, at + total));
      grown.u8.set(this.#local.u8.subarray(0, at));
      this.#local = grown;
    }
    return at;
  }

  // ---- receiving

  /** True when the ring holds something. */
  get hasMail(): boolean {
    const ring = this.#ring;
    if (ring === null) return false;
    const first = this.#ringOffset >>> 2;
    return Atomics.load(ring.i32, first + Mailbox.TAIL_WORD) !== ring.i32[first + Mailbox.HEAD_WORD];
  }

  /** Before the pump sleeps: false when there is mail, so do not. Senders wake this participant from here on. */
  sleep(): boolean {
    const ring = this.#ring;
    if (ring === null) return true;
    Atomics.store(ring.i32, (this.#ringOffset >>> 2) + Mailbox.SLEEPING_WORD, 1);
    return !this.hasMail;
  }

  awake(): void {
    const ring = this.#ring;
    if (ring !== null) Atomics.store(ring.i32, (this.#ringOffset >>> 2) + Mailbox.SLEEPING_WORD, 0);
  }

  /** Once after messages were dropped. */
  takeLost(): boolean {
    const ring = this.#ring;
    if (ring === null || ring.i32[(this.#ringOffset >>> 2) + Mailbox.LOST_WORD] === 0) return false;
    return Atomics.exchange(ring.i32, (this.#ringOffset >>> 2) + Mailbox.LOST_WORD, 0) === 1;
  }

  /** Gives each message of the ring to `receive`, which may send. */
  drainRing(receive: Receive): void {
    const ring = this.#ring;
    if (ring === null) return;
    const first = this.#ringOffset >>> 2;
    const start = this.#ringOffset + Mailbox.RING_OFFSET;
    const tail = Atomics.load(ring.i32, first + Mailbox.TAIL_WORD);
    let head = ring.i32[first + Mailbox.HEAD_WORD];
    while (head !== tail) {
      if (head === Mailbox.RING_BYTES) {
        head = 0;
        Atomics.store(ring.i32, first + Mailbox.HEAD_WORD, 0);
        continue;
      }
      const at = start + head;
      const kind = ring.i32[(at >>> 2) + Message.KIND_WORD] & 0xff;
      if (kind === MessageKind.PART) this.#collectPart(ring, at, receive);
      else if (kind !== MessageKind.PADDING) receive(ring, at);
      head += ring.i32[(at >>> 2) + Message.BYTES_WORD];
      Atomics.store(ring.i32, first + Mailbox.HEAD_WORD, head);
    }
  }

  /** The same for the queue to oneself, what is sent meanwhile included. */
  drainLocal(receive: Receive): void {
    for (let at = 0; at < this.localBytes; ) {
      // The queue may move when it grows.
      const local = this.#local;
      const bytes = local.i32[(at >>> 2) + Message.BYTES_WORD];
      receive(local, at);
      at += bytes;
    }
    this.localBytes = 0;
    if (this.#local.length > LOCAL_BYTES_KEPT) this.#local = Bytes.allocate(LOCAL_BYTES);
  }

  #collectPart(ring: Bytes, at: number, receive: Receive): void {
    const word = ring.i32[(at >>> 2) + Message.KIND_WORD];
    const sender = (word >>> 8) & 0xff;
    const length = ring.i32[(at >>> 2) + Message.LENGTH_A_WORD];
    let parts = this.#parts.get(sender);
    // A sender that died in the middle has left a beginning without an end; the next in its seat starts anew.
    if (parts === undefined || ring.i32[(at >>> 2) + Message.A_WORD] === 0) {
      parts = [];
      this.#parts.set(sender, parts);
    }
    parts.push(ring.u8.slice(at + Message.HEADER_BYTES, at + Message.HEADER_BYTES + length));
    if ((word & Message.MORE) !== 0) return;
    this.#parts.delete(sender);
    receive(Bytes.from(Buffer.concat(parts)), 0);
  }

  /** A participant is gone: half a message of it will not become whole. */
  forget(participant: number): void {
    this.#parts.delete(participant);
    this.#backlogs.delete(participant);
    this.#dropping.delete(participant);
  }
}

const NOBODY = -1;
const FULL = -1;
const CLOSED = -2;

/** Room for `total` bytes in the locked ring; one record's alignment stays free, so that a full ring is not an empty one. */
function findRoom(ring: Bytes, start: number, total: number): number {
  const words = ring.i32;
  const first = start >>> 2;
  const head = Atomics.load(words, first + Mailbox.HEAD_WORD);
  const tail = words[first + Mailbox.TAIL_WORD];
  if (tail < head) return tail + total < head ? tail : FULL;
  if (tail + total <= Mailbox.RING_BYTES && (tail + total < Mailbox.RING_BYTES || head > 0)) return tail;
  if (total >= head) return FULL;
  if (tail < Mailbox.RING_BYTES) {
    const at = (start + Mailbox.RING_OFFSET + tail) >>> 2;
    words[at + Message.BYTES_WORD] = Mailbox.RING_BYTES - tail;
    words[at + Message.KIND_WORD] = MessageKind.PADDING;
  }
  return 0;
}

function writeRecord(
  to: Bytes,
  at: number,
  total: number,
  kind: number,
  sender: number,
  a: number,
  b: number,
  bytesA: Bytes,
  offsetA: number,
  lengthA: number,
  bytesB: Bytes,
  offsetB: number,
  lengthB: number,
): void {
  const words = to.i32;
  const first = at >>> 2;
  words[first + Message.BYTES_WORD] = total;
  words[first + Message.KIND_WORD] = kind | (sender << 8);
  words[first + Message.A_WORD] = a;
  words[first + Message.B_WORD] = b;
  words[first + Message.LENGTH_A_WORD] = lengthA;
  words[first + Message.LENGTH_B_WORD] = lengthB;
  copyBytes(to, at + Message.HEADER_BYTES, bytesA, offsetA, lengthA);
  copyBytes(to, at + Message.HEADER_BYTES + lengthA, bytesB, offsetB, lengthB);
}

/**
 * Closes a participant's mailbox, before its page is freed: its own, or that of a dead one whose byte lock the caller holds. Messages
 * in it are lost with their receiver.
 */
export function closeMailbox(memory: Memory, participant: number): void {
  const { ctl } = memory;
  const at = memory.participantWord(participant);
  if (ctl[at + Participant.MAILBOX_WORD] === NO_PAGE) return;
  memory.lock(at + Participant.MAILBOX_LOCK_WORD);
  Atomics.store(ctl, at + Participant.MAILBOX_WORD, NO_PAGE);
  memory.unlock(at + Participant.MAILBOX_LOCK_WORD);
}

/** Releases the mailbox locks that a dead participant held: what it wrote without moving a tail counts for nothing. */
export function releaseMailboxLocks(memory: Memory, dead: number): void {
  for (let p = 0; p < Participant.MAX; p++) {
    const at = memory.participantWord(p);
    if (memory.ctl[at + Participant.STATE_WORD] === ParticipantState.FREE) continue;
    const word = at + Participant.MAILBOX_LOCK_WORD;
    if ((Atomics.load(memory.ctl, word) & 0xff) === dead + 1) memory.releaseFor(word);
  }
}

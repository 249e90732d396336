/**
 * Output: the write position in a worker's reply buffer and the send records that say which connection gets which bytes.
 * Both protocols' writers are thin layers on it.
 *
 * Use: `begin(conn)`, any number of writes, `end()`; once a turn the loop hands `sendCount` records to the pump and calls
 * `restart()`. A writer calls `reserve(n)`, stores at most n bytes from the returned offset on and sets `position`.
 * Invariant: bytes [0, position) are covered, in order, by the records before `sendCount` and the one that is open; when
 * the buffer or the records run out, everything so far goes to the socket through the flush callback and both start at 0.
 */
import type { Bytes } from '../layout/bytes.js';
import { Send } from '../native/addon.js';
import { copyBytes, copyLater, settleCopies } from '../native/copy.js';

/** `Send.arena` words that are not arenas (see addon.ts). */
export const enum SendKind {
  OUTPUT = -1,
  DATAGRAM = -2,
}

/** The largest `reserve`; headers, numbers and error lines fit. Longer text goes through `range` or `text`. */
export const MAX_RESERVE_BYTES = 4096;

export class Output {
  readonly bytes: Bytes;
  readonly u8: Uint8Array;
  /** Next free byte of the buffer. */
  position = 0;
  /** Complete send records so far. */
  sendCount = 0;
  /** All bytes ever written, muted ones excepted (statistics); exact after `end`. */
  totalBytes = 0;
  /** What `range` is given stays as it is until the copies are settled (native/copy): one native call copies many. */
  defersCopies = false;

  private readonly sends: Int32Array;
  private readonly sendCapacity: number;
  private readonly flushSends: (sendCount: number) => void;
  private readonly limit: number;
  private readonly sendsRegions: boolean;
  private conn = -1;
  private kind: SendKind = SendKind.OUTPUT;
  private recordStart = 0;
  private muted = false;
  private muteStart = 0;
  private held: Uint8Array[] | null = null;
  private holdStart = 0;

  /**
   * `flush(sendCount)` must consume that many records of `sends` and the buffer before it returns. `sendsRegions` false: what
   * is written is for this thread (the replies of a script's commands), so mapped ranges are copied.
   */
  constructor(bytes: Bytes, sends: Int32Array, flush: (sendCount: number) => void, sendsRegions = true) {
    if (bytes.length < 2 * MAX_RESERVE_BYTES)
      throw new RangeError(`output buffer of ${bytes.length} bytes is too small`);
    this.bytes = bytes;
    this.u8 = bytes.u8;
    this.limit = bytes.length;
    this.sendsRegions = sendsRegions && bytes.arena >= 0;
    this.sends = sends;
    this.sendCapacity = Math.floor(sends.length / Send.WORDS);
    this.flushSends = flush;
  }

  /** Following writes go to this connection. */
  begin(conn: number): void {
    this.conn = conn;
    this.kind = SendKind.OUTPUT;
    this.recordStart = this.position;
  }

  /** Following writes, up to `end`, are one datagram to this address slot; at most MAX_RESERVE_BYTES in all. */
  beginDatagram(slot: number): void {
    this.reserve(MAX_RESERVE_BYTES);
    this.conn = slot;
    this.kind = SendKind.DATAGRAM;
    this.recordStart = this.position;
  }

  end(): void {
    this.closeRecord();
    this.conn = -1;
  }

  /** Between `end` and `begin`: what is written next, up to `length` bytes and one record, stays in one piece for `repeat`. */
  keepTogether(length: number): void {
    if (this.position + length > this.limit || this.sendCount + 1 >= this.sendCapacity) this.flushAll();
  }

  /** Between `end` and `begin`: sends a range of the buffer, written since the last flush, to another connection as well. */
  repeat(conn: number, offset: number, length: number): void {
    if (this.sendCount === this.sendCapacity) {
      // The bytes stay where they are: only the records are handed over.
      this.handOver();
      this.sendCount = 0;
    }
    this.conn = conn;
    this.record(SendKind.OUTPUT, offset, length, 0);
    this.conn = -1;
    this.totalBytes += length;
  }

  /** The connection that is written to; -1 between `end` and `begin`. */
  get connection(): number {
    return this.conn;
  }

  /** What is written is a datagram. */
  get isDatagram(): boolean {
    return this.conn >= 0 && this.kind === SendKind.DATAGRAM;
  }

  /** Room for `length` (<= MAX_RESERVE_BYTES) contiguous bytes; returns the offset to write at (the new `position`). */
  reserve(length: number): number {
    if (this.position + length > this.limit) this.makeRoom();
    return this.position;
  }

  /** Bytes written so far, those of the open record included: the difference of two readings is what was written between. */
  get written(): number {
    return this.totalBytes + this.position - this.recordStart;
  }

  /** Free bytes before the next flush. */
  get room(): number {
    return this.limit - this.position;
  }

  /** Copies a byte range of any length. */
  range(from: Bytes, offset: number, length: number): void {
    if (this.muted) return;
    while (length > this.limit - this.position) {
      const part = this.limit - this.position;
      copyBytes(this.bytes, this.position, from, offset, part);
      this.position += part;
      offset += part;
      length -= part;
      this.makeRoom();
    }
    if (this.defersCopies && this.held === null) copyLater(this.bytes, this.position, from, offset, length);
    else copyBytes(this.bytes, this.position, from, offset, length);
    this.position += length;
  }

  /** Copies a Uint8Array of any length (slow path: TypedArray.set). */
  array(from: Uint8Array): void {
    let offset = 0;
    while (offset < from.length) {
      if (this.position === this.limit) this.makeRoom();
      const part = Math.min(from.length - offset, this.limit - this.position);
      this.u8.set(from.subarray(offset, offset + part), this.position);
      this.position += part;
      offset += part;
    }
  }

  /** Writes a byte string: one byte per UTF-16 unit, which must be below 256 (ASCII, or latin1-decoded client bytes). */
  ascii(text: string): void {
    const length = text.length;
    const u8 = this.u8;
    for (let i = 0; i < length; ) {
      if (this.position === this.limit) this.makeRoom();
      let p = this.position;
      const stop = Math.min(length, i + (this.limit - p));
      while (i < stop) u8[p++] = text.charCodeAt(i++);
      this.position = p;
    }
  }

  /**
   * Sends a mapped range without copying it, after everything written so far. `token` comes back in the pump's SENT
   * event. Returns false when the bytes were copied or dropped instead (muted, held, datagram, ordinary memory): then no
   * SENT event will follow and the caller gives its pin back now.
   */
  region(from: Bytes, offset: number, length: number, token: number): boolean {
    if (this.muted) return false;
    if (this.held !== null || this.kind === SendKind.DATAGRAM || from.arena < 0 || !this.sendsRegions) {
      this.range(from, offset, length);
      return false;
    }
    this.closeRecord();
    if (this.sendCount === this.sendCapacity) this.flushAll();
    this.record(from.arena, offset, length, token);
    this.totalBytes += length;
    return true;
  }

  /** From here to `unmute` everything written is thrown away (CLIENT REPLY OFF, quiet commands). */
  mute(): void {
    this.muted = true;
    this.muteStart = this.position;
  }

  unmute(): void {
    this.position = this.muteStart;
    this.muted = false;
  }

  /** For replies that must go out although the client has switched replies off. */
  unmuteIfMuted(): void {
    if (this.muted) this.unmute();
  }

  get isMuted(): boolean {
    return this.muted;
  }

  /** From here to `release` nothing is sent, so that a header that depends on the content can go before it. Not nested. */
  hold(): void {
    this.held = [];
    this.holdStart = this.position;
  }

  /** Ends `hold`: puts the byte string `header` before what was written since. */
  release(header: string): void {
    const held = this.held;
    if (held === null) throw new Error('Output.release without hold');
    const length = header.length;
    if (held.length === 0 && this.position + length <= this.limit) {
      this.u8.copyWithin(this.holdStart + length, this.holdStart, this.position);
      for (let i = 0; i < length; i++) this.u8[this.holdStart + i] = header.charCodeAt(i);
      this.position += length;
      this.held = null;
      return;
    }
    this.stash(held);
    this.held = null;
    this.ascii(header);
    for (const part of held) this.array(part);
  }

  /** Ends `hold` and hands over what was written since; returns its bytes. */
  takeHeld(into: Uint8Array[]): number {
    const held = this.held;
    if (held === null) throw new Error('Output.takeHeld without hold');
    this.stash(held);
    this.held = null;
    let bytes = 0;
    for (const part of held) {
      if (part.length === 0) continue;
      into.push(part);
      bytes += part.length;
    }
    return bytes;
  }

  /** Ends `hold` and throws away what was written since. */
  discardHeld(): void {
    this.held = null;
    this.position = this.holdStart;
  }

  /** After the pump has consumed the records: the buffer is free again. */
  restart(): void {
    this.position = 0;
    this.recordStart = 0;
    this.sendCount = 0;
  }

  private makeRoom(): void {
    if (this.muted) {
      this.position = this.muteStart;
      if (this.limit - this.muteStart >= MAX_RESERVE_BYTES) return;
      this.flushAll();
      this.muteStart = 0;
    } else if (this.held !== null) {
      this.stash(this.held);
      if (this.limit - this.holdStart >= MAX_RESERVE_BYTES) return;
      this.flushAll();
      this.holdStart = 0;
    } else {
      this.flushAll();
    }
  }

  private stash(held: Uint8Array[]): void {
    held.push(this.u8.slice(this.holdStart, this.position));
    this.position = this.holdStart;
  }

  private flushAll(): void {
    if (this.conn >= 0) this.closeRecord();
    this.handOver();
    this.restart();
  }

  private handOver(): void {
    settleCopies();
    this.flushSends(this.sendCount);
  }

  private closeRecord(): void {
    const length = this.position - this.recordStart;
    if (length > 0) {
      this.record(this.kind, this.recordStart, length, 0);
      this.totalBytes += length;
      this.recordStart = this.position;
      if (this.sendCount === this.sendCapacity) {
        this.handOver();
        this.restart();
      }
    }
  }

  private record(arena: number, offset: number, length: number, token: number): void {
    const word = this.sendCount++ * Send.WORDS;
    this.sends[word + Send.conn] = this.conn;
    this.sends[word + Send.arena] = arena;
    this.sends[word + Send.offset] = offset;
    this.sends[word + Send.length] = length;
    this.sends[word + Send.token] = token;
  }
}

/**
 * The one tokenizer of the memcached protocol, text and meta: bytes in place -> request records.
 *
 * It owns the batch (records and tokens) and keeps no state between calls: an incomplete request is simply not
 * consumed and comes again with more bytes, so any split of the input gives the same requests. It allocates nothing,
 * never throws, and knows no keys' values, limits of items or replies: whether a request makes sense is the command's
 * affair. It knows just enough of storage commands to find the end of their data block.
 *
 * Lines end with LF, before which one CR is dropped; tokens are separated by spaces only, as in memcached.
 */
import { commandOf } from './command-names.js';
import { parseInt32 } from './numbers.js';
import { BATCH_REQUESTS, CommandCode, MAX_TOKENS, Request, RequestFlag } from './request.js';

const SPACE = 32;
const LF = 10;
const CR = 13;

/** A line without its LF may be this long, unless it is a get or gets (memcached closes the connection). */
export const MAX_LINE_BYTES = 2048;
/** Spaces that may stand before such a get. */
const MAX_LEADING_SPACES = 100;
const MAX_VALUE_BYTES = 2147483647 - 2;

/** What stopped the last parse before the end of its input. */
export const enum Pending {
  /** Nothing: all input parsed, or the batch is full. */
  NONE = 0,
  /** The line at `consumed` has no LF yet. */
  LINE = 1,
  /** As LINE, and it is longer than any line may be. */
  LINE_TOO_LONG = 2,
  /** The command line is complete and stands in the record after the last; its data block is not. */
  VALUE = 3,
}

export class Tokenizer {
  /** BATCH_REQUESTS records, and one for a request whose data block is pending. */
  readonly records = new Int32Array((BATCH_REQUESTS + 1) * Request.WORDS);
  /** (offset, length) pairs. */
  readonly tokens = new Int32Array((BATCH_REQUESTS + 1) * MAX_TOKENS * 2);
  /** Offset of the first byte that belongs to no complete request. */
  consumed = 0;
  pending: number = Pending.NONE;

  /** Tokens recorded in this batch. */
  private tokenCount = 0;
  /** Set by scanLine: offset after the LF. */
  private lineNext = 0;

  /**
   * Parses up to `limit` requests of [offset, end); returns how many are complete. `scanned`: that many bytes
   * from `offset` are known to hold no LF (an earlier call said LINE; saves scanning a long line again).
   */
  parse(u8: Uint8Array, offset: number, end: number, scanned: number, limit: number = BATCH_REQUESTS): number {
    this.tokenCount = 0;
    this.pending = Pending.NONE;
    let at = offset;
    let count = 0;
    if (scanned > 0 && !hasLineFeed(u8, offset + scanned, end)) {
      this.consumed = offset;
      this.pending = pendingLine(u8, offset, end);
      return 0;
    }
    while (at < end && count < limit) {
      const record = count * Request.WORDS;
      if (!this.scanLine(u8, at, end, record)) {
        this.pending = pendingLine(u8, at, end);
        break;
      }
      this.identify(u8, record);
      this.locateValue(u8, record);
      const next = this.records[record + Request.next];
      if (next > end) {
        this.pending = Pending.VALUE;
        break;
      }
      if (this.records[record + Request.valueOffset] >= 0 && (u8[next - 2] !== CR || u8[next - 1] !== LF)) {
        this.records[record + Request.flags] |= RequestFlag.BAD_CHUNK;
      }
      at = next;
      count++;
    }
    this.consumed = at;
    return count;
  }

  /** Parses one command line that has no data block after it: [offset, end) is the line with its LF. Record 0. */
  parseLine(u8: Uint8Array, offset: number, end: number): boolean {
    this.tokenCount = 0;
    if (!this.scanLine(u8, offset, end, 0)) return false;
    this.identify(u8, 0);
    return true;
  }

  /** Records the tokens of the line at `offset`; false when its LF is not there. */
  private scanLine(u8: Uint8Array, offset: number, end: number, record: number): boolean {
    const records = this.records;
    const tokens = this.tokens;
    const first = this.tokenCount;
    let count = 0;
    let flags: number = RequestFlag.NONE;
    let i = offset;
    for (;;) {
      while (i < end && u8[i] === SPACE) i++;
      const start = i;
      // Printable bytes, nearly all, take one comparison each.
      while (i < end && (u8[i] > SPACE || (u8[i] !== SPACE && u8[i] !== LF))) i++;
      if (i >= end) return false;
      const isLast = u8[i] === LF;
      const stop = isLast && i > start && u8[i - 1] === CR ? i - 1 : i;
      if (stop > start) {
        if (count < MAX_TOKENS) {
          const pair = (first + count) * 2;
          tokens[pair] = start;
          tokens[pair + 1] = stop - start;
          count++;
        } else {
          flags = RequestFlag.MORE_TOKENS;
        }
      }
      if (isLast) {
        records[record + Request.lineEnd] = stop;
        break;
      }
    }
    this.lineNext = i + 1;
    this.tokenCount = first + count;
    records[record + Request.flags] = flags;
    records[record + Request.tokenFirst] = first;
    records[record + Request.tokenCount] = count;
    records[record + Request.valueOffset] = -1;
    records[record + Request.valueLength] = 0;
    records[record + Request.next] = i + 1;
    return true;
  }

  /** Fills in the command and, for those that know it, noreply. */
  private identify(u8: Uint8Array, record: number): void {
    const records = this.records;
    const count = records[record + Request.tokenCount];
    if (count === 0) {
      records[record + Request.command] = CommandCode.UNKNOWN;
      return;
    }
    const pair = records[record + Request.tokenFirst] * 2;
    const command = commandOf(u8, this.tokens[pair], this.tokens[pair + 1]);
    records[record + Request.command] = command;
    // `delete noreply` deletes a key of that name.
    const least = command === CommandCode.DELETE ? 2 : 1;
    if (count > least && takesNoreply(command) && isNoreply(u8, this.tokens, pair + (count - 1) * 2)) {
      records[record + Request.flags] |= RequestFlag.NOREPLY;
    }
  }

  /** Finds the data block of a storage command whose line is well formed enough to tell. */
  private locateValue(u8: Uint8Array, record: number): void {
    const records = this.records;
    const command = records[record + Request.command];
    if (command < CommandCode.SET || command > CommandCode.META_SET) return;
    const count = records[record + Request.tokenCount];
    let index = 4;
    if (command === CommandCode.META_SET) {
      index = 2;
      if (count < 3) return;
    } else {
      const least = command === CommandCode.CAS ? 6 : 5;
      if (count < least || count > least + 1) return;
    }
    const pair = (records[record + Request.tokenFirst] + index) * 2;
    const length = parseInt32(u8, this.tokens[pair], this.tokens[pair + 1]);
    if (length < 0 || length > MAX_VALUE_BYTES) return;
    const next = this.lineNext + length + 2;
    records[record + Request.valueOffset] = this.lineNext;
    records[record + Request.valueLength] = length;
    records[record + Request.next] = Math.min(next, 2147483647);
  }
}

function hasLineFeed(u8: Uint8Array, offset: number, end: number): boolean {
  for (let i = offset; i < end; i++) if (u8[i] === LF) return true;
  return false;
}

function pendingLine(u8: Uint8Array, offset: number, end: number): Pending {
  if (end - offset <= MAX_LINE_BYTES) return Pending.LINE;
  let i = offset;
  while (i - offset <= MAX_LEADING_SPACES && u8[i] === SPACE) i++;
  const isGet =
    i - offset <= MAX_LEADING_SPACES &&
    u8[i] === 0x67 &&
    u8[i + 1] === 0x65 &&
    u8[i + 2] === 0x74 &&
    (u8[i + 3] === SPACE || (u8[i + 3] === 0x73 && u8[i + 4] === SPACE));
  return isGet ? Pending.LINE : Pending.LINE_TOO_LONG;
}

function takesNoreply(command: number): boolean {
  if (command >= CommandCode.SET && command <= CommandCode.CAS) return true;
  if (command >= CommandCode.DELETE && command <= CommandCode.TOUCH) return true;
  if (command >= CommandCode.LRU && command <= CommandCode.WATCH) return true;
  return command === CommandCode.FLUSH_ALL || command === CommandCode.VERBOSITY;
}

function isNoreply(u8: Uint8Array, tokens: Int32Array, pair: number): boolean {
  if (tokens[pair + 1] !== 7) return false;
  const at = tokens[pair];
  return (
    u8[at] === 0x6e && // n
    u8[at + 1] === 0x6f && // o
    u8[at + 2] === 0x72 && // r
    u8[at + 3] === 0x65 && // e
    u8[at + 4] === 0x70 && // p
    u8[at + 5] === 0x6c && // l
    u8[at + 6] === 0x79 // y
  );
}

/**
 * The RESP request parser: finds complete requests in received bytes and records where their arguments lie.
 *
 * Nothing is copied or allocated: `requests` holds REQUEST_WORDS words for each of up to BATCH_REQUESTS requests, `args`
 * an (offset, length) pair for each argument. Invariant: every recorded range lies inside [offset, end) of the parsed
 * input (or inside `scratch` for a quoted inline command), and splitting the input differently gives the same requests.
 *
 * An incomplete request is parsed again from its start when more bytes have come, unless it has many arguments: then a
 * PartialRequest keeps what is done, so that the work stays linear in the bytes received.
 */
import { Bytes } from '../../layout/bytes.js';
import { ProtocolError } from './errors.js';
import { hasQuotes, splitPlain, splitQuoted } from './inline.js';

/** Most requests parsed ahead. */
export const BATCH_REQUESTS = 64;
/** Longest inline command and longest header line. */
export const MAX_INLINE_BYTES = 64 * 1024;
/** What a client may send before it has authenticated. */
export const UNAUTHENTICATED_ARGUMENTS = 10;
export const UNAUTHENTICATED_BULK_BYTES = 16 * 1024;
/** Arguments of one request; as Redis. */
const MAX_ARGUMENTS = 0x7fffffff;
/** An incomplete request with more complete arguments than this is not parsed again from its start. */
const PARTIAL_ARGUMENTS = 256;
/** `args` shrinks back to this many words after a request that needed more. */
const ARGS_WORDS = 4096;

export const enum Request {
  /** Index into `args` of the first argument's pair. */
  firstArgument = 0,
  argumentCount = 1,
  /** Offset behind the request in the input. */
  end = 2,
  /** RequestSource */
  source = 3,
  WORDS = 4,
}

export const enum RequestSource {
  INPUT = 0,
  SCRATCH = 1,
}

export const enum ParseStatus {
  /** All complete requests are recorded; what is left, if anything, is incomplete. */
  MORE = 0,
  /** The batch is full; there may be more complete requests. */
  FULL = 1,
  /** See `error`; the requests before it are recorded. */
  ERROR = 2,
}

const STAR = 0x2a;
const DOLLAR = 0x24;
const CARRIAGE_RETURN = 0x0d;
const LINE_FEED = 0x0a;
const DIGIT_0 = 0x30;

/** Progress of an incomplete request with many arguments; belongs to the connection. Offsets are relative to the request's start. */
export class PartialRequest {
  args: Int32Array;
  done: number;
  readonly count: number;
  position: number;
  /** What its user has counted as the client's memory. */
  chargedBytes = 0;

  constructor(args: Int32Array, done: number, count: number, position: number) {
    this.args = args;
    this.done = done;
    this.count = count;
    this.position = position;
  }
}

export class RequestParser {
  readonly requests = new Int32Array(BATCH_REQUESTS * Request.WORDS);
  count = 0;
  args = new Int32Array(ARGS_WORDS);
  /** Unescaped words of quoted inline commands. */
  readonly scratch = Bytes.allocate(2 * MAX_INLINE_BYTES);

  /** Set by the server from its configuration. */
  maxBulkBytes = 512 * 1024 * 1024;

  /** Why parse() returned ERROR. */
  error = ProtocolError.NONE;
  /** The byte that the error names. */
  errorByte = 0;
  /** Offset where the incomplete (or broken) request starts; `end` when there is none. */
  restOffset = 0;
  /** When the incomplete request waits for the bytes of an argument: how many arguments it has and how many are complete; count 0 = it does not. */
  pendingCount = 0;
  pendingDone = 0;
  /** First word in `args` of the incomplete request's complete arguments. */
  pendingFirstArgument = 0;
  /** Where the bytes of the incomplete argument start, and how many it will have. */
  pendingOffset = 0;
  pendingLength = 0;
  /** For the next call for the same connection (see PartialRequest). */
  partial: PartialRequest | null = null;

  private argsTop = 0;
  private scratchTop = 0;
  private lineValue = 0;
  private lineEnd = 0;

  /** Parses up to `limit` requests in [offset, end). `partial` is what the last call for this connection left in `this.partial`. */
  parse(
    input: Bytes,
    offset: number,
    end: number,
    limit: number,
    authenticated: boolean,
    partial: PartialRequest | null,
  ): ParseStatus {
    this.count = 0;
    this.argsTop = 0;
    this.scratchTop = 0;
    this.pendingCount = 0;
    this.partial = null;
    this.error = ProtocolError.NONE;
    if (this.args.length > ARGS_WORDS) this.args = new Int32Array(ARGS_WORDS);
    const u8 = input.u8;
    if (partial !== null) {
      const resumed = this.resume(u8, offset, end, authenticated, partial);
      if (resumed < 0) {
        this.restOffset = offset;
        return this.error === ProtocolError.NONE ? ParseStatus.MORE : ParseStatus.ERROR;
      }
      offset = resumed;
    }
    while (offset < end) {
      if (this.count === limit) {
        this.restOffset = offset;
        return ParseStatus.FULL;
      }
      const first = this.argsTop;
      const next = u8[offset] === STAR ? this.multibulk(u8, offset, end, authenticated) : this.inline(u8, offset, end);
      if (next < 0) {
        this.argsTop = first;
        this.restOffset = offset;
        if (next === BATCH_ENDS) return ParseStatus.FULL;
        return this.error === ProtocolError.NONE ? ParseStatus.MORE : ParseStatus.ERROR;
      }
      offset = next;
    }
    this.restOffset = end;
    return ParseStatus.MORE;
  }

  /**
   * Parses exactly `count` further bulk arguments from `offset` on, as request 0: the tail of a request whose large
   * argument went elsewhere. Returns the offset behind them, or -1 (incomplete, or see `error`).
   */
  parseArguments(input: Bytes, offset: number, end: number, count: number): number {
    this.count = 0;
    this.argsTop = 0;
    this.error = ProtocolError.NONE;
    this.partial = null;
    const position = this.bulks(input.u8, offset, end, true, 0, count);
    this.pendingCount = 0;
    if (position >= 0) this.record(0, count, position, RequestSource.INPUT);
    return position;
  }

  /** One multibulk request at `start`; returns the offset behind it or -1. */
  private multibulk(u8: Uint8Array, start: number, end: number, authenticated: boolean): number {
    // Nearly all requests have fewer than ten arguments: "*3\r\n".
    let count = start + 3 < end && u8[start + 2] === CARRIAGE_RETURN ? u8[start + 1] - DIGIT_0 : -1;
    let position = start + 4;
    if (count < 1 || count > 9) {
      if (!this.line(u8, start, end, ProtocolError.MULTIBULK_COUNT_TOO_LONG)) return -1;
      count = this.lineValue;
      position = this.lineEnd;
      if (!(count <= MAX_ARGUMENTS)) return this.fail(ProtocolError.MULTIBULK_LENGTH);
      if (count > UNAUTHENTICATED_ARGUMENTS && !authenticated)
        return this.fail(ProtocolError.MULTIBULK_UNAUTHENTICATED);
      if (count <= 0) return position;
    }
    const first = this.argsTop;
    const next = this.bulks(u8, position, end, authenticated, 0, count);
    if (next >= 0) {
      this.record(first, count, next, RequestSource.INPUT);
      return next;
    }
    if (this.error === ProtocolError.NONE && this.pendingDone > PARTIAL_ARGUMENTS) {
      const args = this.args.slice(first, this.argsTop);
      for (let i = 0; i < args.length; i += 2) args[i] -= start;
      this.partial = new PartialRequest(args, this.pendingDone, count, this.lineEnd - start);
    }
    return -1;
  }

  /**
   * Bulk strings `done`..`count` from `position` on. Returns the offset behind them, or -1 with `error` or with
   * pendingDone, and lineEnd where the next header starts.
   */
  private bulks(
    u8: Uint8Array,
    position: number,
    end: number,
    authenticated: boolean,
    done: number,
    count: number,
  ): number {
    const first = this.argsTop;
    let top = first;
    let args = this.args;
    for (; done < count; done++) {
      // "$" digits CR LF, without sign or leading zero; everything else goes the slow way.
      let valueOffset = position + 2;
      let length = valueOffset < end && u8[position] === DOLLAR ? u8[position + 1] - DIGIT_0 : -1;
      if (length >= 0 && length <= 9) {
        let byte = u8[valueOffset];
        while (byte !== CARRIAGE_RETURN) {
          byte -= DIGIT_0;
          if (!(byte >= 0 && byte <= 9) || length === 0 || length > 99_999_999) {
            length = -1;
            break;
          }
          length = length * 10 + byte;
          byte = ++valueOffset < end ? u8[valueOffset] : 0;
        }
        valueOffset += 2;
      } else {
        length = -1;
      }
      if (length < 0 || valueOffset > end || length > this.maxBulkBytes || !authenticated) {
        if (!this.bulkHeader(u8, position, end, authenticated)) {
          return this.incomplete(first, top, done, position);
        }
        length = this.lineValue;
        valueOffset = this.lineEnd;
      }
      const next = valueOffset + length + 2;
      if (next > end) {
        this.pendingCount = count;
        this.pendingOffset = valueOffset;
        this.pendingLength = length;
        return this.incomplete(first, top, done, position);
      }
      if (top + 2 > args.length) {
        this.growArgs(top);
        args = this.args;
      }
      args[top] = valueOffset;
      args[top + 1] = length;
      top += 2;
      position = next;
    }
    this.argsTop = top;
    return position;
  }

  private incomplete(first: number, top: number, done: number, position: number): number {
    this.argsTop = top;
    this.pendingFirstArgument = first;
    this.pendingDone = done;
    this.lineEnd = position;
    return -1;
  }

  /** A bulk header the careful way; false = incomplete or error, else lineValue and lineEnd. */
  private bulkHeader(u8: Uint8Array, position: number, end: number, authenticated: boolean): boolean {
    if (!this.line(u8, position, end, ProtocolError.BULK_COUNT_TOO_LONG)) return false;
    if (u8[position] !== DOLLAR) {
      this.errorByte = u8[position];
      this.error = ProtocolError.BULK_EXPECTED;
      return false;
    }
    if (!(this.lineValue >= 0 && this.lineValue <= this.maxBulkBytes)) {
      this.error = ProtocolError.BULK_LENGTH;
      return false;
    }
    if (!authenticated && this.lineValue > UNAUTHENTICATED_BULK_BYTES) {
      this.error = ProtocolError.BULK_UNAUTHENTICATED;
      return false;
    }
    return true;
  }

  /** A header line: one type byte, a decimal, CR and one more byte. Sets lineValue (NaN = not a number) and lineEnd. */
  private line(u8: Uint8Array, start: number, end: number, tooLong: ProtocolError): boolean {
    let i = start;
    const limit = Math.min(end, start + MAX_INLINE_BYTES + 1);
    while (i < limit && u8[i] !== CARRIAGE_RETURN) i++;
    if (i === limit) {
      if (end - start > MAX_INLINE_BYTES) this.error = tooLong;
      return false;
    }
    if (i + 2 > end) return false;
    this.lineValue = strictInteger(u8, start + 1, i);
    this.lineEnd = i + 2;
    return true;
  }

  private inline(u8: Uint8Array, start: number, end: number): number {
    const limit = Math.min(end, start + MAX_INLINE_BYTES + 1);
    let newline = start;
    while (newline < limit && u8[newline] !== LINE_FEED) newline++;
    if (newline === limit) return end - start > MAX_INLINE_BYTES ? this.fail(ProtocolError.INLINE_TOO_BIG) : -1;
    const lineEnd = newline > start && u8[newline - 1] === CARRIAGE_RETURN ? newline - 1 : newline;
    const first = this.argsTop;
    const length = lineEnd - start;
    while (first + length + 2 > this.args.length) this.growArgs(first);
    let count: number;
    let source = RequestSource.INPUT;
    if (!hasQuotes(u8, start, lineEnd)) {
      count = splitPlain(u8, start, lineEnd, this.args, first);
    } else {
      if (this.scratchTop + length > this.scratch.length) return BATCH_ENDS;
      source = RequestSource.SCRATCH;
      count = splitQuoted(u8, start, lineEnd, this.args, first, this.scratch.u8, this.scratchTop);
      if (count < 0) return this.fail(ProtocolError.INLINE_QUOTES);
      this.scratchTop += length;
    }
    this.argsTop = first + 2 * count;
    if (count > 0) this.record(first, count, newline + 1, source);
    return newline + 1;
  }

  private resume(u8: Uint8Array, start: number, end: number, authenticated: boolean, partial: PartialRequest): number {
    const next = this.bulks(u8, start + partial.position, end, authenticated, partial.done, partial.count);
    const words = this.argsTop;
    if (next < 0 && this.error !== ProtocolError.NONE) return -1;
    const known = partial.done * 2;
    const total = known + words;
    if (total > partial.args.length) {
      const grown = new Int32Array(Math.max(total, partial.args.length * 2));
      grown.set(partial.args.subarray(0, known));
      partial.args = grown;
    }
    for (let i = 0; i < words; i += 2) {
      partial.args[known + i] = this.args[i] - start;
      partial.args[known + i + 1] = this.args[i + 1];
    }
    this.pendingCount = 0;
    if (next < 0) {
      partial.done += words >>> 1;
      partial.position = this.lineEnd - start;
      this.partial = partial;
      return -1;
    }
    while (total > this.args.length) this.growArgs(0);
    for (let i = 0; i < total; i += 2) {
      this.args[i] = partial.args[i] + start;
      this.args[i + 1] = partial.args[i + 1];
    }
    this.argsTop = total;
    this.record(0, partial.count, next, RequestSource.INPUT);
    return next;
  }

  private record(first: number, count: number, end: number, source: RequestSource): void {
    const word = this.count++ * Request.WORDS;
    this.requests[word + Request.firstArgument] = first;
    this.requests[word + Request.argumentCount] = count;
    this.requests[word + Request.end] = end;
    this.requests[word + Request.source] = source;
  }

  private growArgs(used: number): void {
    const grown = new Int32Array(this.args.length * 2);
    grown.set(this.args.subarray(0, used));
    this.args = grown;
  }

  private fail(error: ProtocolError): number {
    this.error = error;
    return -1;
  }
}

/** Returned instead of an offset: this request opens the next batch. */
const BATCH_ENDS = -2;

/** The decimal in [start, end): optional '-', no leading zeros, no plus sign. NaN when it is anything else. */
function strictInteger(u8: Uint8Array, start: number, end: number): number {
  const negative = u8[start] === 0x2d;
  let i = negative ? start + 1 : start;
  if (i >= end || end - i > 19) return Number.NaN;
  if (u8[i] === DIGIT_0) return end - i === 1 && !negative ? 0 : Number.NaN;
  let value = 0;
  for (; i < end; i++) {
    const digit = u8[i] - DIGIT_0;
    if (!(digit >= 0 && digit <= 9)) return Number.NaN;
    value = value * 10 + digit;
  }
  return negative ? -value : value;
}

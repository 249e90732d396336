/**
 * What a memcached handler sees: the request at hand, the key space, the reply writer. One per worker, reused for every
 * request.
 *
 * Invariant: everything here refers to the record `record` of the tokenizer's (or the binary parser's) batch and to `input`; a handler writes
 * exactly one reply (or none, when the client asked for none) and leaves no lock behind.
 */
import type { Settings } from '../../config/index.js';
import { Bytes } from '../../layout/bytes.js';
import type { ClassCounter } from '../../layout/class-counters.js';
import type { CounterTotals } from '../../layout/counters.js';
import { decodeBase64 } from '../../protocol/memcached/base64.js';
import { BinaryParser, BinaryRecord } from '../../protocol/memcached/binary.js';
import { MetaFlags } from '../../protocol/memcached/meta-flags.js';
import { parseInt32, Uint64 } from '../../protocol/memcached/numbers.js';
import { Replies } from '../../protocol/memcached/replies.js';
import { MAX_KEY_BYTES, Request, RequestFlag } from '../../protocol/memcached/request.js';
import { Tokenizer } from '../../protocol/memcached/tokenizer.js';
import type { Writer } from '../../protocol/memcached/writer.js';
import type { Keyspace } from '../../store/keyspace.js';
import { Stat } from '../../store/statistics.js';
import type { Control } from '../control.js';
import type { Environment } from '../environment.js';
import type { MemcachedClient } from './client.js';
import { Credentials } from './credentials.js';
import { Prefixes } from './prefixes.js';
import { Watch, WatchKind } from './watch.js';

/** memcached sees this logical database. */
export const DB = 0;

/** Expiry times up to this many seconds are relative, later ones are Unix times. */
const MAX_RELATIVE_SECONDS = 60 * 60 * 24 * 30;
/** An expiry long past: what a negative time means. */
const EXPIRED_MS = 1;

export class MemcachedContext {
  readonly keyspace: Keyspace;
  readonly settings: Readonly<Settings>;
  readonly counters: Float64Array;
  readonly totals: CounterTotals;
  readonly control: Control | null;
  readonly credentials: Credentials;
  readonly shared: Int32Array;
  readonly watch: Watch;
  readonly prefixes: Prefixes;
  readonly tokenizer = new Tokenizer();
  readonly binary = new BinaryParser();
  readonly flags = new MetaFlags();
  /** Operand and result of arithmetic. */
  readonly delta = new Uint64();
  readonly number = new Uint64();

  reply: Writer;
  client: MemcachedClient;
  input: Bytes;
  /** Word offset of the request's record, in the parser of its protocol. */
  record = 0;
  /** The last look-up met an item whose time is over. */
  hasExpired = false;
  /** Replies of this turn to this client stand before this one. */
  hasAnswered = false;
  /** Binary protocol: success says nothing. */
  isQuiet = false;
  /** The request's key: a range of the input, or of `decodedKey` for a meta command with `b`. */
  key: Bytes;
  keyOffset = 0;
  keyLength = 0;
  /** The value has been received into the item staged by the client's LargeValue. */
  isValueStaged = false;

  /** The key's hash, when the driver has looked ahead. */
  isHashKnown = false;
  knownHash = 0;

  private readonly decodedKey = Bytes.allocate(MAX_KEY_BYTES + 2);
  private isLocked = false;
  private lockedHash = 0;

  constructor(environment: Environment, reply: Writer, client: MemcachedClient) {
    this.keyspace = environment.keyspace;
    this.keyspace.classCounters = environment.counters.classes;
    this.settings = environment.settings;
    this.credentials = new Credentials(environment.settings);
    this.shared = environment.counters.shared;
    this.counters = environment.counters.values;
    this.totals = environment.totals;
    this.control = environment.control;
    this.reply = reply;
    this.client = client;
    this.watch = new Watch(this, this.shared);
    this.prefixes = new Prefixes(this, this.shared);
    this.input = this.decodedKey;
    this.key = this.decodedKey;
  }

  word(index: Request): number {
    return this.tokenizer.records[this.record + index];
  }

  binaryWord(index: BinaryRecord): number {
    return this.binary.records[this.record + index];
  }

  takeBinaryKey(): void {
    this.key = this.input;
    this.keyOffset = this.binaryWord(BinaryRecord.keyOffset);
    this.keyLength = this.binaryWord(BinaryRecord.keyLength);
  }

  /** Slow path: the current key as text. */
  keyText(): string {
    return Buffer.from(this.key.u8.slice(this.keyOffset, this.keyOffset + this.keyLength)).toString('latin1');
  }

  /** The request is not done: its rest begins at `offset`, and the client knows how to go on. */
  setNext(offset: number): void {
    this.tokenizer.records[this.record + Request.next] = offset;
  }

  get tokenCount(): number {
    return this.tokenizer.records[this.record + Request.tokenCount];
  }

  tokenOffset(index: number): number {
    return this.tokenizer.tokens[(this.tokenizer.records[this.record + Request.tokenFirst] + index) * 2];
  }

  tokenLength(index: number): number {
    return this.tokenizer.tokens[(this.tokenizer.records[this.record + Request.tokenFirst] + index) * 2 + 1];
  }

  tokenInt32(index: number): number {
    return parseInt32(this.input.u8, this.tokenOffset(index), this.tokenLength(index));
  }

  /** Slow path: administration. */
  tokenText(index: number): string {
    const offset = this.tokenOffset(index);
    let text = '';
    for (let i = 0; i < this.tokenLength(index); i++) text += String.fromCharCode(this.input.u8[offset + i]);
    return text;
  }

  get hasNoreply(): boolean {
    return (this.word(Request.flags) & RequestFlag.NOREPLY) !== 0;
  }

  /** Of a durable pool: writes are refused, since they cannot be written down. */
  get isLogRefused(): boolean {
    const { effects } = this.keyspace.feed;
    return effects !== null && effects.refusal !== 0;
  }

  /** One line, unless the client asked for none. */
  answer(line: Uint8Array): void {
    if (!this.hasNoreply) this.reply.line(line);
  }

  /** Takes token `index` as the key; false when it is too long. */
  takeKey(index: number): boolean {
    this.key = this.input;
    this.keyOffset = this.tokenOffset(index);
    this.keyLength = this.tokenLength(index);
    return this.keyLength <= MAX_KEY_BYTES;
  }

  /** Flags and key of a meta command whose flags start at token `start`. Null, or the error to send. */
  takeMeta(start: number): Uint8Array | null {
    const { tokenizer, flags, input } = this;
    const error = flags.parse(input.u8, tokenizer.tokens, this.word(Request.tokenFirst), start, this.tokenCount);
    if (error !== null) return error;
    this.takeKey(1);
    if (!flags.isBinaryKey) return null;
    const { decodedKey } = this;
    this.isHashKnown = false;
    this.keyLength = decodeBase64(decodedKey.u8, 0, input.u8, this.keyOffset, this.keyLength);
    this.key = decodedKey;
    this.keyOffset = 0;
    return this.keyLength === 0 ? Replies.BAD_KEY_ENCODING : null;
  }

  /** The key's hash in memcached's database. */
  hashKey(): number {
    if (this.isHashKnown) {
      this.isHashKnown = false;
      return this.knownHash;
    }
    return this.keyspace.hash(DB, this.key, this.keyOffset, this.keyLength);
  }

  lock(h: number): void {
    this.keyspace.lock(h);
    this.isLocked = true;
    this.lockedHash = h;
  }

  unlock(h: number): void {
    this.isLocked = false;
    this.keyspace.unlock(h);
  }

  /** After an exception: gives the lock back. */
  abandon(): void {
    if (this.isLocked) this.unlock(this.lockedHash);
    this.isValueStaged = false;
  }

  /** Under the key's lock. */
  findKey(h: number): boolean {
    return this.keyspace.find(h, DB, this.key, this.keyOffset, this.keyLength);
  }

  /** A command's look at its key: as findKey, and who watches hears of it. */
  lookUp(h: number): boolean {
    const { statistics } = this.keyspace;
    const expired = statistics[Stat.EXPIRED];
    const isFound = this.findKey(h);
    this.hasExpired = statistics[Stat.EXPIRED] !== expired;
    if (this.watch.isWatched(WatchKind.FETCHERS)) {
      this.watch.fetch(isFound, this.hasExpired, this.keyspace.valueLength, isFound ? this.keyspace.slabClass : 0);
    }
    return isFound;
  }

  /** Version of the item under the cursor; 0 where clients see none (memcachedCas off). */
  get version(): number {
    return this.settings.memcachedCas ? this.keyspace.version : 0;
  }

  stageKey(h: number, valueBytes: number): boolean {
    return this.keyspace.stage(h, DB, this.key, this.keyOffset, this.keyLength, valueBytes);
  }

  /** Counts for the slab class of the item under the cursor. */
  countInClass(counter: ClassCounter): void {
    this.keyspace.countInClass(this.keyspace.page, counter);
  }

  /** A client's expiry time in seconds -> wall-clock milliseconds, 0 = never. */
  expiryMs(seconds: number): number {
    if (seconds === 0) return 0;
    if (seconds < 0) return EXPIRED_MS;
    return seconds <= MAX_RELATIVE_SECONDS ? this.keyspace.nowMs + seconds * 1000 : seconds * 1000;
  }

  /** Whole seconds left until `expiryMs`, rounded up as if the clock ticked in seconds. */
  secondsLeft(expiryMs: number): number {
    return Math.ceil((expiryMs - this.keyspace.nowMs) / 1000);
  }

  /** Writes the O and k flags among tokens from `start` on, in their order. For replies that carry nothing else. */
  echoMetaTokens(start: number): void {
    for (let i = start; i < this.tokenCount; i++) this.echoMetaToken(i, this.input.u8[this.tokenOffset(i)]);
  }

  echoMetaToken(index: number, letter: number): void {
    if (letter === 0x4f) {
      this.reply.metaToken(this.input, this.tokenOffset(index), this.tokenLength(index));
    } else if (letter === 0x6b) {
      this.reply.metaKey(this.key, this.keyOffset, this.keyLength, this.flags.isBinaryKey);
    }
  }
}

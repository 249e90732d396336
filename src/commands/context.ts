/**
 * Context: the request that is being executed, as handlers see it. One object per worker, reused for every request.
 *
 * Arguments are byte ranges in `input`; argument 0 is the command's name. The methods that return strings, bytes or
 * bigints allocate and are for slow paths. Invariant: everything here is valid only until the handler returns, except for
 * `client`, and except in the answer of `askWorkers`/`askMain`, which sees `client` and `reply` only.
 */
import type { Bytes } from '../layout/bytes.js';
import { Counter } from '../layout/counters.js';
import { ItemType } from '../layout/item.js';
import { copyBytes } from '../native/copy.js';
import type { Reply } from '../protocol/resp/reply.js';
import { Notify } from '../store/change-feed.js';
import { type Collection, Opened, type Shape } from '../store/collections/collection.js';
import { publish } from '../store/collections/draft.js';
import { INLINE_VALUE_BYTES, type Keyspace } from '../store/keyspace.js';
import type { Client } from './clients/client.js';
import { ReplyMode } from './clients/client.js';
import type { Command } from './command.js';
import type { MainTopics, WorkerTopics } from './control.js';
import type { Environment } from './environment.js';
import { NO_MEMORY, WRONG_TYPE } from './errors.js';
import type { Executor } from './executor.js';
import type { WaitOptions } from './messaging/blocked.js';
import { byteString, parseDouble, parseInteger, parseInteger64 } from './numbers.js';
import type { Transaction } from './transactions/transaction.js';

export class Context {
  readonly keyspace: Keyspace;
  readonly reply: Reply;
  readonly environment: Environment;
  readonly executor: Executor;

  client!: Client;
  command!: Command;
  input!: Bytes;
  argc = 0;
  /** Hash of the key, for commands with exactly one key; else of the first one. */
  keyHash = 0;
  /** Keys of the command and their hashes, in the order of extraction (commands with more than one key). */
  keyCount = 0;
  keyArguments = new Int32Array(64);
  keyUses = new Int32Array(64);
  keyHashes = new Int32Array(64);
  /** The large argument lies in the staged item already; see CommandSpec.largeArgument. */
  largeStaged = false;
  /** True while EXEC runs the queue. */
  inTransaction = false;
  /** What EXEC runs, or has run last. */
  running: Transaction | null = null;
  /** A blocked client's request runs again (see messaging/blocked): for `onlyHash`'s key alone, or for all its keys. */
  isRetry = false;
  onlyHash: number | null = null;
  /** The retry has found nothing. */
  stillWaits = false;

  /** (offset, length) pairs of the arguments, from args[first] on: for what hands them on as a whole (scripts). */
  args!: Int32Array;
  first = 0;

  constructor(environment: Environment, reply: Reply, executor: Executor) {
    this.environment = environment;
    this.keyspace = environment.keyspace;
    this.reply = reply;
    this.executor = executor;
  }

  /** Points the context at a request: `argc` (offset, length) pairs from args[first] on. */
  bind(client: Client, input: Bytes, args: Int32Array, first: number, argc: number): void {
    // Mostly they are the same as for the request before; storing a reference costs a write barrier, comparing nothing.
    if (this.client !== client) this.client = client;
    if (this.input !== input) this.input = input;
    if (this.args !== args) this.args = args;
    this.first = first;
    this.argc = argc;
  }

  /** Drops the first `count` words of the request: what is left is a request of its own (COMMAND GETKEYS). */
  shift(count: number): void {
    this.first += count * 2;
    this.argc -= count;
  }

  get db(): number {
    return this.client.db;
  }

  get nowMs(): number {
    return this.keyspace.nowMs;
  }

  /** What new times are reckoned from and written down as; `nowMs` is what things expire by. */
  get wallMs(): number {
    return this.keyspace.wallMs;
  }

  // ---- arguments

  argOffset(i: number): number {
    return this.args[this.first + i * 2];
  }

  argLength(i: number): number {
    return this.args[this.first + i * 2 + 1];
  }

  /** Case-insensitive; `word` in upper case ASCII. Does not allocate. */
  argIs(i: number, word: string): boolean {
    const length = word.length;
    if (this.argLength(i) !== length) return false;
    const u8 = this.input.u8;
    const offset = this.argOffset(i);
    for (let k = 0; k < length; k++) {
      const byte = u8[offset + k];
      if ((byte >= 0x61 && byte <= 0x7a ? byte - 32 : byte) !== word.charCodeAt(k)) return false;
    }
    return true;
  }

  /** A 64-bit integer, or NaN; inexact beyond 2^53 (see parseInteger). */
  argInteger(i: number): number {
    return parseInteger(this.input, this.argOffset(i), this.argLength(i));
  }

  /** The same, exact, or null. */
  argInteger64(i: number): bigint | null {
    return parseInteger64(this.input, this.argOffset(i), this.argLength(i));
  }

  /** A double, or NaN when it is none. */
  argDouble(i: number): number {
    return parseDouble(this.input, this.argOffset(i), this.argLength(i));
  }

  /** One character per byte. */
  argString(i: number): string {
    return byteString(this.input, this.argOffset(i), this.argLength(i));
  }

  /** Decoded as UTF-8: for names and values that leave the data plane. */
  argUtf8(i: number): string {
    return Buffer.from(this.argString(i), 'latin1').toString('utf8');
  }

  /** A copy of the bytes. */
  argBytes(i: number): Uint8Array {
    const offset = this.argOffset(i);
    return this.input.u8.slice(offset, offset + this.argLength(i));
  }

  // ---- keys

  /** Hash of key argument `i` in the client's database; for handlers that must find keys other than through keyHash(es). */
  hashOf(i: number): number {
    return this.keyspace.hash(this.client.db, this.input, this.argOffset(i), this.argLength(i));
  }

  /** Deletes the key in argument `i`, whose hash is `h`, if it is there: what storing an empty result comes to. */
  removeKey(h: number, i: number): void {
    if (!this.find(h, i)) return;
    this.keyspace.remove();
    this.notify(Notify.GENERIC, 'del', i);
  }

  /** Positions the cursor on the item of argument `i` whose hash is `h`. */
  find(h: number, i: number): boolean {
    return this.keyspace.find(h, this.client.db, this.input, this.argOffset(i), this.argLength(i));
  }

  /** The one key, argument 1. */
  findKey(): boolean {
    return this.keyspace.find(this.keyHash, this.client.db, this.input, this.argOffset(1), this.argLength(1));
  }

  /** A reading command found its key: statistics, and the item counts as used (unless CLIENT NO-TOUCH). */
  hit(): void {
    // Once for a request, however many turns it takes.
    if (this.client.work !== null) return;
    this.environment.counters.values[Counter.hits]++;
    this.use();
  }

  /** The found item counts as used (unless CLIENT NO-TOUCH): writing commands that keep it call this alone. */
  use(): void {
    if (!this.client.noTouch) this.keyspace.access();
  }

  /** A writing command has looked its key up: the item counts as used, not as hit (unless CLIENT NO-TOUCH). */
  touch(): void {
    if (!this.client.noTouch) this.keyspace.use();
  }

  /** A command looked at its key without using the value (EXISTS, TTL): statistics only. */
  seen(): void {
    this.environment.counters.values[Counter.hits]++;
  }

  /** A reading command did not find its key: statistics only. */
  countMiss(): void {
    this.environment.counters.values[Counter.misses]++;
    this.keyspace.miss();
  }

  /** The same, and an event for those who want to hear of it. */
  miss(): void {
    this.countMiss();
    const { notifications } = this.executor.hub;
    if (notifications.wanted !== 0) notifications.fireMiss(this.client.db);
  }

  /** True when the found item is a string; else replies WRONGTYPE. */
  requireString(): boolean {
    if (this.keyspace.type === ItemType.STRING) return true;
    this.reply.error(WRONG_TYPE);
    return false;
  }

  /**
   * Opens the collection of the key in argument `i`, whose hash is `h`, as number `index` of those that the command has open at once.
   * Null after a WRONGTYPE reply; `exists` tells whether there is one.
   */
  open(index: number, shape: Shape, h: number, i: number): Collection | null {
    const collection = this.keyspace.collections[index];
    const opened = collection.open(shape, h, this.client.db, this.input, this.argOffset(i), this.argLength(i));
    if (opened !== Opened.WRONG_TYPE) return collection;
    this.reply.error(WRONG_TYPE);
    return null;
  }

  /** As `open`, but a collection that nobody sees until `publish` gives the key to it, in place of whatever that has. */
  openDraft(index: number, shape: Shape, h: number, i: number): Collection {
    const collection = this.keyspace.collections[index];
    collection.openDraft(shape, h, this.input, this.argOffset(i), this.argLength(i));
    return collection;
  }

  /** Gives the key in argument `i` to the draft that was opened for it. False = no memory: an error has been replied, the draft is gone. */
  publish(draft: Collection, h: number, i: number, db = this.db): boolean {
    const { keyspace, input } = this;
    if (publish(keyspace, draft, h, db, input, this.argOffset(i), this.argLength(i))) return true;
    this.reply.error(NO_MEMORY);
    return false;
  }

  /** Stages a value of `length` bytes for key argument `i`; false = no memory (nothing is replied). */
  stage(h: number, i: number, length: number): boolean {
    return this.keyspace.stage(h, this.client.db, this.input, this.argOffset(i), this.argLength(i), length);
  }

  /** Stages argument `i` as the value of key argument 1, or replies that memory is full: false. */
  stageArgument(i: number): boolean {
    const { keyspace } = this;
    const length = this.argLength(i);
    if (!this.stage(this.keyHash, 1, length)) {
      this.reply.error(NO_MEMORY);
      return false;
    }
    copyBytes(keyspace.staged, keyspace.stagedOffset, this.input, this.argOffset(i), length);
    return true;
  }

  /**
   * Stores argument `i` as the string of key argument 1, which `findKey` has just looked up: what is staged, or in the old
   * item's place. Or replies that memory is full: false.
   */
  storeArgument(i: number, found: boolean, expiryMs: number): boolean {
    const { keyspace } = this;
    if (!keyspace.hasStaged) {
      if (found && keyspace.overwrite(this.input, this.argOffset(i), this.argLength(i), 0, expiryMs)) return true;
      if (!this.stageArgument(i)) return false;
    }
    return this.commitString(0, expiryMs);
  }

  /** Commits the staged value as a string, or replies that memory is full: false. */
  commitString(encoding: number, expiryMs: number): boolean {
    if (this.keyspace.commit(ItemType.STRING, encoding, 0, expiryMs)) return true;
    this.reply.error(NO_MEMORY);
    return false;
  }

  /** Replies the found item's value: copied when small, sent from where it lies when large. */
  replyValue(): void {
    this.replyValueRange(0, this.keyspace.valueLength);
  }

  /** The same for a part of it. */
  replyValueRange(start: number, length: number): void {
    const keyspace = this.keyspace;
    const offset = keyspace.valueOffset + start;
    if (length > INLINE_VALUE_BYTES) {
      const token = keyspace.pin();
      if (token > 0) {
        if (!this.reply.bulkRegion(keyspace.value, offset, length, token)) keyspace.unpin(token);
        return;
      }
    }
    this.reply.bulk(keyspace.value, offset, length);
  }

  /** Room for `count` keys in the key arrays. */
  reserveKeys(count: number): void {
    if (count <= this.keyArguments.length) return;
    const size = Math.max(count, this.keyArguments.length * 2);
    this.keyArguments = grow(this.keyArguments, size);
    this.keyUses = grow(this.keyUses, size);
    this.keyHashes = grow(this.keyHashes, size);
  }

  // ---- keyspace events

  /** Something has happened to the key in argument `i`, in the client's database. Costs a test when nobody listens. */
  notify(kind: Notify, event: string, i: number): void {
    this.notifyIn(this.client.db, kind, event, i);
  }

  notifyIn(db: number, kind: Notify, event: string, i: number): void {
    const { notifications } = this.executor.hub;
    if (notifications.wanted === 0) return;
    notifications.fire(kind, event, db, this.input, this.argOffset(i), this.argLength(i));
  }

  // ---- blocking

  /** Where the request's (offset, length) pairs are, and the first of them. */
  get argPairs(): Int32Array {
    return this.args;
  }

  get argPairsFrom(): number {
    return this.first;
  }

  /** False where a command that finds nothing must answer at once: in transactions and scripts. */
  get canBlock(): boolean {
    return !this.inTransaction && this.executor.hub.isOf(this.executor);
  }

  /** True when a script has called the command. */
  get isInScript(): boolean {
    return !this.executor.hub.isOf(this.executor);
  }

  /** Whether a blocking command may look at key `k` of keyHashes: always, but for a retry that holds one key's lock only. */
  mayUse(k: number): boolean {
    return this.onlyHash === null || this.keyHashes[k] === this.onlyHash;
  }

  /** Instead of a reply: the client waits, or gets what its command says at a time-out. See messaging/blocked. */
  block(options: WaitOptions): void {
    this.executor.hub.blocked.block(this, options);
  }

  // ---- the control plane: the client waits, the answer replies in a later turn

  /** Asks all workers; `answer` writes the reply. Replies an error where there is no control plane. */
  askWorkers<T extends keyof WorkerTopics>(
    topic: T,
    question: WorkerTopics[T][0],
    answer: (answers: readonly WorkerTopics[T][1][]) => void,
  ): void {
    const control = this.environment.control;
    if (control === null) return this.reply.error(NO_CONTROL);
    const client = this.client;
    if (this.inTransaction) {
      const others = (this.running?.othersAnswers ?? []) as readonly WorkerTopics[T][1][];
      return answer([...others, control.askHere(client, topic, question)]);
    }
    client.suspended = true;
    client.queryBytes = this.requestBytes();
    control.askWorkers(client, topic, question, (answers) => this.answering(client, () => answer(answers)));
  }

  askMain<T extends keyof MainTopics>(
    topic: T,
    question: MainTopics[T][0],
    answer: (answer: MainTopics[T][1]) => void,
  ): void {
    const control = this.environment.control;
    if (control === null) return this.reply.error(NO_CONTROL);
    const client = this.client;
    client.suspended = true;
    control.askMain(client, topic, question, (result) => this.answering(client, () => answer(result)));
  }

  /** The bound request's length on the wire, as a multibulk. */
  private requestBytes(): number {
    let bytes = `*${this.argc}\r\n`.length;
    for (let i = 0; i < this.argc; i++) {
      const length = this.argLength(i);
      bytes += `$${length}\r\n`.length + length + 2;
    }
    return bytes;
  }

  private answering(client: Client, write: () => void): void {
    this.client = client;
    this.reply.protocol = client.protocol;
    const muted = client.replyMode === ReplyMode.OFF;
    if (muted) this.reply.output.mute();
    const errorsBefore = this.reply.errorCount;
    write();
    if (this.reply.errorCount !== errorsBefore) this.executor.countFailure(client.lastCommand);
    this.executor.times.answered(client);
    if (muted) this.reply.output.unmute();
  }
}

const NO_CONTROL = 'ERR this command needs the server; the embedded library has no clients, logs or configuration';

function grow(from: Int32Array, size: number): Int32Array<ArrayBuffer> {
  const grown = new Int32Array(size);
  grown.set(from);
  return grown;
}

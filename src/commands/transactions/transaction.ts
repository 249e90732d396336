/**
 * What MULTI collects.
 *
 * Queued requests outlive the input they came in, so their arguments are copied into one growing range. Invariant: the pairs of request i of
 * 0..count-1 lie at args[start(i)..], argc(i) of them, and point into `bytes`. An object serves one transaction after the other.
 */
import { Bytes } from '../../layout/bytes.js';
import { copyBytes } from '../../native/copy.js';
import { type Command, KeyMode } from '../command.js';
import type { Context } from '../context.js';
import { Flag } from '../spec.js';

/** Most bytes and commands one transaction may queue; a client cannot fill the heap. */
export const TRANSACTION_BYTES_MAX = 1024 * 1024 * 1024;
export const TRANSACTION_COMMANDS_MAX = 1_000_000;

/** A command's places in the two lists. */
const COMMAND_BYTES = 24;
/** What took more is not kept for the next transaction. */
const KEPT_BYTES_MAX = 65_536;

/** Words of a request in `requests`. */
const enum Queued {
  START = 0,
  ARGC = 1,
  HASH = 2,
  WORDS = 3,
}

export class Transaction {
  /** Of the first `count`. */
  readonly commands: Command[] = [];
  count = 0;
  bytes = Bytes.allocate(1024);
  args = new Int32Array(64);
  /** A command was refused while queueing: EXEC aborts. */
  broken = false;
  flags = 0;
  /** A queued request must run alone (CommandSpec.runsAlone, exclusive). */
  runsAlone = false;
  /** Keys under which something may be stored that takes more memory. */
  growingKeys = 0;
  /** What other workers have answered, by the number of the command that asks (see questions); null = nobody was asked. */
  answers: ReadonlyMap<number, readonly unknown[]> | null = null;
  /** The command that EXEC runs, counted from 0. */
  current = 0;
  private requests = new Int32Array(16 * Queued.WORDS);
  private used = 0;
  private pairs = 0;

  /** Copies the request of `context`, whose keys are hashed; false = too much. */
  queue(command: Command, context: Context): boolean {
    const { argc } = context;
    let length = 0;
    for (let i = 0; i < argc; i++) length += context.argLength(i);
    if (this.used + length > TRANSACTION_BYTES_MAX || this.count === TRANSACTION_COMMANDS_MAX) return false;
    this.makeRoom(length, argc);
    const at = this.count * Queued.WORDS;
    this.requests[at + Queued.START] = this.pairs * 2;
    this.requests[at + Queued.ARGC] = argc;
    this.requests[at + Queued.HASH] = context.keyHash;
    if (this.count < this.commands.length) this.commands[this.count] = command;
    else this.commands.push(command);
    this.count++;
    this.flags |= command.flagsOf(context);
    if (command.exclusive || command.runsAlone?.(context)) this.runsAlone = true;
    if (command.has(Flag.DENYOOM)) this.growingKeys += command.keyMode === KeyMode.ONE ? 1 : context.keyCount;
    for (let i = 0; i < argc; i++) {
      const argLength = context.argLength(i);
      copyBytes(this.bytes, this.used, context.input, context.argOffset(i), argLength);
      this.args[this.pairs * 2] = this.used;
      this.args[this.pairs * 2 + 1] = argLength;
      this.pairs++;
      this.used += argLength;
    }
    return true;
  }

  private makeRoom(length: number, argc: number): void {
    if (this.used + length > this.bytes.length) {
      const grown = Bytes.allocate(Math.max(this.bytes.length * 2, this.used + length));
      grown.u8.set(this.bytes.u8.subarray(0, this.used));
      this.bytes = grown;
    }
    this.args = roomFor(this.args, (this.pairs + argc) * 2);
    this.requests = roomFor(this.requests, (this.count + 1) * Queued.WORDS);
  }

  /** First word of request `i` in `args`. */
  start(i: number): number {
    return this.requests[i * Queued.WORDS + Queued.START];
  }

  argc(i: number): number {
    return this.requests[i * Queued.WORDS + Queued.ARGC];
  }

  /** Hash of the key of request `i`, whose command has exactly one. */
  hash(i: number): number {
    return this.requests[i * Queued.WORDS + Queued.HASH];
  }

  /** Answers to the command that runs: one of each other worker. */
  get othersAnswers(): readonly unknown[] {
    return this.answers?.get(this.current) ?? [];
  }

  /** What it takes of the heap. */
  get memoryBytes(): number {
    return this.bytes.length + this.args.byteLength + this.count * COMMAND_BYTES;
  }

  get queuedBytes(): number {
    return this.used;
  }

  /** Forgets everything, for another transaction; false = it has become too large to be kept. */
  reset(): boolean {
    if (this.memoryBytes > KEPT_BYTES_MAX) return false;
    this.count = 0;
    this.broken = false;
    this.flags = 0;
    this.runsAlone = false;
    this.growingKeys = 0;
    this.answers = null;
    this.used = 0;
    this.pairs = 0;
    return true;
  }
}

function roomFor(array: Int32Array<ArrayBuffer>, words: number): Int32Array<ArrayBuffer> {
  if (words <= array.length) return array;
  const grown = new Int32Array(Math.max(array.length * 2, words));
  grown.set(array);
  return grown;
}

/** One that EXEC is done with, for the next MULTI: making one costs as much as five commands. */
export class SpareTransactions {
  private spare: Transaction | null = null;

  take(): Transaction {
    const transaction = this.spare ?? new Transaction();
    this.spare = null;
    return transaction;
  }

  give(transaction: Transaction): void {
    if (transaction.reset()) this.spare = transaction;
  }
}

/**
 * What MULTI collects and WATCH remembers.
 *
 * Queued requests outlive the input they came in, so their arguments are copied into one growing range. Invariant: the
 * pairs of request i lie at args[starts[i]..], argcs[i] of them, and point into `bytes`.
 */
import { Bytes } from '../../layout/bytes.js';
import { copyBytes } from '../../native/copy.js';
import type { Keyspace } from '../../store/keyspace.js';
import type { Command } from '../command.js';
import type { Context } from '../context.js';

/** Most bytes and commands one transaction may queue; a client cannot fill the heap. */
export const TRANSACTION_BYTES_MAX = 1024 * 1024 * 1024;
export const TRANSACTION_COMMANDS_MAX = 1_000_000;

/** A command's places in the three lists. */
const COMMAND_BYTES = 24;

export class Transaction {
  readonly commands: Command[] = [];
  readonly starts: number[] = [];
  readonly argcs: number[] = [];
  bytes = Bytes.allocate(1024);
  args = new Int32Array(64);
  /** A command was refused while queueing: EXEC aborts. */
  broken = false;
  flags = 0;
  /** A queued request must run alone (CommandSpec.runsAlone). */
  runsAlone = false;
  private used = 0;
  private pairs = 0;

  /** Copies the request of `context`; false = too much. */
  queue(command: Command, context: Context): boolean {
    let length = 0;
    for (let i = 0; i < context.argc; i++) length += context.argLength(i);
    if (this.used + length > TRANSACTION_BYTES_MAX || this.commands.length === TRANSACTION_COMMANDS_MAX) return false;
    if (this.used + length > this.bytes.length) {
      const grown = Bytes.allocate(Math.max(this.bytes.length * 2, this.used + length));
      grown.u8.set(this.bytes.u8.subarray(0, this.used));
      this.bytes = grown;
    }
    const words = (this.pairs + context.argc) * 2;
    if (words > this.args.length) {
      const grown = new Int32Array(Math.max(this.args.length * 2, words));
      grown.set(this.args);
      this.args = grown;
    }
    this.commands.push(command);
    this.starts.push(this.pairs * 2);
    this.argcs.push(context.argc);
    this.flags |= command.flagsOf(context);
    if (command.runsAlone?.(context)) this.runsAlone = true;
    for (let i = 0; i < context.argc; i++) {
      const argLength = context.argLength(i);
      copyBytes(this.bytes, this.used, context.input, context.argOffset(i), argLength);
      this.args[this.pairs * 2] = this.used;
      this.args[this.pairs * 2 + 1] = argLength;
      this.pairs++;
      this.used += argLength;
    }
    return true;
  }

  /** What it takes of the heap. */
  get memoryBytes(): number {
    return this.bytes.length + this.args.byteLength + this.commands.length * COMMAND_BYTES;
  }

  get queuedBytes(): number {
    return this.used;
  }
}

/**
 * A key under WATCH: its own copy of the name and the state it had. The physical database belongs to the state: FLUSHALL and
 * SWAPDB put another one behind the number.
 */
export interface WatchedKey {
  readonly db: number;
  readonly physical: number;
  readonly key: Bytes;
  readonly signature: number;
}

/** True when all watched keys are as they were; their locks are held. */
export function areUnchanged(keyspace: Keyspace, watched: ReadonlyMap<string, WatchedKey>): boolean {
  for (const w of watched.values()) {
    const signature = keyspace.watchSignature(hashWatched(keyspace, w), w.db, w.key, 0, w.key.length);
    if (signature !== w.signature) return false;
    // Signatures tell the states of one key apart, not those of two keys of one name in different databases.
    if (signature !== 0 && keyspace.physical(w.db) !== w.physical) return false;
  }
  return true;
}

export function hashWatched(keyspace: Keyspace, w: WatchedKey): number {
  return keyspace.hash(w.db, w.key, 0, w.key.length);
}

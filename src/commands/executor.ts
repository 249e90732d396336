/**
 * The executor: from a parsed request to a handler that runs with its keys locked.
 *
 * Order of a request: command -> arity -> authentication -> (inside MULTI) queue, else stage -> locks -> run -> unlock ->
 * statistics. It knows no transport: sockets, embedded calls and later replication and scripts all come through here.
 * Invariant: when `execute` returns, exactly one reply has been written (or the client is suspended, or blocked replies are
 * due later), and no lock is held; `held` says what an exception would leave locked.
 */
import { CommandStat, Counter } from '../layout/counters.js';
import { SlowHolder, Super } from '../layout/superblock.js';
import { Closing } from '../protocol/driver.js';
import type { Reply } from '../protocol/resp/reply.js';
import type { Keyspace } from '../store/keyspace.js';
import { authorize, refusedInTransaction } from './acl/authorize.js';
import type { Users } from './acl/users.js';
import type { Client } from './clients/client.js';
import { charge, endTransaction } from './clients/client-memory.js';
import { type Command, KeyMode } from './command.js';
import { CommandTimes } from './command-times.js';
import { Context } from './context.js';
import { beginEffect, endEffect, writeRefusal } from './effects.js';
import type { Environment } from './environment.js';
import { BUSY_FUNCTION, BUSY_SCRIPT, EXEC_ABORTED, KEY_TOO_LONG, NO_MEMORY, wrongArity } from './errors.js';
import { changesHeld, holdBack, mayHoldBack } from './hold-back.js';
import { extractKeys } from './keys.js';
import { goOn } from './long-steps.js';
import { dropWork, type LongWork } from './long-work.js';
import { endCaching, isTracked, refusal, tellMonitors } from './messaging/attention.js';
import { Hub } from './messaging/hub.js';
import type { ScriptRun } from './scripting/script-engine.js';
import { refusalInScript } from './scripting/script-refusals.js';
import { Flag } from './spec.js';
import type { CommandTable } from './table.js';
import { execWaits } from './transactions/questions.js';
import { SpareTransactions, type Transaction } from './transactions/transaction.js';
import { reserveRoom } from './transactions/transaction-room.js';
import { areUnchanged, hashWatched, type WatchedKey } from './transactions/watched-key.js';
import { unknownRequest } from './unknown-request.js';

export const MAX_KEY_BYTES = 65_535;

const enum Held {
  NOTHING = 0,
  KEY = 1,
  SET = 2,
  GATE = 3,
}

export class Executor {
  readonly context: Context;
  readonly table: CommandTable;
  readonly environment: Environment;
  readonly hub: Hub;
  readonly times: CommandTimes;
  readonly transactions = new SpareTransactions();

  /** A script keeps this worker out of the store: only what needs no store and is allowed then runs. Set by the driver. */
  shutOutBy: SlowHolder = SlowHolder.NONE;

  private readonly isForScripts: boolean;
  private readonly keyspace: Keyspace;
  private readonly reply: Reply;
  private readonly users: Users;
  private readonly stats: Float64Array;
  private readonly counters: Float64Array;
  private readonly ctl: Int32Array;
  private held: Held = Held.NOTHING;
  private heldHash = 0;
  /** The command in hand may change the store; see abandon. */
  private isWriting = false;
  /** Error replies of the commands that the command in hand ran itself: EXEC has not failed with them. */
  private errorsInside = 0;

  constructor(environment: Environment, table: CommandTable, reply: Reply) {
    this.environment = environment;
    this.table = table;
    this.reply = reply;
    this.keyspace = environment.keyspace;
    this.users = environment.users;
    this.stats = environment.counters.commandStats;
    this.counters = environment.counters.values;
    this.ctl = environment.keyspace.memory.ctl;
    this.times = new CommandTimes(environment);
    this.context = new Context(environment, reply, this);
    environment.hub ??= new Hub(this);
    this.hub = environment.hub;
    this.isForScripts = !this.hub.isOf(this);
  }

  /** The command of the bound request: a subcommand where there is one; null when unknown. Writes nothing. */
  lookup(): Command | null {
    const context = this.context;
    const command = this.table.find(context.input, context.argOffset(0), context.argLength(0));
    if (command === null || !command.container || context.argc < 2) return command;
    return this.table.findSubcommand(command, context.input, context.argOffset(1), context.argLength(1));
  }

  /**
   * Executes the bound request. `keyHashKnown`: context.keyHash is the hash of its one key in the client's database.
   */
  execute(command: Command | null, keyHashKnown: boolean): void {
    const context = this.context;
    const client = context.client;
    this.isWriting = false;
    if (client.work === null) {
      client.commands++;
      this.counters[Counter.commands]++;
    } else if (client.work.isSending) {
      // Nothing may come into a reply that has begun, and no key is looked at any more.
      context.command = command!;
      return this.measured(command!);
    }
    if (command === null) return this.rejectUnknown();
    if (!command.accepts(context.argc)) return this.reject(command, wrongArity(command.fullName));
    if (this.shutOutBy !== SlowHolder.NONE && !command.runsWithoutStore)
      return this.reject(command, this.shutOutBy === SlowHolder.FUNCTION ? BUSY_FUNCTION : BUSY_SCRIPT);
    if (client.attention !== 0) {
      const text = refusal(client, command);
      if (text !== '') return this.reject(command, text);
    }
    const { effects } = this.keyspace.feed;
    if (effects !== null) {
      const text = writeRefusal(effects, context, command);
      if (text !== '') return this.reject(command, text);
    }
    client.lastCommand = command;
    context.command = command;
    if (client.unrestrictedAt !== this.users.epoch && !authorize(context, command)) return;
    this.keyspace.feed.origin = client.id;
    const transaction = client.transaction;
    if (transaction !== null && !command.has(Flag.NOT_QUEUED)) return this.queue(command, transaction, keyHashKnown);
    this.call(command, keyHashKnown);
    if (client.attention !== 0 && !client.isHeldBack) endCaching(client, command);
  }

  /**
   * After an exception: gives back what is locked, if nothing can be half done. False = a writing command was at it: then only the
   * end of this participant, whose journal the others roll back, leaves the store as it was.
   */
  abandon(): boolean {
    if (this.isWriting) return false;
    const held = this.held;
    this.held = Held.NOTHING;
    this.context.inTransaction = false;
    this.context.largeStaged = false;
    if (held === Held.KEY) this.keyspace.unlock(this.heldHash);
    else if (held === Held.SET) this.keyspace.lockSet.release();
    else if (held === Held.GATE) this.keyspace.openGate();
    return true;
  }

  /** EXEC: runs the client's queue as one atomic step. The caller has checked that there is one. */
  executeTransaction(): void {
    const context = this.context;
    const client = context.client;
    const transaction = client.transaction as Transaction;
    const watched = client.watched;
    const { input, argPairs, argPairsFrom, argc, command: exec } = context;
    endTransaction(client, this.counters);
    if (transaction.broken) return this.reply.error(EXEC_ABORTED);
    if ((transaction.flags & Flag.DENYOOM) !== 0 && this.keyspace.isOutOfMemory)
      return this.reply.error(`EXECABORT Transaction discarded because of: ${NO_MEMORY}`);
    this.isWriting = (transaction.flags & Flag.WRITE) !== 0;

    const exclusive =
      (this.isWriting && this.hub.blocked.hasAlone) ||
      (transaction.flags & (Flag.CHANGES_DB | Flag.SCANS)) !== 0 ||
      transaction.runsAlone;
    if (exclusive) {
      this.keyspace.closeGate();
      this.held = Held.GATE;
    } else {
      this.lockTransaction(transaction, watched);
    }
    if (watched === null || areUnchanged(this.keyspace, watched)) {
      if (this.isWriting) reserveRoom(context, transaction);
      this.reply.array(transaction.count);
      context.inTransaction = true;
      context.running = transaction;
      const errorsBefore = this.reply.errorCount;
      for (let i = 0; i < transaction.count; i++) {
        transaction.current = i;
        const command = transaction.commands[i];
        context.bind(client, transaction.bytes, transaction.args, transaction.start(i), transaction.argc(i));
        context.command = command;
        const refused = client.unrestrictedAt === this.users.epoch ? null : refusedInTransaction(context, command);
        if (refused !== null) {
          this.reply.error(refused);
          continue;
        }
        if (command.keyMode === KeyMode.ONE) context.keyHash = transaction.hash(i);
        else this.hashKeys(command);
        this.measured(command);
      }
      context.inTransaction = false;
      this.errorsInside = this.reply.errorCount - errorsBefore;
      context.bind(client, input, argPairs, argPairsFrom, argc);
      context.command = exec;
    } else {
      this.reply.nilArray();
    }
    this.unlockAll();
    this.keyspace.releaseReserved();
    this.transactions.give(transaction);
  }

  // ---- refusing

  /** Replies an error before the command ran; inside MULTI it spoils the transaction, which EXEC's own ends. */
  reject(command: Command | null, text: string): void {
    const { client } = this.context;
    dropWork(client, this.counters);
    if (command !== null) this.stats[command.index * CommandStat.WORDS + CommandStat.rejected]++;
    if (command?.spec.name === 'exec') {
      endTransaction(client, this.counters);
      return this.reply.error(`EXECABORT Transaction discarded because of: ${text.replace(/^ERR /, '')}`);
    }
    if (client.transaction !== null) client.transaction.broken = true;
    this.reply.error(text);
  }

  private rejectUnknown(): void {
    const context = this.context;
    // A browser was made to send its request here: nothing of it may be taken for a command, its headers least of all.
    if (context.argIs(0, 'POST') || context.argIs(0, 'HOST:')) context.client.closing = Closing.NOW;
    else this.reject(null, unknownRequest(context, this.table));
  }

  private queue(command: Command, transaction: Transaction, keyHashKnown: boolean): void {
    if (command.has(Flag.NO_MULTI)) return this.reject(command, 'ERR Command not allowed inside a transaction');
    // What is queued takes memory too, whatever it does.
    if (this.keyspace.isOutOfMemory) return this.reject(command, NO_MEMORY);
    const isHashed = command.keyMode === KeyMode.ONE ? this.hashKey(command, keyHashKnown) : this.hashKeys(command);
    if (!isHashed) return this.reject(command, KEY_TOO_LONG);
    const before = transaction.memoryBytes;
    if (!transaction.queue(command, this.context)) return this.reject(command, 'ERR the transaction is too large');
    charge(this.context.client, this.counters, transaction.memoryBytes - before);
    this.reply.queued();
  }

  // ---- blocked clients' requests

  /** Runs the bound request of a blocked client once more. Its locks are held, as far as it may look. */
  retry(): void {
    const context = this.context;
    const command = this.lookup() as Command;
    context.command = command;
    this.hashKeys(command);
    if (command.stage === null || command.stage(context)) command.run!(context);
    if (command.stage !== null && this.keyspace.hasStaged) this.keyspace.dropStaged();
  }

  /** Locks all keys of the bound request around `work`. */
  withLocks(work: () => void): void {
    const command = this.lookup() as Command;
    this.hashKeys(command);
    this.isWriting = command.has(Flag.WRITE);
    this.keyspace.lockSet.clear();
    this.addLocks(command);
    this.keyspace.lockSet.acquire();
    this.held = Held.SET;
    work();
    this.unlockAll();
  }

  // ---- running

  private call(command: Command, keyHashKnown: boolean): void {
    const context = this.context;
    const keyspace = this.keyspace;
    this.isWriting = (command.flags & Flag.WRITE) !== 0;
    if (command.has(Flag.DENYOOM) && keyspace.isOutOfMemory && !context.largeStaged)
      return this.reject(command, NO_MEMORY);
    if (command.keyMode === KeyMode.ONE && !command.exclusive) {
      if (!this.hashKey(command, keyHashKnown)) return this.reject(command, KEY_TOO_LONG);
      if (command.stage !== null && !context.largeStaged && !command.stage(context)) return this.count(command, true);
      const hash = context.keyHash;
      keyspace.lock(hash);
      this.held = Held.KEY;
      this.heldHash = hash;
      if (this.isWriting && keyspace.holds.any && mayHoldBack(context) && keyspace.holds.isHeld(hash)) {
        this.held = Held.NOTHING;
        if (keyspace.hasStaged) keyspace.dropStaged();
        keyspace.unlock(hash);
        return holdBack(context);
      }
      if (this.isWriting && keyspace.isWatched(hash) && this.mustBeAlone(command.firstKey, hash)) {
        this.held = Held.NOTHING;
        keyspace.unlock(hash);
        return this.callAlone(command);
      }
      this.measured(command);
      this.held = Held.NOTHING;
      keyspace.unlock(hash);
      return;
    }
    if (command.exclusive) {
      if (!this.hashKeys(command)) return this.reject(command, KEY_TOO_LONG);
      // Scripts: of the keys that they name.
      const mayWrite = command.has(Flag.MAY_REPLICATE);
      if (mayWrite && keyspace.holds.any && mayHoldBack(context) && changesHeld(context)) return holdBack(context);
      return this.callAlone(command);
    }
    if (command.keyMode !== KeyMode.NONE) {
      if (!this.hashKeys(command)) return this.reject(command, KEY_TOO_LONG);
      if (command.runsAlone?.(context)) return this.callAlone(command);
      if (command.stage !== null && !command.stage(context)) return this.count(command, true);
      keyspace.lockSet.clear();
      this.addLocks(command);
      keyspace.lockSet.acquire();
      this.held = Held.SET;
      if (this.isWriting && keyspace.holds.any && mayHoldBack(context) && changesHeld(context)) {
        if (keyspace.hasStaged) keyspace.dropStaged();
        this.unlockAll();
        return holdBack(context);
      }
      if (this.isWriting && this.hub.blocked.hasAlone && this.someMustBeAlone()) {
        this.unlockAll();
        return this.callAlone(command);
      }
    } else if (context.client.transaction !== null && command.spec.name === 'exec' && execWaits(context)) {
      return;
    }
    this.measured(command);
    this.unlockAll();
  }

  /** With the gate closed: nobody else is at work. */
  private callAlone(command: Command): void {
    this.keyspace.closeGate();
    this.held = Held.GATE;
    this.measured(command);
    this.unlockAll();
  }

  /** See BlockedClients.mustBeAlone. */
  private mustBeAlone(argument: number, hash: number): boolean {
    const context = this.context;
    const { blocked } = this.hub;
    return blocked.mustBeAlone(hash, context.input, context.argOffset(argument), context.argLength(argument));
  }

  private someMustBeAlone(): boolean {
    const { keyArguments, keyHashes, keyCount } = this.context;
    for (let k = 0; k < keyCount; k++) if (this.mustBeAlone(keyArguments[k], keyHashes[k])) return true;
    return false;
  }

  /** Runs the handler and keeps its statistics. In a transaction it stages as well: the locks are held already. */
  private measured(command: Command): void {
    const context = this.context;
    const reply = this.reply;
    const errorsBefore = reply.errorCount;
    const { work } = context.client;
    if (work !== null) work.goesOn = false;
    const timed = work !== null || this.times.isTimed(command);
    const startMs = timed ? performance.now() : 0;
    if (this.ctl[Super.REBUILD_STATE_WORD] !== 0 && command.has(Flag.WRITE)) this.noteWritten(command);
    const { effects } = this.keyspace.feed;
    if (effects !== null) beginEffect(effects, context, command);
    if (work !== null && work.steps !== null) {
      goOn(context, work);
    } else if (context.inTransaction && command.stage !== null) {
      if (command.stage(context)) command.run!(context);
    } else {
      command.run!(context);
    }
    if (effects !== null) endEffect(effects, context);
    if (command.stage !== null && this.keyspace.hasStaged) this.keyspace.dropStaged();
    if (context.client.work !== null && this.goesOn(context.client, startMs)) return;
    // What a script does it does for its caller. The keys are still locked.
    const caller = this.isForScripts ? this.hub.caller : context.client;
    if (caller.attention !== 0 && isTracked(caller, command)) {
      this.hashKeys(command);
      this.hub.tracking.remember(context, caller);
    }
    if (this.ctl[Super.MONITORS_WORD] !== 0) tellMonitors(context, command);
    this.count(command, reply.errorCount - errorsBefore !== this.errorsInside);
    this.errorsInside = 0;
    if (timed) this.times.add(context, command, caller, performance.now() - startMs, work);
  }

  /** True when the request that has just run goes on in the next turn; else nothing is left of its work. */
  private goesOn(client: Client, startMs: number): boolean {
    const work = client.work as LongWork;
    if (work.goesOn) work.countSlice(startMs === 0 ? 0 : performance.now() - startMs);
    else dropWork(client, this.counters);
    return work.goesOn;
  }

  /** After a reboot, the keys of a writing command shall not come back as they were: it may be their removal, and find nothing yet. */
  private noteWritten(command: Command): void {
    this.hashKeys(command);
    const { keyHashes, keyCount } = this.context;
    for (let k = 0; k < keyCount; k++) this.keyspace.noteWritten(keyHashes[k]);
  }

  /** An answer that came later was an error. */
  countFailure(command: Command | null): void {
    if (command !== null) this.stats[command.index * CommandStat.WORDS + CommandStat.failed]++;
  }

  private count(command: Command, failed: boolean): void {
    const row = command.index * CommandStat.WORDS;
    this.stats[row + CommandStat.calls]++;
    if (failed) this.stats[row + CommandStat.failed]++;
  }

  // ---- scripts

  /**
   * A command of a running script. Its key is not locked: the script's own command holds the gate. Refusals are Redis's, without the
   * checks that only connections have.
   */
  executeInScript(run: ScriptRun): void {
    const context = this.context;
    const command = this.lookup();
    if (command === null) return this.reply.error('ERR Unknown Redis command called from script');
    const refused = refusalInScript(context, command, run);
    if (refused !== '') return this.reject(command, refused);
    if (!this.hashKeys(command)) return this.reject(command, KEY_TOO_LONG);
    context.command = command;
    if (command.has(Flag.WRITE) && !run.hasWritten) {
      run.hasWritten = true;
      run.outer.isWriting = true;
    }
    this.measured(command);
  }

  // ---- keys and locks

  /** Hashes the key of a command that has exactly one, if need be; false = it is too long. */
  private hashKey(command: Command, isKnown: boolean): boolean {
    const context = this.context;
    const length = context.argLength(command.firstKey);
    if (length > MAX_KEY_BYTES) return false;
    if (isKnown) return true;
    context.keyHash = this.keyspace.hash(context.db, context.input, context.argOffset(command.firstKey), length);
    return true;
  }

  /** Finds and hashes all keys of the bound request; false = one of them is too long. */
  private hashKeys(command: Command): boolean {
    const context = this.context;
    const count = extractKeys(context, command);
    const db = context.client.db;
    for (let k = 0; k < count; k++) {
      const argument = context.keyArguments[k];
      const length = context.argLength(argument);
      if (length > MAX_KEY_BYTES) return false;
      context.keyHashes[k] = this.keyspace.hash(db, context.input, context.argOffset(argument), length);
    }
    if (count > 0) context.keyHash = context.keyHashes[0];
    return true;
  }

  private addLocks(command: Command): void {
    const context = this.context;
    const lockSet = this.keyspace.lockSet;
    for (let k = 0; k < context.keyCount; k++) lockSet.add(context.keyHashes[k]);
    if (command.extraLocks !== null) command.extraLocks(context);
  }

  private lockTransaction(transaction: Transaction, watched: ReadonlyMap<string, WatchedKey> | null): void {
    const context = this.context;
    const client = context.client;
    const keyspace = this.keyspace;
    keyspace.lockSet.clear();
    if (watched !== null) for (const w of watched.values()) keyspace.lockSet.add(hashWatched(keyspace, w));
    for (let i = 0; i < transaction.count; i++) {
      const command = transaction.commands[i];
      if (command.keyMode === KeyMode.ONE) {
        keyspace.lockSet.add(transaction.hash(i));
        continue;
      }
      context.bind(client, transaction.bytes, transaction.args, transaction.start(i), transaction.argc(i));
      this.hashKeys(command);
      this.addLocks(command);
    }
    keyspace.lockSet.acquire();
    this.held = Held.SET;
  }

  private unlockAll(): void {
    const held = this.held;
    const { keyspace } = this;
    this.held = Held.NOTHING;
    // Who has waited for a change finds the time as it is now: it stood still in a transaction or script.
    if (keyspace.feed.readyCount !== 0) keyspace.refreshClock();
    if (held === Held.SET) keyspace.lockSet.release();
    else if (held === Held.GATE) keyspace.openGate();
  }
}

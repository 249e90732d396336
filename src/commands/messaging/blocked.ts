/**
 * Blocked clients: BLPOP and its like, XREAD BLOCK, WAIT.
 *
 * A handler that finds nothing calls `context.block(...)`: its request is copied into a wait record in shared memory and
 * enters the interest table under its keys, whose shards are still locked. Whoever changes one of these keys, in whatever
 * worker, runs the request again for the oldest waiter before it releases the key's lock: the same handler, with
 * `context.isRetry` set, its reply captured and sent to the waiter's worker. So a handler needs one form for both:
 *
 *     for each key k of mine:
 *       if (!context.mayUse(k)) continue;            // on a retry other keys are not locked
 *       if (found) { pop, reply, return; }
 *     context.block({ type: ItemType.LIST, timeoutMs, onTimeout: WaitReply.NIL_ARRAY });
 *
 * A changed key of another type than `type`, which a retry answers with WRONGTYPE, leaves the client waiting. A command that changes keys
 * beyond the one that became ready (BLMOVE's destination) says `alone`: a command that may make its key ready runs with the gate
 * closed then, and serves it. Where that was not foreseen (other protocols) the waiter's own worker runs it, with all its keys locked.
 *
 * Invariant: a client stands in `#waiting` exactly while `client.blocked` is set; its record is answered once.
 */
import { Bytes } from '../../layout/bytes.js';
import { Counter } from '../../layout/counters.js';
import { InterestKind, Wait, WaitState } from '../../layout/interest.js';
import { ItemType } from '../../layout/item.js';
import { MessageKind } from '../../layout/mailbox.js';
import { Super } from '../../layout/superblock.js';
import type { Keyspace } from '../../store/keyspace.js';
import { type WaitPlace, Waits } from '../../store/waits.js';
import { refusedWhileBlocked } from '../acl/authorize.js';
import { Client, ReplyMode } from '../clients/client.js';
import type { Command } from '../command.js';
import type { Context } from '../context.js';
import { NO_MEMORY, WRONG_TYPE } from '../errors.js';
import type { Executor } from '../executor.js';
import { Capture } from './capture.js';
import { Deadlines } from './deadlines.js';
import type { ClientHost } from './host.js';
import { replyTimeout, type WaitReply } from './wait-reply.js';

export { WaitReply } from './wait-reply.js';

export interface WaitOptions {
  /** Kind of value it waits for; NONE when nothing but time will answer. */
  readonly type: ItemType;
  /** 0 = for ever. */
  readonly timeoutMs: number;
  readonly onTimeout: WaitReply;
  /** Which of the command's keys (indices of context.keyHashes); default all. */
  readonly keys?: readonly number[];
  /** It changes further keys when it is served. */
  readonly alone?: boolean;
  /** It is answered too when its key is deleted or becomes another type (XREADGROUP): with the error that the retry gives. */
  readonly untilGone?: boolean;
  /** Run this request instead of the present one (XREAD: `$` is an id by then). */
  readonly request?: readonly Uint8Array[];
}

/** A client of this worker that waits. */
export interface Blocked {
  readonly client: Client;
  /** Null when it waits for no key. */
  readonly place: WaitPlace | null;
  readonly hashes: Int32Array;
  readonly checks: Int32Array;
  readonly onTimeout: WaitReply;
  readonly isAlone: boolean;
  /** It has left: whatever comes for it is thrown away. */
  isGone: boolean;
}

const WRONG_TYPE_REPLY = Buffer.from(`-${WRONG_TYPE}`);
const UNBLOCKED = 'UNBLOCKED client unblocked via CLIENT UNBLOCK';
/** How often waits whose server may have died are looked at. */
const CHECK_MS = 1000;
/** When somebody is serving a client whose time is up. */
const AGAIN_MS = 1;

export class BlockedClients {
  host: ClientHost | null = null;

  readonly #executor: Executor;
  readonly #keyspace: Keyspace;
  readonly #waits: Waits;
  readonly #capture: Capture;
  readonly #counters: Float64Array;
  /** By ticket; those without a record under negative numbers. */
  readonly #waiting = new Map<number, Blocked>();
  readonly #deadlines = new Deadlines<number>();
  /** Stands for clients of other workers while their requests run here. */
  readonly #standIn: Client;
  #nextOwnTicket = -1;
  #nextCheckMs = 0;

  constructor(executor: Executor) {
    const { environment, context } = executor;
    this.#executor = executor;
    this.#standIn = new Client(0, -1, '', environment.users.default);
    this.#keyspace = environment.keyspace;
    this.#waits = new Waits(this.#keyspace.memory, this.#keyspace.pool);
    this.#capture = new Capture(context.reply);
    this.#counters = environment.counters.values;
    this.#keyspace.feed.serve = () => this.#serveReady();
  }

  get count(): number {
    return this.#waiting.size;
  }

  /** Keys that clients of any worker wait for, and those of them whose end some wait for as well. */
  keysWaitedFor(): { readonly all: number; readonly untilGone: number } {
    const all = new Set<string>();
    const untilGone = new Set<string>();
    const { interests, memory } = this.#keyspace;
    if (Atomics.load(memory.ctl, Super.WAITERS_WORD) === 0) return { all: 0, untilGone: 0 };
    interests.visitWaiters((hash, check, page, unit) => {
      const { words, word } = this.#waits.at(page, unit);
      const flags = words[word + Wait.FLAGS_WORD];
      const key = `${flags & Wait.DB_MASK} ${hash} ${check}`;
      all.add(key);
      if ((flags & Wait.UNTIL_GONE) !== 0) untilGone.add(key);
    });
    return { all: all.size, untilGone: untilGone.size };
  }

  // ---- blocking

  /** See WaitOptions. Writes the reply itself where nothing may block (MULTI, scripts) or memory is short. */
  block(context: Context, options: WaitOptions): void {
    if (context.isRetry) {
      context.stillWaits = true;
      return;
    }
    if (!context.canBlock || this.host === null) return replyTimeout(context, options.onTimeout);
    const { client } = context;
    const count = options.keys?.length ?? (options.type === ItemType.NONE ? 0 : context.keyCount);
    const hashes = new Int32Array(count);
    const checks = new Int32Array(count);
    let place: WaitPlace | null = null;
    if (count > 0) {
      place = this.#record(context, options);
      if (place === null) return context.reply.error(NO_MEMORY);
      if (!this.#enter(context, options, place, hashes, checks)) {
        this.#waits.cancel(place);
        return context.reply.error(NO_MEMORY);
      }
    }
    if (options.alone === true) Atomics.add(this.#keyspace.memory.ctl, Super.ALONE_WAITERS_WORD, 1);
    const ticket = place === null ? this.#nextOwnTicket-- : place.ticket;
    const isAlone = options.alone === true;
    const blocked = { client, place, hashes, checks, onTimeout: options.onTimeout, isAlone, isGone: false };
    client.suspended = true;
    client.blocked = blocked;
    this.#waiting.set(ticket, blocked);
    this.#counters[Counter.blockedClients] = this.#waiting.size;
    if (options.timeoutMs > 0) this.#deadlines.add(this.host.monotonicMs + options.timeoutMs, ticket);
  }

  #record(context: Context, options: WaitOptions): WaitPlace | null {
    const { client } = context;
    if (!this.#keyspace.mailboxes.open(this.host!.wakeFd)) return null;
    const flags =
      client.db |
      (client.protocol << Wait.PROTOCOL_SHIFT) |
      (options.alone === true ? Wait.ALONE : 0) |
      (client.noTouch ? Wait.NO_TOUCH : 0) |
      (options.untilGone === true ? Wait.UNTIL_GONE : 0);
    if (options.request === undefined) {
      return this.#waits.create(
        flags,
        options.type,
        context.input,
        context.argPairs,
        context.argPairsFrom,
        context.argc,
      );
    }
    const { request } = options;
    const args = new Int32Array(request.length * 2);
    let at = 0;
    for (let i = 0; i < request.length; i++) {
      args[i * 2] = at;
      args[i * 2 + 1] = request[i].length;
      at += request[i].length;
    }
    return this.#waits.create(flags, options.type, Bytes.from(Buffer.concat(request)), args, 0, request.length);
  }

  /** Enters the wait under its keys, each once; false = no memory, nothing is entered. */
  #enter(context: Context, options: WaitOptions, place: WaitPlace, hashes: Int32Array, checks: Int32Array): boolean {
    const { interests } = this.#keyspace;
    for (let i = 0; i < hashes.length; i++) {
      const k = options.keys === undefined ? i : options.keys[i];
      const argument = context.keyArguments[k];
      const hash = context.keyHashes[k];
      const check = interests.check(context.input, context.argOffset(argument), context.argLength(argument));
      hashes[i] = hash;
      checks[i] = check;
      if (isAmong(hashes, checks, i)) continue;
      if (interests.addWaiter(hash, check, place.page, place.unit, place.ticket)) continue;
      for (let k2 = 0; k2 < i; k2++) interests.removeWaiter(hashes[k2], checks[k2], place.ticket);
      return false;
    }
    return true;
  }

  /**
   * True when a command that may change this key shall run with the gate closed: a waiter of it would have to lock further keys before
   * the change is anybody else's. Where this worker is the only one, it serves the waiter before its next command anyway.
   */
  mustBeAlone(hash: number, bytes: Bytes, offset: number, length: number): boolean {
    if (!this.hasAlone) return false;
    const { interests } = this.#keyspace;
    const count = interests.collect(InterestKind.WAITER, hash, interests.check(bytes, offset, length));
    for (let i = 0; i < count; i++) {
      const { words, word } = this.#waits.at(interests.values[i], interests.units[i]);
      if ((words[word + Wait.FLAGS_WORD] & Wait.ALONE) !== 0) return true;
    }
    return false;
  }

  /** True when there are such waiters, of whatever key, and other workers. */
  get hasAlone(): boolean {
    if ((this.#executor.environment.control?.workerCount ?? 1) === 1) return false;
    return Atomics.load(this.#keyspace.memory.ctl, Super.ALONE_WAITERS_WORD) !== 0;
  }

  // ---- serving: the one that changed a key

  /** The store is about to release the locks of keys that have changed and are waited for. */
  #serveReady(): void {
    const { feed } = this.#keyspace;
    const executor = this.#executor;
    const { client, command } = executor.context;
    for (let i = 0; i < feed.readyCount; i++) {
      const hash = feed.ready[i * 2];
      const check = feed.ready[i * 2 + 1];
      // From here on it may become ready again.
      feed.ready[i * 2] = 0;
      feed.ready[i * 2 + 1] = 0;
      this.#serveKey(hash, check);
    }
    feed.readyCount = 0;
    executor.context.client = client;
    executor.context.command = command;
  }

  #serveKey(hash: number, check: number): void {
    const { interests, feed, gate, mailboxes } = this.#keyspace;
    const count = interests.collect(InterestKind.WAITER, hash, check);
    const [seats, pages, units, tickets] = [interests.seats, interests.values, interests.units, interests.tickets].map(
      (found) => found.slice(0, count),
    );
    const waits = this.#waits;
    /** Types of value, a bit each, of which nothing is left for those behind. */
    let exhausted = 0;
    for (let i = 0; i < count; i++) {
      if (!waits.isOpen(pages[i], units[i], tickets[i])) continue;
      if (!waits.claim(pages[i], units[i], tickets[i])) {
        // Another one has it in hand, for another of its keys: it must look at this one as well.
        feed.tell(seats[i], hash, check);
        continue;
      }
      const { words, word } = waits.at(pages[i], units[i]);
      const flags = words[word + Wait.FLAGS_WORD];
      const type = words[word + Wait.TYPE_WORD];
      const isAlone = gate.isExclusive;
      if (((exhausted >>> type) & 1) === 1) {
        waits.release(pages[i], units[i], WaitState.WAITING);
      } else if ((flags & Wait.ALONE) !== 0 && !isAlone) {
        waits.release(pages[i], units[i], WaitState.WAITING);
        feed.tell(seats[i], hash, check);
        exhausted |= 1 << type;
      } else {
        mailboxes.hold(seats[i]);
        const reply = this.#attempt(this.#bind(pages[i], units[i]).flags, isAlone ? null : hash);
        if (reply !== null) {
          waits.release(pages[i], units[i], WaitState.SERVED);
          this.#send(seats[i], tickets[i], reply);
        } else {
          waits.release(pages[i], units[i], WaitState.WAITING);
          // Readers of a stream want different things; one who pops in vain speaks for all behind it.
          if (type !== ItemType.STREAM) exhausted |= 1 << type;
        }
        mailboxes.endHold();
      }
    }
  }

  #send(seat: number, ticket: number, reply: Uint8Array): void {
    const bytes = Bytes.from(reply);
    this.#keyspace.mailboxes.send(seat, MessageKind.SERVED, ticket, 0, bytes, 0, bytes.length, bytes, 0, 0);
  }

  /** Binds the executor's context to a record's request, for a client as it describes. */
  #bind(page: number, unit: number): { flags: number } {
    const { words, word } = this.#waits.at(page, unit);
    const flags = words[word + Wait.FLAGS_WORD];
    const argc = words[word + Wait.ARGC_WORD];
    const bytes = this.#waits.bytesOf(page);
    const args = new Int32Array(argc * 2);
    for (let i = 0; i < argc; i++) {
      args[i * 2] = (word << 2) + words[word + Wait.HEADER_WORDS + i * 2];
      args[i * 2 + 1] = words[word + Wait.HEADER_WORDS + i * 2 + 1];
    }
    const standIn = this.#standIn;
    standIn.db = flags & Wait.DB_MASK;
    standIn.protocol = (flags >>> Wait.PROTOCOL_SHIFT) & Wait.PROTOCOL_MASK;
    standIn.noTouch = (flags & Wait.NO_TOUCH) !== 0;
    this.#executor.context.bind(standIn, bytes, args, 0, argc);
    return { flags };
  }

  /** Runs the bound request with the locks that are held. Null = it still waits. */
  #attempt(flags: number, onlyHash: number | null): Uint8Array | null {
    const { context } = this.#executor;
    this.#capture.start(context.client.protocol);
    context.isRetry = true;
    context.onlyHash = onlyHash;
    context.stillWaits = false;
    const { errorCount } = context.reply;
    this.#executor.retry();
    context.isRetry = false;
    context.onlyHash = null;
    const reply = this.#capture.take();
    if (context.stillWaits || reply.length === 0) return null;
    if (context.reply.errorCount === errorCount) return reply;
    if ((flags & Wait.UNTIL_GONE) === 0 && WRONG_TYPE_REPLY.equals(reply.subarray(0, WRONG_TYPE_REPLY.length))) {
      // Nobody gets it.
      context.reply.uncountError(WRONG_TYPE);
      return null;
    }
    this.#executor.countFailure(context.command);
    return reply;
  }

  // ---- serving: the waiter's own worker, which may lock all its keys

  /** Something changed at a key that clients of this worker wait for. */
  changed(hash: number, check: number): void {
    const { interests, memory } = this.#keyspace;
    const count = interests.collect(InterestKind.WAITER, hash, check);
    const tickets = interests.tickets.slice(0, count);
    const seats = interests.seats.slice(0, count);
    for (let i = 0; i < count; i++) if (seats[i] === memory.self) this.#retry(tickets[i]);
  }

  #retry(ticket: number): void {
    const blocked = this.#waiting.get(ticket);
    if (blocked === undefined || blocked.place === null) return;
    const { page, unit } = blocked.place;
    if (!this.#waits.claim(page, unit, ticket)) return;
    const { flags } = this.#bind(page, unit);
    let reply: Uint8Array | null = null;
    this.#executor.withLocks(() => {
      reply = this.#attempt(flags, null);
      // Before the locks go: a change from then on must find it waiting.
      this.#waits.release(page, unit, reply === null ? WaitState.WAITING : WaitState.SERVED);
    });
    if (reply !== null) this.served(ticket, Bytes.from(reply), 0, (reply as Uint8Array).length);
  }

  /** The reply for a blocked client has come. */
  served(ticket: number, bytes: Bytes, offset: number, length: number): void {
    const blocked = this.#waiting.get(ticket);
    if (blocked === undefined) return;
    this.#waits.finish(blocked.place!);
    this.#leave(ticket, blocked);
    if (blocked.isGone) return;
    this.#keyspace.feed.effects?.onServed?.(blocked.client.conn, blocked.hashes);
    this.#answer(blocked, () => this.#executor.context.reply.output.range(bytes, offset, length));
  }

  #answer(blocked: Blocked, write: () => void): void {
    const { client } = blocked;
    const { reply } = this.#executor.context;
    this.host!.resume(client.conn, client.id, () => {
      if (client.replyMode === ReplyMode.OFF) return;
      reply.protocol = client.protocol;
      write();
    });
    this.#executor.times.answered(client);
  }

  // ---- ending a wait

  /** Looks at what is due: once a turn. */
  turn(nowMs: number): void {
    const deadlines = this.#deadlines;
    while (deadlines.firstMs <= nowMs) {
      const ticket = deadlines.take();
      const blocked = this.#waiting.get(ticket);
      if (blocked === undefined) continue;
      if (!this.#cancel(ticket, blocked)) deadlines.add(nowMs + AGAIN_MS, ticket);
      else if (!blocked.isGone) this.#timedOut(blocked);
    }
    if (nowMs < this.#nextCheckMs || this.#waiting.size === 0) return;
    this.#nextCheckMs = nowMs + CHECK_MS;
    for (const [ticket, blocked] of this.#waiting) this.#checkServer(ticket, blocked);
  }

  /** Milliseconds until something is due. */
  waitMs(nowMs: number): number {
    return Math.max(0, this.#deadlines.firstMs - nowMs);
  }

  /** One who was serving has died: its half-made change is rolled back, the client waits again. */
  #checkServer(ticket: number, blocked: Blocked): void {
    if (blocked.place === null) return;
    if (blocked.isGone) {
      this.#cancel(ticket, blocked);
      return;
    }
    const server = this.#waits.servedBy(blocked.place);
    if (server < 0 || this.#keyspace.memory.isAlive(server)) return;
    this.#waits.release(blocked.place.page, blocked.place.unit, WaitState.WAITING);
    this.#retry(ticket);
  }

  /** Messages have been lost, or whole databases are others: everybody looks for itself. */
  recheckAll(): void {
    for (const ticket of [...this.#waiting.keys()]) this.#retry(ticket);
  }

  #timedOut(blocked: Blocked): void {
    const { context } = this.#executor;
    this.#answer(blocked, () => replyTimeout(context, blocked.onTimeout));
  }

  /** CLIENT UNBLOCK. False when the client does not wait. */
  unblock(client: Client, withError: boolean): boolean {
    const { blocked } = client;
    if (blocked === null) return false;
    const ticket = this.#ticketOf(blocked);
    if (!this.#cancel(ticket, blocked)) return false;
    if (withError) this.#answer(blocked, () => this.#executor.context.reply.error(UNBLOCKED));
    else this.#timedOut(blocked);
    return true;
  }

  /** Its user's rights have changed: a request that it may no longer make is refused. */
  rightsChanged(client: Client): void {
    const { blocked } = client;
    if (blocked === null || blocked.place === null) return;
    const { context } = this.#executor;
    const { client: bound, input, args, first, argc } = context;
    this.#bind(blocked.place.page, blocked.place.unit);
    context.client = client;
    const command = this.#executor.lookup() as Command;
    const refusal = refusedWhileBlocked(context, command);
    context.bind(bound, input, args, first, argc);
    if (refusal === null || !this.#cancel(blocked.place.ticket, blocked)) return;
    this.#executor.times.refused(client, command);
    this.#answer(blocked, () => context.reply.error(refusal));
  }

  /** The client's connection is gone. */
  closed(client: Client): void {
    const { blocked } = client;
    if (blocked === null) return;
    blocked.isGone = true;
    this.#cancel(this.#ticketOf(blocked), blocked);
  }

  #ticketOf(blocked: Blocked): number {
    if (blocked.place !== null) return blocked.place.ticket;
    for (const [ticket, other] of this.#waiting) if (other === blocked) return ticket;
    throw new Error('a blocked client is not among those that wait');
  }

  /** False while somebody is serving it. */
  #cancel(ticket: number, blocked: Blocked): boolean {
    if (blocked.place !== null && !this.#waits.cancel(blocked.place)) return false;
    this.#leave(ticket, blocked);
    return true;
  }

  #leave(ticket: number, blocked: Blocked): void {
    const { interests } = this.#keyspace;
    for (let i = 0; i < blocked.hashes.length; i++) {
      if (!isAmong(blocked.hashes, blocked.checks, i)) {
        interests.removeWaiter(blocked.hashes[i], blocked.checks[i], ticket);
      }
    }
    if (blocked.isAlone) Atomics.sub(this.#keyspace.memory.ctl, Super.ALONE_WAITERS_WORD, 1);
    this.#waiting.delete(ticket);
    this.#counters[Counter.blockedClients] = this.#waiting.size;
    blocked.client.blocked = null;
  }
}

/** True when the i-th pair stands further in front as well. */
function isAmong(hashes: Int32Array, checks: Int32Array, i: number): boolean {
  for (let k = 0; k < i; k++) if (hashes[k] === hashes[i] && checks[k] === checks[i]) return true;
  return false;
}

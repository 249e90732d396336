/**
 * A worker's side of the messages between workers: what arrives, for whom it is, and what is due.
 *
 * The loop calls `turn` once a turn, the driver `deliver` after each command that sent something to its own worker, so that a
 * subscriber here sees a message before the publisher's next command runs. Invariant: nothing is delivered while a handler runs or a
 * lock is held.
 */
import type { Bytes } from '../../layout/bytes.js';
import { Counter } from '../../layout/counters.js';
import { Message, MessageKind } from '../../layout/mailbox.js';
import type { Mailboxes } from '../../memory/mailboxes.js';
import type { DriverClient } from '../../protocol/driver.js';
import { Invalidation } from '../../store/change-feed.js';
import type { Keyspace } from '../../store/keyspace.js';
import { Attention, Client } from '../clients/client.js';
import { BLOCKED_CLIENT_BYTES } from '../clients/client-memory.js';
import type { Executor } from '../executor.js';
import { BlockedClients } from './blocked.js';
import type { ClientHost } from './host.js';
import { Monitors } from './monitors.js';
import { Notifications } from './notifications.js';
import { Subscriptions } from './subscriptions.js';
import { TrackingTable } from './tracking.js';

/** How soon a sender looks again whether a full ring has room. */
const BACKLOG_MS = 1;
/** Between two looks at who does not take its messages. */
const LIMITS_MS = 1000;

export class Hub {
  readonly blocked: BlockedClients;
  readonly subscriptions: Subscriptions;
  readonly notifications: Notifications;
  readonly tracking: TrackingTable;
  readonly monitors: Monitors;
  readonly mailboxes: Mailboxes;

  readonly #executor: Executor;
  readonly #keyspace: Keyspace;
  readonly #receive = (record: Bytes, at: number): void => this.#dispatch(record, at);
  /** Clients that get messages, with the time since when more of them wait than the soft limit allows (0 = they do not). */
  readonly #listeners = new Map<Client, number>();
  #host: ClientHost | null = null;
  #isDelivering = false;
  #nextLimitsMs = 0;

  constructor(executor: Executor) {
    const { environment, context } = executor;
    this.#executor = executor;
    this.#keyspace = environment.keyspace;
    this.mailboxes = this.#keyspace.mailboxes;
    this.blocked = new BlockedClients(executor);
    this.subscriptions = new Subscriptions(this.#keyspace, context.reply, environment.counters.values);
    this.notifications = new Notifications(this.#keyspace, this.subscriptions);
    this.tracking = new TrackingTable(this.#keyspace, context.reply, environment);
    this.monitors = new Monitors(this.#keyspace);
    this.tracking.clientOf = (id) => this.clientOf(id);
    this.tracking.write = (client, write) => {
      const { output } = context.reply;
      // Not into the middle of a reply.
      if (client.work?.isSending === true) return void client.work.later.push(write);
      output.begin(client.conn);
      write();
      output.end();
    };
    this.settingsChanged();
  }

  attach(host: ClientHost): void {
    this.#host = host;
    this.blocked.host = host;
  }

  /** At start, and whenever CONFIG SET has changed something. */
  settingsChanged(): void {
    this.notifications.configure(this.#executor.environment.settings.notifyKeyspaceEvents);
    this.tracking.settingsChanged();
  }

  /** True for the executor that serves connections; others run scripts. */
  isOf(executor: Executor): boolean {
    return executor === this.#executor;
  }

  /** The client whose request is being executed, by itself or in a script. */
  get caller(): Client {
    return this.#executor.context.client;
  }

  /** Number of this worker among the participants. */
  get seat(): number {
    return this.#keyspace.memory.self;
  }

  /** What it takes of the heap, beside what is charged to single clients. */
  get heapBytes(): number {
    return this.mailboxes.heapBytes + this.tracking.heapBytes + this.blocked.count * BLOCKED_CLIENT_BYTES;
  }

  // ---- once a turn

  /** True when the turn has something to do here. */
  isDue(nowMs: number): boolean {
    const { mailboxes } = this;
    return (
      mailboxes.hasMail ||
      mailboxes.localBytes !== 0 ||
      mailboxes.hasBacklog ||
      this.tracking.isDue ||
      this.blocked.waitMs(nowMs) === 0 ||
      (this.#listeners.size > 0 && nowMs >= this.#nextLimitsMs)
    );
  }

  /** Inside a batch, outside any command: delivers, times out, tries full rings again. */
  turn(nowMs: number): void {
    this.blocked.turn(nowMs);
    this.deliver();
    // What others have changed has been answered there: it is told before anything is answered that was sent later.
    this.tracking.tellChanged();
    if (this.mailboxes.hasBacklog) this.mailboxes.flush();
    if (this.#listeners.size > 0 && nowMs >= this.#nextLimitsMs) this.#checkLimits(nowMs);
  }

  /** The turn's commands have run, and the background: what this worker said to itself, and what is said once a turn. */
  endTurn(): void {
    if (this.mailboxes.localBytes !== 0) this.deliver();
    if (this.tracking.isDue) this.tracking.endTurn();
  }

  /** Most milliseconds that the worker may sleep now; call `awake` after. */
  sleep(nowMs: number): number {
    if (!this.mailboxes.sleep() || this.mailboxes.localBytes !== 0 || this.tracking.isDue) return 0;
    return Math.min(this.blocked.waitMs(nowMs), this.mailboxes.hasBacklog ? BACKLOG_MS : Number.POSITIVE_INFINITY);
  }

  awake(): void {
    this.mailboxes.awake();
  }

  // ---- receiving

  /** Delivers what has come. Whoever is being written to goes on afterwards. */
  deliver(): void {
    if (this.#isDelivering) return;
    this.#isDelivering = true;
    const { reply } = this.#executor.context;
    const { output, protocol } = reply;
    const conn = output.connection;
    if (conn >= 0) output.end();
    const { mailboxes } = this;
    if (mailboxes.takeLost()) this.#lost();
    do {
      mailboxes.drainLocal(this.#receive);
      mailboxes.drainRing(this.#receive);
    } while (mailboxes.localBytes !== 0);
    if (conn >= 0) output.begin(conn);
    reply.protocol = protocol;
    this.#isDelivering = false;
  }

  #dispatch(record: Bytes, at: number): void {
    const words = record.i32;
    const word = at >>> 2;
    const kind = words[word + Message.KIND_WORD];
    const a = words[word + Message.A_WORD];
    const b = words[word + Message.B_WORD];
    const bytesA = at + Message.HEADER_BYTES;
    const lengthA = words[word + Message.LENGTH_A_WORD];
    const lengthB = words[word + Message.LENGTH_B_WORD];
    switch (kind & 0xff) {
      case MessageKind.MESSAGE:
        this.subscriptions.deliver(a, record, bytesA, lengthA, bytesA + lengthA, lengthB);
        return;
      case MessageKind.SERVED:
        this.blocked.served(a, record, bytesA, lengthA);
        return;
      case MessageKind.CHANGED:
        this.blocked.changed(a, b);
        return;
      case MessageKind.INVALIDATE:
        if (b === Invalidation.TRACKED) this.tracking.changed(record, bytesA, lengthA, a);
        else this.tracking.changedAny(record, bytesA, lengthA, a);
        return;
      case MessageKind.INVALIDATE_ALL:
        if (b === 0) this.tracking.flushed();
        this.blocked.recheckAll();
        return;
      case MessageKind.REDIRECTED:
        if (!this.tracking.redirected(a, b, record, bytesA, lengthA, lengthB)) {
          const origin = Number(Buffer.from(record.u8.subarray(bytesA, bytesA + lengthA)).toString());
          const sender = (kind >>> 8) & 0xff;
          this.mailboxes.send(sender, MessageKind.REDIRECT_BROKEN, origin, 0, record, 0, 0, record, 0, 0);
        }
        return;
      case MessageKind.REDIRECT_BROKEN:
        this.tracking.redirectBrokenFor(a);
        return;
      case MessageKind.MONITOR:
        this.monitors.deliver(this.#executor.context.reply.output, record, bytesA, lengthA);
        return;
    }
  }

  /**
   * This worker did not keep up, and senders dropped messages. As with an output limit, whoever missed something is closed: it connects
   * again and knows that it has a gap. Blocked clients look for themselves.
   */
  #lost(): void {
    for (const client of [...this.#listeners.keys()]) this.#host?.closeClient(client.conn, false);
    this.blocked.recheckAll();
  }

  // ---- connections

  /** The client of that id, if it is this worker's. */
  clientOf(id: number): Client | null {
    const client = this.#host?.clientWithId(id) ?? null;
    return client instanceof Client ? client : null;
  }

  /** Makes sure that messages of others arrive; false = no memory for a mailbox, or no server to have clients. */
  listen(): boolean {
    return this.#host !== null && this.mailboxes.open(this.#host.wakeFd);
  }

  /** The client became one that gets messages, or ceased to be. */
  attentionChanged(client: Client): void {
    if (client.attention === 0) this.#listeners.delete(client);
    else if (!this.#listeners.has(client)) this.#listeners.set(client, 0);
    this.#executor.environment.counters.values[Counter.pubsubClients] = this.subscriptions.clientCount;
    this.#host?.limitsChanged(client.conn);
  }

  /** True for a client that gets messages nobody asked for one by one: the limits of subscribers hold for its output. */
  isListener(client: DriverClient): boolean {
    return client instanceof Client && (client.attention & (Attention.SUBSCRIBED | Attention.MONITOR)) !== 0;
  }

  /** Closes subscribers that have had more than the soft limit waiting for too long. */
  #checkLimits(nowMs: number): void {
    this.#nextLimitsMs = nowMs + LIMITS_MS;
    const { pubsubOutputBufferSoft, pubsubOutputBufferSeconds } = this.#executor.environment.settings;
    for (const [client, sinceMs] of [...this.#listeners]) {
      const isOver =
        pubsubOutputBufferSoft > 0 &&
        this.isListener(client) &&
        this.#host!.outputQueued(client.conn) > pubsubOutputBufferSoft;
      if (!isOver) {
        this.#listeners.set(client, 0);
      } else if (sinceMs === 0) {
        this.#listeners.set(client, nowMs);
      } else if (nowMs - sinceMs >= pubsubOutputBufferSeconds * 1000) {
        this.#executor.environment.counters.values[Counter.connectionsOutputLimitClosed]++;
        this.#host!.closeClient(client.conn, false);
      }
    }
  }

  /** The peer of a client that is not read has closed its side. True when the client shall go: it waits for nothing that is sure to come. */
  endsWithPeer(client: DriverClient): boolean {
    return client instanceof Client && client.blocked !== null;
  }

  /** The users have changed. */
  rightsChanged(client: DriverClient): void {
    if (client instanceof Client) this.blocked.rightsChanged(client);
  }

  /** CLIENT UNBLOCK. */
  unblock(client: DriverClient, withError: boolean): boolean {
    return client instanceof Client && this.blocked.unblock(client, withError);
  }

  /** RESET: the client wants to hear of nothing any more. */
  reset(client: Client): void {
    this.subscriptions.unsubscribeAll(client);
    this.tracking.disable(client);
    this.monitors.remove(client);
    this.attentionChanged(client);
  }

  closed(client: Client): void {
    this.blocked.closed(client);
    if (client.attention === 0 && client.subscription === null) return;
    this.reset(client);
    this.#listeners.delete(client);
  }
}

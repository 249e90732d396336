/**
 * A worker's side of the messages between workers: what arrives, for whom it is, and what is due.
 *
 * The loop calls `turn` once a turn, the driver `deliver` after each command that sent something to its own worker, so that a
 * subscriber here sees a message before the publisher's next command runs. Invariant: nothing is delivered while a handler runs or a
 * lock is held.
 */
import type { Bytes } from '../../layout/bytes.js';
import { Message, MessageKind } from '../../layout/mailbox.js';
import type { Mailboxes } from '../../memory/mailboxes.js';
import type { DriverClient } from '../../protocol/driver.js';
import type { Keyspace } from '../../store/keyspace.js';
import { Attention, Client } from '../client.js';
import type { Executor } from '../executor.js';
import { BlockedClients } from './blocked.js';
import type { ClientHost } from './host.js';
import { Notifications } from './notifications.js';
import { Subscriptions } from './subscriptions.js';

/** Attention bits of clients that get messages. */
const LISTENING = Attention.SUBSCRIBED | Attention.MONITOR;
/** How soon a sender looks again whether a full ring has room. */
const BACKLOG_MS = 1;

export class Hub {
  readonly blocked: BlockedClients;
  readonly subscriptions: Subscriptions;
  readonly notifications: Notifications;
  readonly mailboxes: Mailboxes;

  readonly #executor: Executor;
  readonly #keyspace: Keyspace;
  readonly #receive = (record: Bytes, at: number): void => this.#dispatch(record, at);
  #host: ClientHost | null = null;
  #isDelivering = false;

  constructor(executor: Executor) {
    this.#executor = executor;
    this.#keyspace = executor.environment.keyspace;
    this.mailboxes = this.#keyspace.mailboxes;
    this.blocked = new BlockedClients(executor);
    this.subscriptions = new Subscriptions(this.#keyspace, executor.context.reply);
    this.notifications = new Notifications(this.#keyspace, this.subscriptions);
    this.settingsChanged();
  }

  /** At start, and whenever CONFIG SET has changed something. */
  settingsChanged(): void {
    this.notifications.configure(this.#executor.environment.settings.notifyKeyspaceEvents);
  }

  attach(host: ClientHost): void {
    this.#host = host;
    this.blocked.host = host;
  }

  /** Makes sure that messages of others arrive; false = no memory for a mailbox, or no server to have clients. */
  listen(): boolean {
    return this.#host !== null && this.mailboxes.open(this.#host.wakeFd);
  }

  /** The client became one that gets messages, or ceased to be. */
  attentionChanged(client: Client): void {
    this.#host?.limitsChanged(client.conn);
  }

  // ---- once a turn

  /** True when the turn has something to do here. */
  isDue(nowMs: number): boolean {
    const { mailboxes } = this;
    return mailboxes.hasMail || mailboxes.localBytes !== 0 || mailboxes.hasBacklog || this.blocked.waitMs(nowMs) === 0;
  }

  /** Inside a batch, outside any command: delivers, times out, tries full rings again. */
  turn(nowMs: number): void {
    this.blocked.turn(nowMs);
    this.deliver();
    if (this.mailboxes.hasBacklog) this.mailboxes.flush();
  }

  /** Most milliseconds that the worker may sleep now; call `awake` after. */
  sleep(nowMs: number): number {
    if (!this.mailboxes.sleep() || this.mailboxes.localBytes !== 0) return 0;
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
    const { output } = this.#executor.context.reply;
    const conn = output.connection;
    if (conn >= 0) output.end();
    const { mailboxes } = this;
    if (mailboxes.takeLost()) this.#lost();
    do {
      mailboxes.drainLocal(this.#receive);
      mailboxes.drainRing(this.#receive);
    } while (mailboxes.localBytes !== 0);
    if (conn >= 0) output.begin(conn);
    this.#isDelivering = false;
  }

  #dispatch(record: Bytes, at: number): void {
    const words = record.i32;
    const word = at >>> 2;
    const a = words[word + Message.A_WORD];
    const b = words[word + Message.B_WORD];
    const bytesA = at + Message.HEADER_BYTES;
    const lengthA = words[word + Message.LENGTH_A_WORD];
    switch (words[word + Message.KIND_WORD] & 0xff) {
      case MessageKind.MESSAGE:
        this.subscriptions.deliver(a, record, bytesA, lengthA, bytesA + lengthA, words[word + Message.LENGTH_B_WORD]);
        return;
      case MessageKind.SERVED:
        this.blocked.served(a, record, bytesA, lengthA);
        return;
      case MessageKind.CHANGED:
        this.blocked.changed(a, b);
        return;
    }
  }

  /** This worker did not keep up, and senders dropped messages. */
  #lost(): void {
    this.blocked.recheckAll();
  }

  // ---- connections

  /** True for a client that gets messages: the limits of subscribers hold for its output. */
  isListener(client: DriverClient): boolean {
    return client instanceof Client && (client.attention & LISTENING) !== 0;
  }

  /** The peer of a client that is not read has closed its side. True when the client shall go: it waits for nothing that is sure to come. */
  endsWithPeer(client: DriverClient): boolean {
    return client instanceof Client && client.blocked !== null;
  }

  /** CLIENT UNBLOCK. */
  unblock(client: DriverClient, withError: boolean): boolean {
    return client instanceof Client && this.blocked.unblock(client, withError);
  }

  /** RESET: the client wants to hear of nothing any more. */
  reset(client: Client): void {
    this.subscriptions.unsubscribeAll(client);
    this.attentionChanged(client);
  }

  closed(client: Client): void {
    this.subscriptions.unsubscribeAll(client);
    this.blocked.closed(client);
  }
}

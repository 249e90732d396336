/**
 * Client-side caching of one worker: which of its clients may have cached what, and who gets the invalidations.
 *
 * Shared memory knows which workers are interested in a key (store/interests), or in all keys; the names of the keys and
 * prefixes, and the clients, stand here. A change of a key takes the key out of the table, so a client hears of one change and must
 * read again. Invariant: every key in `#keys` has this participant's node in the interest table, or a message about its change is on its way.
 */
import { Bytes } from '../../layout/bytes.js';
import { Counter } from '../../layout/counters.js';
import { MessageKind } from '../../layout/mailbox.js';
import { ParticipantRole } from '../../layout/superblock.js';
import type { Reply } from '../../protocol/resp/reply.js';
import type { Keyspace } from '../../store/keyspace.js';
import { Attention, type Client } from '../clients/client.js';
import { charge, TRACKED_KEY_BYTES, TRACKED_PREFIX_BYTES } from '../clients/client-memory.js';
import type { Context } from '../context.js';
import type { Environment } from '../environment.js';
import { byteString } from '../numbers.js';

/** CLIENT TRACKING of one client. */
export interface Tracking {
  readonly broadcast: boolean;
  /** Broadcast: the prefixes; '' stands for all keys. */
  readonly prefixes: readonly string[];
  readonly optIn: boolean;
  readonly optOut: boolean;
  readonly noLoop: boolean;
  /** Client that gets the invalidations, and its participant; 0 = this one. */
  readonly redirect: number;
  readonly redirectSeat: number;
  redirectIsBroken: boolean;
  /** CLIENT CACHING holds for the next command. */
  caching: boolean;
}

interface Prefix {
  readonly clients: Set<Client>;
  /** Changed keys that have not been sent yet, with the client that changed them last. */
  readonly changed: Map<string, number>;
}

/** Keys of forgotten tables that are taken out of the interest table in one turn. */
const UNTRACK_STEP = 256;
const CHANNEL = '__redis__:invalidate';

export class TrackingTable {
  /** Writes to a client of this worker, outside any reply. */
  write: (client: Client, write: () => void) => void = () => undefined;
  /** The client of that id, if it is one of this worker's. */
  clientOf: (id: number) => Client | null = () => null;

  readonly #keyspace: Keyspace;
  readonly #reply: Reply;
  readonly #environment: Environment;
  readonly #clients = new Map<number, Client>();
  /** Key -> ids of the clients that may have cached it. */
  #keys = new Map<string, Set<number>>();
  #keyBytes = 0;
  readonly #prefixes = new Map<string, Prefix>();
  /** Clients of all keys together. */
  #items = 0;
  /** Keys of which nobody needs to hear any more. */
  readonly #stale: Iterator<string>[] = [];
  #hasChanged = false;

  constructor(keyspace: Keyspace, reply: Reply, environment: Environment) {
    this.#keyspace = keyspace;
    this.#reply = reply;
    this.#environment = environment;
  }

  // ---- on and off

  enable(client: Client, tracking: Tracking): void {
    const before = client.tracking;
    const prefixes = tracking.broadcast && tracking.prefixes.length === 0 ? [''] : tracking.prefixes;
    const all = [...new Set([...(before?.prefixes ?? []), ...prefixes])].sort();
    charge(client, this.#environment.counters.values, prefixBytes(all) - prefixBytes(before?.prefixes ?? []));
    client.tracking = { ...tracking, prefixes: all };
    client.attention |= Attention.TRACKING;
    this.#clients.set(client.id, client);
    for (const name of prefixes) {
      const prefix = this.#prefixes.get(name) ?? { clients: new Set(), changed: new Map() };
      prefix.clients.add(client);
      this.#prefixes.set(name, prefix);
    }
    this.#setRoles();
  }

  disable(client: Client): void {
    const { tracking } = client;
    if (tracking === null) return;
    for (const name of tracking.prefixes) {
      const prefix = this.#prefixes.get(name);
      if (prefix?.clients.delete(client) === true && prefix.clients.size === 0) this.#prefixes.delete(name);
    }
    charge(client, this.#environment.counters.values, -prefixBytes(tracking.prefixes));
    client.tracking = null;
    client.attention &= ~Attention.TRACKING;
    this.#clients.delete(client.id);
    if (this.#clients.size === 0) this.#forgetKeys();
    this.#setRoles();
  }

  #setRoles(): void {
    const { interests } = this.#keyspace;
    interests.setRole(ParticipantRole.TRACKS, this.#clients.size > 0);
    interests.setRole(ParticipantRole.BROADCAST, this.#prefixes.size > 0);
    this.#count();
  }

  #count(): void {
    const { values } = this.#environment.counters;
    values[Counter.trackingClients] = this.#clients.size;
    values[Counter.trackedKeys] = this.#keys.size;
    values[Counter.trackedItems] = this.#items;
    values[Counter.trackedPrefixes] = this.#prefixes.size;
  }

  /** What the remembered keys take of the heap. */
  get heapBytes(): number {
    return this.#keys.size * TRACKED_KEY_BYTES + this.#keyBytes;
  }

  // ---- reading

  /** A reading command of a tracking client, or of its script, has run; its keys are still locked. */
  remember(context: Context, client: Client): void {
    const { tracking } = client;
    if (tracking === null || tracking.broadcast) return;
    if ((tracking.optIn && !tracking.caching) || (tracking.optOut && tracking.caching)) return;
    for (let k = 0; k < context.keyCount; k++) {
      const argument = context.keyArguments[k];
      this.#rememberKey(context, client, context.keyHashes[k], argument);
    }
    this.#count();
  }

  #rememberKey(context: Context, client: Client, hash: number, argument: number): void {
    const { interests } = this.#keyspace;
    const offset = context.argOffset(argument);
    const length = context.argLength(argument);
    const key = byteString(context.input, offset, length);
    let clients = this.#keys.get(key);
    // Without memory for it the client would never hear of a change: so tell it at once.
    if (!interests.track(hash, interests.check(context.input, offset, length))) {
      this.#sendOwn(client, [key]);
      return;
    }
    if (clients === undefined) {
      clients = new Set();
      this.#keys.set(key, clients);
      this.#keyBytes += key.length;
      this.#limitKeys();
    }
    this.#items -= clients.size;
    clients.add(client.id);
    this.#items += clients.size;
  }

  /** Beyond tracking-table-max-keys the longest remembered keys are invalidated. */
  #limitKeys(): void {
    const limit = this.#environment.settings.trackingTableMaxKeys;
    if (limit === 0) return;
    for (const [key, clients] of this.#keys) {
      if (this.#keys.size <= limit) return;
      this.#keys.delete(key);
      this.#keyBytes -= key.length;
      this.#items -= clients.size;
      this.#untrack(key);
      for (const id of clients) {
        const client = this.#clients.get(id);
        if (client !== undefined) this.#sendOwn(client, [key]);
      }
    }
  }

  settingsChanged(): void {
    this.#limitKeys();
    this.#count();
  }

  /** Through the queue to oneself: a command is being answered just now. */
  #sendOwn(client: Client, keys: readonly string[]): void {
    const bytes = Bytes.from(Buffer.from(keys[0], 'latin1'));
    const { mailboxes, memory } = this.#keyspace;
    mailboxes.send(memory.self, MessageKind.REDIRECTED, client.id, 1, bytes, 0, bytes.length, bytes, 0, 0);
  }

  #untrack(key: string): void {
    const { interests } = this.#keyspace;
    const bytes = Bytes.from(Buffer.from(key, 'latin1'));
    interests.untrack(this.#keyspace.hash(0, bytes, 0, bytes.length), interests.check(bytes, 0, bytes.length));
  }

  #forgetKeys(): void {
    if (this.#keys.size === 0) return;
    this.#stale.push(this.#keys.keys());
    this.#keys = new Map();
    this.#keyBytes = 0;
    this.#items = 0;
  }

  // ---- changes

  /** A tracked key has changed. */
  changed(bytes: Bytes, offset: number, length: number, originId: number): void {
    const key = byteString(bytes, offset, length);
    const clients = this.#keys.get(key);
    if (clients === undefined) return;
    this.#keys.delete(key);
    this.#keyBytes -= key.length;
    this.#items -= clients.size;
    for (const id of clients) {
      const client = this.#clients.get(id);
      if (client === undefined || client.tracking!.broadcast) continue;
      if (client.tracking!.noLoop && id === originId) continue;
      this.#invalidate(client, [key]);
    }
    this.#count();
  }

  /** Any key has changed: noted for those who want to hear of its prefix, who get all of a turn in one message. */
  changedAny(bytes: Bytes, offset: number, length: number, originId: number): void {
    const key = byteString(bytes, offset, length);
    for (const [name, prefix] of this.#prefixes) {
      if (!key.startsWith(name)) continue;
      const before = prefix.changed.get(key);
      // Changed by two clients, it is news for both.
      prefix.changed.set(key, before === undefined || before === originId ? originId : 0);
      this.#hasChanged = true;
    }
  }

  /** A database was emptied. */
  flushed(): void {
    this.#forgetKeys();
    for (const prefix of this.#prefixes.values()) prefix.changed.clear();
    for (const client of this.#clients.values()) this.#invalidate(client, null);
    this.#count();
  }

  /** True when endTurn has something to do. */
  get isDue(): boolean {
    return this.#hasChanged || this.#stale.length > 0;
  }

  /** The turn's commands have been answered. */
  endTurn(): void {
    this.tellChanged();
    if (this.#stale.length > 0) this.#untrackStale();
  }

  /** Sends what has changed under the prefixes so far. */
  tellChanged(): void {
    if (!this.#hasChanged) return;
    this.#hasChanged = false;
    for (const name of [...this.#prefixes.keys()].sort()) {
      const { clients, changed } = this.#prefixes.get(name)!;
      if (changed.size === 0) continue;
      const keys = [...changed.keys()].sort();
      for (const client of clients) {
        const tracking = client.tracking!;
        const own = tracking.noLoop ? keys.filter((key) => changed.get(key) !== client.id) : keys;
        if (own.length > 0) this.#invalidate(client, own);
      }
      changed.clear();
    }
  }

  #untrackStale(): void {
    for (let i = 0; i < UNTRACK_STEP; i++) {
      const next = this.#stale[0].next();
      if (next.done === true) {
        this.#stale.shift();
        return;
      }
      // It may have been read again meanwhile.
      if (!this.#keys.has(next.value)) this.#untrack(next.value);
    }
  }

  // ---- sending

  /** `keys` null: everything. To the client itself or where it redirects to. */
  #invalidate(client: Client, keys: readonly string[] | null): void {
    const { redirect, redirectSeat } = client.tracking!;
    if (redirect === 0) {
      this.#push(client, keys, false, client.protocol);
      return;
    }
    const { mailboxes, memory } = this.#keyspace;
    if (redirectSeat === memory.self) {
      const target = this.clientOf(redirect);
      if (target === null) this.redirectBroken(client);
      else this.#push(target, keys, true, client.protocol);
      return;
    }
    const bytes = Bytes.from(encodeKeys(keys));
    const origin = Bytes.from(`${client.id}`);
    const length = bytes.length;
    const sent = mailboxes.send(
      redirectSeat,
      MessageKind.REDIRECTED,
      redirect,
      client.protocol === 2 ? 2 : 3,
      origin,
      0,
      origin.length,
      bytes,
      0,
      length,
    );
    if (!sent) this.redirectBroken(client);
  }

  /**
   * An invalidation for a client of this worker: of another worker's client (`b` its protocol, A its id, B the keys), or from oneself (`b` 1,
   * A the one key). False = that client is gone.
   */
  redirected(id: number, b: number, record: Bytes, at: number, lengthA: number, lengthB: number): boolean {
    const client = this.clientOf(id);
    if (client === null) return b === 1;
    if (b === 1) {
      if (client.tracking !== null) this.#invalidate(client, [byteString(record, at, lengthA)]);
      return true;
    }
    this.#push(client, decodeKeys(record, at + lengthA, lengthB), true, b);
    return true;
  }

  /** The client that should get this one's invalidations is gone. */
  redirectBroken(client: Client): void {
    const { tracking } = client;
    if (tracking === null) return;
    tracking.redirectIsBroken = true;
    if (client.protocol === 2) return;
    this.write(client, () => {
      this.#reply.protocol = 3;
      this.#reply.push(2);
      this.#reply.bulkString('tracking-redir-broken');
      this.#reply.integer(tracking.redirect);
    });
  }

  redirectBrokenFor(id: number): void {
    const client = this.#clients.get(id);
    if (client !== undefined) this.redirectBroken(client);
  }

  /** RESP2 has no way to say it, unless as a message to a subscriber that was named for it. */
  #push(client: Client, keys: readonly string[] | null, isRedirected: boolean, nullProtocol: number): void {
    const isSubscriber = isRedirected && (client.attention & Attention.SUBSCRIBED) !== 0;
    if (client.protocol === 2 && !isSubscriber) return;
    const reply = this.#reply;
    this.write(client, () => {
      reply.protocol = client.protocol;
      if (client.protocol > 2) {
        reply.push(2);
        reply.bulkString('invalidate');
      } else {
        reply.array(3);
        reply.bulkString('message');
        reply.bulkString(CHANNEL);
      }
      if (keys === null) {
        reply.protocol = nullProtocol;
        reply.nil();
        return;
      }
      reply.array(keys.length);
      for (const key of keys) reply.bulkString(key);
    });
  }
}

/** What the prefixes of one client take of the heap. */
function prefixBytes(prefixes: readonly string[]): number {
  let bytes = 0;
  for (const prefix of prefixes) bytes += TRACKED_PREFIX_BYTES + prefix.length;
  return bytes;
}

/** Keys as bytes: each as its length in four bytes and itself; nothing at all stands for everything. */
function encodeKeys(keys: readonly string[] | null): Uint8Array {
  const parts: Uint8Array[] = [];
  for (const key of keys ?? []) {
    const length = Buffer.alloc(4);
    length.writeUInt32LE(key.length);
    parts.push(length, Buffer.from(key, 'latin1'));
  }
  return Buffer.concat(parts);
}

function decodeKeys(record: Bytes, offset: number, length: number): string[] | null {
  if (length === 0) return null;
  const keys: string[] = [];
  for (let at = offset; at < offset + length; ) {
    const keyLength = record.view.getUint32(at, true);
    keys.push(byteString(record, at + 4, keyLength));
    at += 4 + keyLength;
  }
  return keys;
}

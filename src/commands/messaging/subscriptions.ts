/**
 * Pub/sub of one worker: who of its clients subscribes to what, publishing to all workers, delivering what arrives.
 *
 * The counts of all workers stand in shared memory (store/interests, store/patterns), so PUBLISH knows how many clients get
 * its message; names and clients of this worker stand here. Invariant: a name is in a map here exactly while at least one
 * client subscribes to it, and the shared count is that map's number of clients.
 */
import { Bytes } from '../../layout/bytes.js';
import { Counter } from '../../layout/counters.js';
import { InterestKind } from '../../layout/interest.js';
import { MessageKind } from '../../layout/mailbox.js';
import { Participant, Super } from '../../layout/superblock.js';
import type { Reply } from '../../protocol/resp/reply.js';
import type { Keyspace } from '../../store/keyspace.js';
import { Attention, type Client } from '../clients/client.js';
import { charge, SUBSCRIPTION_BYTES } from '../clients/client-memory.js';
import { globMatches } from '../glob.js';
import { byteString } from '../numbers.js';

export type Subscribers = Map<string, Set<Client>>;

/** What one client subscribes to. Names are byte strings. */
export class Subscription {
  readonly channels = new Set<string>();
  readonly patterns = new Set<string>();
  readonly shardChannels = new Set<string>();

  /** What SUBSCRIBE and PSUBSCRIBE count. */
  get count(): number {
    return this.channels.size + this.patterns.size;
  }
}

export const enum Scope {
  CHANNEL = 0,
  PATTERN = 1,
  SHARD = 2,
}

/** Longer messages are not shared between send records, but written for each client. */
const SHARED_BYTES_MAX = 256 * 1024;
/** Of a message beyond its strings. */
const HEADERS_BYTES_MAX = 256;

export class Subscriptions {
  readonly channels: Subscribers = new Map();
  readonly patterns: Subscribers = new Map();
  readonly shardChannels: Subscribers = new Map();
  /** Clients that subscribe to something. */
  clientCount = 0;

  readonly #keyspace: Keyspace;
  readonly #reply: Reply;
  readonly #counters: Float64Array;
  /** Participants that get the message being published. */
  readonly #seats = new Uint8Array(Participant.MAX);

  constructor(keyspace: Keyspace, reply: Reply, counters: Float64Array) {
    this.#counters = counters;
    this.#keyspace = keyspace;
    this.#reply = reply;
  }

  // ---- subscribing

  #mapOf(scope: Scope): Subscribers {
    if (scope === Scope.CHANNEL) return this.channels;
    return scope === Scope.PATTERN ? this.patterns : this.shardChannels;
  }

  namesOf(client: Client, scope: Scope): Set<string> {
    client.subscription ??= new Subscription();
    if (scope === Scope.CHANNEL) return client.subscription.channels;
    return scope === Scope.PATTERN ? client.subscription.patterns : client.subscription.shardChannels;
  }

  /** False = no memory; a client that subscribes already stays so. */
  subscribe(client: Client, scope: Scope, name: string): boolean {
    const names = this.namesOf(client, scope);
    if (names.has(name)) return true;
    if (!this.#count(scope, name, 1)) return false;
    names.add(name);
    charge(client, this.#counters, SUBSCRIPTION_BYTES + name.length);
    if ((client.attention & Attention.SUBSCRIBED) === 0) {
      client.attention |= Attention.SUBSCRIBED;
      this.clientCount++;
    }
    const map = this.#mapOf(scope);
    const clients = map.get(name);
    if (clients === undefined) map.set(name, new Set([client]));
    else clients.add(client);
    this.#countNames();
    return true;
  }

  /** False when the client did not subscribe to it. */
  unsubscribe(client: Client, scope: Scope, name: string): boolean {
    if (!this.namesOf(client, scope).delete(name)) return false;
    charge(client, this.#counters, -SUBSCRIPTION_BYTES - name.length);
    this.#count(scope, name, -1);
    const map = this.#mapOf(scope);
    const clients = map.get(name)!;
    clients.delete(client);
    if (clients.size === 0) map.delete(name);
    this.#countNames();
    const { count, shardChannels } = client.subscription!;
    if (count + shardChannels.size === 0) {
      client.attention &= ~Attention.SUBSCRIBED;
      this.clientCount--;
    }
    return true;
  }

  /** From everything, without a word (RESET, a closed connection). */
  unsubscribeAll(client: Client): void {
    if (client.subscription === null) return;
    for (const scope of [Scope.CHANNEL, Scope.PATTERN, Scope.SHARD]) {
      for (const name of [...this.namesOf(client, scope)]) this.unsubscribe(client, scope, name);
    }
    client.subscription = null;
  }

  #countNames(): void {
    this.#counters[Counter.pubsubChannels] = this.channels.size;
    this.#counters[Counter.pubsubShardChannels] = this.shardChannels.size;
  }

  /** Tells the other participants of one subscriber more or less. */
  #count(scope: Scope, name: string, delta: number): boolean {
    const { interests, patterns } = this.#keyspace;
    const bytes = Bytes.from(Buffer.from(name, 'latin1'));
    if (scope === Scope.PATTERN) return patterns.add(bytes, bytes.length, delta);
    const kind = scope === Scope.CHANNEL ? InterestKind.CHANNEL : InterestKind.SHARD_CHANNEL;
    const hash = this.#keyspace.hash(0, bytes, 0, bytes.length);
    return interests.addSubscribers(kind, hash, interests.check(bytes, 0, bytes.length), delta);
  }

  /** Subscribers of a channel, all workers. */
  subscribersOf(kind: InterestKind, bytes: Bytes, offset: number, length: number): number {
    return this.#find(kind, bytes, offset, length);
  }

  /** Different patterns that somebody subscribes to. */
  get patternCount(): number {
    const names = new Set<string>();
    for (const { pattern } of this.#keyspace.patterns.list) names.add(byteString(pattern, 0, pattern.length));
    return names.size;
  }

  // ---- publishing

  /** Notes the participants with subscribers of the channel; returns how many clients these are. */
  #find(kind: InterestKind, bytes: Bytes, offset: number, length: number): number {
    const { interests, memory } = this.#keyspace;
    if (Atomics.load(memory.ctl, Super.CHANNELS_WORD) === 0) return 0;
    const hash = this.#keyspace.hash(0, bytes, offset, length);
    const count = interests.collect(kind, hash, interests.check(bytes, offset, length));
    let clients = 0;
    for (let i = 0; i < count; i++) {
      this.#seats[interests.seats[i]] = 1;
      clients += interests.values[i];
    }
    return clients;
  }

  /**
   * Sends a message to all workers with subscribers, this one included; returns how many clients get it. Takes leaf locks only.
   */
  publish(
    kind: InterestKind.CHANNEL | InterestKind.SHARD_CHANNEL,
    channel: Bytes,
    channelOffset: number,
    channelLength: number,
    payload: Bytes,
    payloadOffset: number,
    payloadLength: number,
  ): number {
    const { mailboxes, patterns } = this.#keyspace;
    const seats = this.#seats;
    seats.fill(0);
    let clients = this.#find(kind, channel, channelOffset, channelLength);
    if (kind === InterestKind.CHANNEL) {
      for (const { pattern, seat, clients: matching } of patterns.list) {
        if (!globMatches(pattern, 0, pattern.length, channel, channelOffset, channelLength, false)) continue;
        seats[seat] = 1;
        clients += matching;
      }
    }
    if (clients === 0) return 0;
    for (let seat = 0; seat < seats.length; seat++) {
      if (seats[seat] === 0) continue;
      mailboxes.send(
        seat,
        MessageKind.MESSAGE,
        kind,
        0,
        channel,
        channelOffset,
        channelLength,
        payload,
        payloadOffset,
        payloadLength,
      );
    }
    return clients;
  }

  // ---- delivering

  /** A message has arrived: writes it to all clients of this worker that it is for. */
  deliver(
    kind: number,
    bytes: Bytes,
    channelOffset: number,
    channelLength: number,
    payloadOffset: number,
    payloadLength: number,
  ): void {
    const channel = byteString(bytes, channelOffset, channelLength);
    const isShard = kind === InterestKind.SHARD_CHANNEL;
    const clients = (isShard ? this.shardChannels : this.channels).get(channel);
    if (clients !== undefined) {
      const word = isShard ? 'smessage' : 'message';
      this.#write(clients, word, null, bytes, channelOffset, channelLength, payloadOffset, payloadLength);
    }
    if (isShard) return;
    for (const [pattern, subscribers] of this.patterns) {
      const glob = Bytes.from(Buffer.from(pattern, 'latin1'));
      if (!globMatches(glob, 0, glob.length, bytes, channelOffset, channelLength, false)) continue;
      this.#write(subscribers, 'pmessage', pattern, bytes, channelOffset, channelLength, payloadOffset, payloadLength);
    }
  }

  /** Written once for each protocol version; the other clients' send records point to the same bytes. */
  #write(
    clients: Set<Client>,
    word: string,
    pattern: string | null,
    bytes: Bytes,
    channelOffset: number,
    channelLength: number,
    payloadOffset: number,
    payloadLength: number,
  ): void {
    const reply = this.#reply;
    const { output } = reply;
    const length = channelLength + payloadLength + (pattern?.length ?? 0);
    const isShared = length <= SHARED_BYTES_MAX;
    for (let protocol = 2; protocol <= 3; protocol++) {
      let start = -1;
      let end = 0;
      for (const client of clients) {
        if (client.protocol !== protocol) continue;
        if (start >= 0 && isShared) {
          output.repeat(client.conn, start, end - start);
          continue;
        }
        if (isShared) output.keepTogether(length + HEADERS_BYTES_MAX);
        start = output.position;
        output.begin(client.conn);
        reply.protocol = protocol;
        reply.push(pattern === null ? 3 : 4);
        reply.bulkString(word);
        if (pattern !== null) reply.bulkString(pattern);
        reply.bulk(bytes, channelOffset, channelLength);
        reply.bulk(bytes, payloadOffset, payloadLength);
        end = output.position;
        output.end();
      }
    }
  }
}

/**
 * watch: log lines of all workers for clients that asked for them, in memcached's format.
 *
 *   watch [fetchers | mutations | evictions | connevents | ...]       -> OK, then lines until the client closes
 *
 * Owns this worker's watching clients and their part of the shared counts. Invariant: a line is made only while somebody
 * watches its kind; a client that reads too slowly misses lines and is told how many, nobody waits for it.
 */
import { Counter, SharedWord, WATCH_GAUGES } from '../../layout/counters.js';
import { Replies } from '../../protocol/memcached/replies.js';
import { classOfPage } from '../../store/statistics.js';
import type { WatchLine } from '../control.js';
import type { MemcachedClient } from './client.js';
import type { MemcachedContext } from './context.js';

export const enum WatchKind {
  EVICTIONS = 1,
  FETCHERS = 2,
  MUTATIONS = 3,
  CONNECTIONS = 4,
}

/** Words after `watch`; kinds that memcached has and that never bring a line here are 0. */
const KIND_OF: ReadonlyMap<string, number> = new Map([
  ['evictions', WatchKind.EVICTIONS],
  ['fetchers', WatchKind.FETCHERS],
  ['mutations', WatchKind.MUTATIONS],
  ['connevents', WatchKind.CONNECTIONS],
  ['rawcmds', 0],
  ['sysevents', 0],
  ['proxyreqs', 0],
  ['proxyevents', 0],
  ['proxyuser', 0],
]);

/** As memcached: more at once only slow each other down. */
const MAX_WATCHERS = 20;

export const STORE_STATUS_NAMES = [
  'stored',
  'not_stored',
  'exists',
  'not_found',
  'too_large',
  'no_memory',
  'wrong_type',
];
export const STORE_COMMAND_NAMES = ['set', 'add', 'replace', 'cas', 'append', 'prepend'];

/** A client that watches, and lines that it has missed. */
interface Watcher {
  readonly client: MemcachedClient;
  /** Bit WatchKind. */
  readonly kinds: number;
  skipped: number;
}

export class Watch {
  private readonly context: MemcachedContext;
  private readonly shared: Int32Array;
  private readonly watchers: Watcher[] = [];

  constructor(context: MemcachedContext, shared: Int32Array) {
    this.context = context;
    this.shared = shared;
    if (context.control === null) return;
    context.control.onLines((lines) => this.deliver(lines));
    context.keyspace.eviction.onEvict = (page, unit) => this.evict(page, unit);
  }

  /** Hot path: one load. */
  isWatched(kind: WatchKind): boolean {
    return this.shared[SharedWord.watchers + kind] !== 0;
  }

  // ---- lines

  fetch(found: boolean, hasExpired: boolean, valueBytes: number, slabClass: number): void {
    const { context } = this;
    const status = found ? 'found' : hasExpired ? 'expired' : 'not_found';
    const size = found ? valueBytes : 0;
    const key = encodeKey(context.key.u8, context.keyOffset, context.keyLength);
    this.publish(
      WatchKind.FETCHERS,
      `type=item_get key=${key} status=${status} clsid=${slabClass} cfd=${this.fd} size=${size}`,
    );
  }

  store(status: string, command: string, expiryMs: number, valueBytes: number, slabClass: number): void {
    const { context } = this;
    const ttl = expiryMs === 0 ? 0 : Math.max(0, context.secondsLeft(expiryMs));
    const key = encodeKey(context.key.u8, context.keyOffset, context.keyLength);
    this.publish(
      WatchKind.MUTATIONS,
      `type=item_store key=${key} status=${status} cmd=${command} ttl=${ttl} clsid=${slabClass} cfd=${this.fd} size=${valueBytes}`,
    );
  }

  private evict(page: number, unit: number): void {
    if (!this.isWatched(WatchKind.EVICTIONS)) return;
    const { context } = this;
    const { key, valueBytes, expiryMs, isFetched, idleSeconds } = context.keyspace.eviction.describe(page, unit);
    const slabClass = classOfPage(context.keyspace.memory, page);
    // memcached's -1 for what never expires.
    const ttl = expiryMs === 0 ? -1 : context.secondsLeft(expiryMs);
    const fetch = isFetched ? 'yes' : 'no';
    this.publish(
      WatchKind.EVICTIONS,
      `type=eviction key=${encodeKey(key, 0, key.length)} fetch=${fetch} ttl=${ttl} la=${idleSeconds} clsid=${slabClass} size=${valueBytes}`,
    );
  }

  opened(client: MemcachedClient, descriptor: number): void {
    this.publish(WatchKind.CONNECTIONS, `type=conn_new ${endpoint(client)} cfd=${descriptor}`);
  }

  closed(client: MemcachedClient, descriptor: number): void {
    const reason = client.isFaulty ? 'error' : 'normal';
    this.publish(WatchKind.CONNECTIONS, `type=conn_close ${endpoint(client)} reason=${reason} cfd=${descriptor}`);
  }

  private get fd(): number {
    return this.context.control!.descriptorOf(this.context.client);
  }

  private publish(kind: WatchKind, text: string): void {
    const { context, shared } = this;
    const nowMs = performance.timeOrigin + performance.now();
    const seconds = Math.floor(nowMs / 1000);
    const microseconds = Math.floor((nowMs - seconds * 1000) * 1000);
    const gid = Atomics.add(shared, SharedWord.logLines, 1) + 1;
    context.counters[Counter.logWritten]++;
    context.control!.publishLine({ kind, text: `ts=${seconds}.${microseconds} gid=${gid >>> 0} ${text}\n` });
  }

  // ---- watching clients

  /** The command. */
  begin(context: MemcachedContext): void {
    const { client, reply, control } = context;
    if (control === null || !context.settings.memcachedWatch) return reply.line(Replies.WATCH_OFF);
    if (context.hasAnswered) return reply.line(Replies.WATCH_PIPELINED);
    let kinds = context.tokenCount === 1 ? 1 << WatchKind.FETCHERS : 0;
    for (let i = 1; i < context.tokenCount; i++) {
      const kind = KIND_OF.get(context.tokenText(i));
      if (kind === undefined) return reply.line(Replies.ERROR);
      kinds |= 1 << kind;
    }
    if (Atomics.load(this.shared, SharedWord.watchers) >= MAX_WATCHERS) return reply.line(Replies.WATCHERS_FULL);
    this.watchers.push({ client, kinds, skipped: 0 });
    this.count(kinds, 1);
    client.isWatching = true;
    reply.line(Replies.OK);
  }

  /** The client is gone. */
  end(client: MemcachedClient): void {
    const index = this.watchers.findIndex((watcher) => watcher.client === client);
    if (index < 0) return;
    const [{ kinds }] = this.watchers.splice(index, 1);
    this.count(kinds, -1);
  }

  private count(kinds: number, by: number): void {
    // Bit 0 stands for the watcher itself, whatever it watches.
    for (let kind = 0; kind < WATCH_GAUGES; kind++) {
      if (kind !== 0 && (kinds & (1 << kind)) === 0) continue;
      Atomics.add(this.shared, SharedWord.watchers + kind, by);
      this.context.counters[Counter.watchers + kind] += by;
    }
  }

  private deliver(lines: readonly WatchLine[]): void {
    const { control, counters, settings } = this.context;
    for (const watcher of this.watchers) {
      const wanted = lines.filter(({ kind }) => (watcher.kinds & (1 << kind)) !== 0);
      if (wanted.length === 0) continue;
      control!.writeTo(watcher.client, () => {
        const { output } = this.context.reply;
        let room = settings.memcachedWatchBuffer - control!.unsentBytes(watcher.client);
        for (const { text } of wanted) {
          if (text.length > room) {
            watcher.skipped++;
            counters[Counter.logSkipped]++;
            continue;
          }
          if (watcher.skipped > 0) output.ascii(`skipped=${watcher.skipped}\n`);
          watcher.skipped = 0;
          output.ascii(text);
          room -= text.length;
          counters[Counter.logSent]++;
        }
      });
    }
  }
}

function endpoint(client: MemcachedClient): string {
  const colon = client.address.lastIndexOf(':');
  const isUnix = client.address.startsWith('/') || colon < 0;
  if (isUnix) return 'rip=unix rport=0 transport=local';
  const host = client.address.slice(0, colon).replace(/^\[|\]$/g, '');
  return `rip=${host} rport=${client.address.slice(colon + 1)} transport=tcp`;
}

/** As in a URI: letters, digits and -._~ as they are, other bytes as %XX. */
export function encodeKey(u8: Uint8Array, offset: number, length: number): string {
  let text = '';
  for (let i = offset; i < offset + length; i++) {
    const letter = String.fromCharCode(u8[i]);
    text += /[\w.~-]/.test(letter) && u8[i] < 128 ? letter : `%${u8[i].toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return text;
}

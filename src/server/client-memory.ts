/**
 * What the clients of one worker hold outside the store: reports it, so that the data makes room for it, and closes the clients that
 * hold most when all workers' clients hold more than maxmemory-clients.
 *
 * Owns the counters heldBytes, messageBytes and largestClientBytes of its worker. Invariant: a client is closed only by its own worker, and
 * only after every worker has had the time to announce its largest one, and none is larger.
 */
import type { Hub } from '../commands/messaging/hub.js';
import type { Settings } from '../config/index.js';
import { Counter, type CounterRow, type CounterTotals } from '../layout/counters.js';
import { HeldPart, type Pump } from '../native/addon.js';
import { Closing } from '../protocol/driver.js';
import type { Connections } from './connections.js';
import type { WorkerControl } from './worker-control.js';

/** An ordinary connection: its client object, its place in the tables, the pump's record. The kernel's buffers are the kernel's. */
export const CLIENT_BYTES = 1024;
/** A change by so much is reported at once, else every so often. */
const REPORT_BYTES = 256 * 1024;
const REPORT_PERIOD_MS = 100;
const OVER_LIMIT_PERIOD_MS = 20;
/** Longest that a worker without requests sleeps: see the pump. */
const SLEEP_MS_MAX = 250;
/** A lower limit would close everybody who says a word. */
const LIMIT_BYTES_MIN = 128 * 1024;

export interface ClientMemoryParts {
  readonly pump: Pump;
  readonly connections: Connections;
  readonly control: WorkerControl;
  readonly counters: CounterRow;
  readonly totals: CounterTotals;
  readonly hub: Hub | null;
  readonly charge: (bytes: number) => void;
  readonly close: (conn: number) => void;
}

interface Holder {
  readonly conn: number;
  readonly bytes: number;
}

export class ClientMemory {
  readonly #parts: ClientMemoryParts;
  readonly #values: Float64Array;
  #reportedBytes = 0;
  #nextMs = 0;
  /** Since when clients have held too much; 0 = they do not. */
  #overSinceMs = 0;

  constructor(parts: ClientMemoryParts) {
    this.#parts = parts;
    this.#values = parts.counters.values;
  }

  /** Asked in each turn, so it looks at words that are there. `heldKib`: Gauge.heldKib. */
  isDue(heldKib: number, nowMs: number): boolean {
    const bytes = heldKib * 1024 + this.#values[Counter.clientHeapBytes];
    return nowMs >= this.#nextMs || Math.abs(bytes - this.#reportedBytes) >= REPORT_BYTES;
  }

  /** Inside a batch, after the turn's events. */
  report(nowMs: number): void {
    const { totals, control, hub } = this.#parts;
    this.#nextMs = nowMs + REPORT_PERIOD_MS;
    this.#values[Counter.messageBytes] = hub === null ? 0 : hub.heapBytes;
    this.#count();
    const limit = limitBytes(control.settings);
    if (limit > 0 && clientBytes(totals) > limit) {
      this.#nextMs = nowMs + OVER_LIMIT_PERIOD_MS;
      if (this.#overSinceMs === 0) this.#overSinceMs = nowMs;
      this.#evict(limit, nowMs - this.#overSinceMs >= this.#noticeMs());
    } else {
      this.#overSinceMs = 0;
      this.#values[Counter.largestClientBytes] = 0;
    }
    this.#parts.charge(this.#values[Counter.heldBytes] + this.#values[Counter.messageBytes]);
  }

  #count(): void {
    const { pump, connections } = this.#parts;
    const values = this.#values;
    const pumpBytes = pump.heldBytes();
    this.#reportedBytes = pumpBytes + values[Counter.clientHeapBytes];
    values[Counter.heldBytes] = this.#reportedBytes + connections.count * CLIENT_BYTES;
  }

  /** How long it takes until every worker has noticed: each wakes for its background. */
  #noticeMs(): number {
    const { totals, control } = this.#parts;
    return totals.workerCount === 1 ? 0 : Math.min(1000 / control.settings.hz, SLEEP_MS_MAX) + REPORT_PERIOD_MS / 2;
  }

  /**
   * Announces the largest client, and closes it when it is the largest of all, and so on. Never announces less than it has meanwhile:
   * another worker would take its own for the largest.
   */
  #evict(limit: number, isAnnounced: boolean): void {
    const { totals, control, connections } = this.#parts;
    const values = this.#values;
    for (const { conn, bytes } of this.#holders()) {
      if (clientBytes(totals) <= limit) break;
      values[Counter.largestClientBytes] = bytes;
      // Whoever announces less now has counted what it closed before: the sum is looked at after it.
      const isLargest = this.#largestOfOthers() <= bytes;
      if (clientBytes(totals) <= limit) break;
      if (!isAnnounced || !isLargest) return;
      const { id } = connections.at(conn)!;
      control.log(
        'notice',
        `client ${id} held ${bytes} bytes and was closed: all clients held more than maxmemory-clients`,
      );
      values[Counter.evictedClients]++;
      this.#parts.close(conn);
      this.#count();
    }
    values[Counter.largestClientBytes] = 0;
  }

  /** Clients that may be closed, those that hold most first. */
  #holders(): Holder[] {
    const { clients } = this.#parts.connections;
    const holders: Holder[] = [];
    for (let conn = 0; conn < clients.length; conn++) {
      const client = clients[conn];
      if (client === null || client.noEvict || client.closing !== Closing.NO) continue;
      holders.push({ conn, bytes: memoryOf(this.#parts, conn) });
    }
    return holders.sort((a, b) => b.bytes - a.bytes);
  }

  #largestOfOthers(): number {
    const { totals, control } = this.#parts;
    let largest = 0;
    for (let worker = 0; worker < totals.workerCount; worker++) {
      if (worker === control.workerIndex) continue;
      largest = Math.max(largest, totals.ofWorker(worker, Counter.largestClientBytes));
    }
    return largest;
  }
}

/** Memory that is one client's, in the store or outside. */
export function memoryOf({ pump, connections }: Pick<ClientMemoryParts, 'pump' | 'connections'>, conn: number): number {
  const client = connections.at(conn)!;
  return CLIENT_BYTES + pump.held(conn, HeldPart.ALL) + client.heapBytes + client.parkedBytes;
}

/** What maxmemory-clients limits: also values on their way in, which the store counts as its own already. */
function clientBytes(totals: CounterTotals): number {
  return totals.total(Counter.heldBytes) + totals.total(Counter.clientParkedBytes);
}

/** maxmemory-clients in bytes; 0 = none. A percentage is one of maxmemory, or of the tiers. */
function limitBytes({ maxmemoryClients, maxmemory, dram, capacity }: Settings): number {
  if (maxmemoryClients === 0) return 0;
  const all = maxmemory === 0 ? dram + capacity : maxmemory;
  const bytes = maxmemoryClients > 0 ? maxmemoryClients : (all * -maxmemoryClients) / 100;
  return Math.max(LIMIT_BYTES_MIN, bytes);
}

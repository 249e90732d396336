/**
 * What commands take: which calls are timed, and where the times go (INFO, latency histograms, SLOWLOG, LATENCY).
 *
 * One for each executor. Invariant: an entry of the slow log is made when its client has been answered, so SLOWLOG GET is not in its own
 * answer, and a client that waits in BLPOP is not in anybody's.
 */
import { CommandStat } from '../layout/counters.js';
import { LatencyBucket, latencyBucket } from '../layout/latency-buckets.js';
import type { Client } from './clients/client.js';
import type { Command } from './command.js';
import type { Context } from './context.js';
import type { Environment } from './environment.js';
import { shownArguments } from './server/shown-arguments.js';
import { Flag } from './spec.js';

/** Cheap commands are timed in their first SAMPLE calls, then once in so many; two clock reads cost about 70 ns, as much as a small GET spends on parsing. */
const SAMPLE = 128;
/** Commands that took longer are offered to the latency monitor. */
const LATENCY_MS_MIN = 1;

/** What a request has taken in earlier turns. */
interface Slices {
  readonly elapsedMs: number;
  readonly longestMs: number;
}

/** A slow command that has not been answered yet. */
export interface SlowCommand {
  readonly microseconds: number;
  readonly argv: readonly Uint8Array[];
}

export class CommandTimes {
  /** Times every call, not only what may be slow: the driver sets it for requests on their own, and when SLOWLOG asks for less than a millisecond. */
  all = false;

  private readonly environment: Environment;
  private readonly stats: Float64Array;
  private readonly latencies: Float64Array;
  private tick = 0;

  constructor(environment: Environment) {
    this.environment = environment;
    this.stats = environment.counters.commandStats;
    this.latencies = environment.counters.latencies;
  }

  isTimed(command: Command): boolean {
    return (
      command.timed ||
      this.all ||
      ++this.tick % SAMPLE === 0 ||
      this.stats[command.index * CommandStat.WORDS + CommandStat.calls] < SAMPLE
    );
  }

  /** The bound request has run, for `client` or a script of it, with slices of earlier turns: what held others up is the longest of them. */
  add(context: Context, command: Command, client: Client, lastMs: number, earlier: Slices | null): void {
    const elapsedMs = lastMs + (earlier?.elapsedMs ?? 0);
    const heldUpMs = Math.max(lastMs, earlier?.longestMs ?? 0);
    const microseconds = elapsedMs * 1000;
    const row = command.index * CommandStat.WORDS;
    const weight =
      earlier !== null || command.timed || this.all || this.stats[row + CommandStat.calls] <= SAMPLE ? 1 : SAMPLE;
    if (client.blocked === null) this.stats[row + CommandStat.microseconds] += microseconds * weight;
    else client.blockedMicroseconds = microseconds * weight;
    if (this.environment.settings.latencyTracking) {
      this.latencies[command.index * LatencyBucket.COUNT + latencyBucket(Math.round(elapsedMs * 1e6))] += weight;
    }
    const control = this.environment.control;
    if (control === null || command.has(Flag.SKIP_SLOWLOG)) return;
    if (control.isSlow(microseconds)) {
      const argv = shownArguments(context);
      if (client.suspended) client.slow = { microseconds, argv };
      else control.recordSlow(microseconds, argv, client.address, client.name);
    }
    if (heldUpMs >= LATENCY_MS_MIN) {
      control.recordLatency(command.has(Flag.FAST) ? 'fast-command' : 'command', Math.round(heldUpMs));
    }
  }

  /** The request of a blocked client, which has been counted as a call, is refused after all. */
  refused(client: Client, command: Command): void {
    const row = command.index * CommandStat.WORDS;
    this.stats[row + CommandStat.calls]--;
    this.stats[row + CommandStat.rejected]++;
    client.blockedMicroseconds = 0;
  }

  /** A client that was suspended has its answer. */
  answered(client: Client): void {
    if (client.blockedMicroseconds !== 0 && client.lastCommand !== null) {
      this.stats[client.lastCommand.index * CommandStat.WORDS + CommandStat.microseconds] += client.blockedMicroseconds;
      client.blockedMicroseconds = 0;
    }
    const { slow } = client;
    if (slow === null) return;
    client.slow = null;
    this.environment.control?.recordSlow(slow.microseconds, slow.argv, client.address, client.name);
  }
}

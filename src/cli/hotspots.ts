/**
 * entresol hotspots: what a workload writes, by structure and by DIMM; and Tair's table made of our store's writes.
 *
 * Exit code 0 = done; 1 = the requests could not be run; 2 = wrong usage.
 */
import { parseArgs } from 'node:util';
import { parseSize } from '../config/index.js';
import { suggestion } from '../config/nearest.js';
import type { PresetName } from '../devices/model/presets.js';
import { EXIT_FAILURE, EXIT_USAGE } from './exit.js';

/** Version of the JSON forms: goes up when a field changes its meaning or goes. */
const JSON_VERSION = 1;
const OPTIONS = {
  workload: { type: 'string', default: 'update' },
  from: { type: 'string' },
  requests: { type: 'string', default: '20000' },
  keys: { type: 'string', default: '10000' },
  'value-bytes': { type: 'string', default: '100' },
  dram: { type: 'string', default: '64MiB' },
  capacity: { type: 'string', default: '0' },
  workers: { type: 'string', default: '1' },
  device: { type: 'string', default: 'optane-4' },
  lines: { type: 'string', default: '10' },
  tair: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;
const WORKERS_MAX = 64;
const TAIR_PUTS = 300;

export function hotspotsHelp(): string {
  return `Usage: entresol hotspots [--workload NAME | --from FILE] [options]
       entresol hotspots --tair [--json]

Runs requests against a store of its own, in a temporary pool, and records each write to its memory by address. Says which
structures are written most and how evenly the writes lie on the DIMMs of a device. Some hundred times slower than a server.

  --workload NAME      insert, update, mixed, read, counters, queue or leaderboard [update]
  --from FILE          recorded requests as clients send them (RESP); - = standard input
  --requests N         of a named workload [20000]
  --keys N             that it is about [10000]
  --value-bytes SIZE   [100]
  --dram SIZE          [64MiB]
  --capacity SIZE      second tier, 0 = none [0]
  --workers N          seats that take turns [1]
  --device NAME        optane, optane-1 or optane-4: how many DIMMs, 4 KiB by 4 KiB [optane-4]
  --lines N            hottest lines of 256 bytes to list [10]
  --tair               the four layouts of Tair's report, played with our store's writes (docs/nvm.md)
  --json               for programs

Exit code: 0 = done, 1 = the requests could not be run, 2 = wrong usage.`;
}

class UsageError extends Error {}

function numberOf(name: string, text: string, least: number, most = Number.MAX_SAFE_INTEGER): number {
  const value = parseSize(text);
  if (value === undefined || value < least || value > most) {
    const range = most === Number.MAX_SAFE_INTEGER ? `${least} or more` : `${least} to ${most}`;
    throw new UsageError(`--${name}: '${text}' must be ${range}.`);
  }
  return value;
}

function choice(name: string, text: string, known: readonly string[]): string {
  if (known.includes(text)) return text;
  throw new UsageError(`--${name}: '${text}' is none of ${known.join(', ')}.${suggestion(text, known)}`);
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: false }).values;
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

export async function hotspots(args: readonly string[]): Promise<number> {
  try {
    const values = parse(args);
    if (values.help) {
      console.log(hotspotsHelp());
      return 0;
    }
    return values.tair ? await tair(values.json) : await run(values);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    console.error(`entresol hotspots: ${error.message} See entresol hotspots --help.`);
    return EXIT_USAGE;
  }
}

async function run(values: ReturnType<typeof parse>): Promise<number> {
  // First: nothing of the store may be there when the flavour of its writers is chosen.
  const { traceWrites } = await import('../hotspots/traced.js');
  const listen = traceWrites();
  const { PRESETS } = await import('../devices/model/presets.js');
  const { WORKLOAD_NAMES } = await import('../hotspots/workloads.js');
  const devices = Object.keys(PRESETS).filter((name) => name !== 'dram');
  const size = {
    requests: numberOf('requests', values.requests, 1),
    keys: numberOf('keys', values.keys, 1),
    valueBytes: numberOf('value-bytes', values['value-bytes'], 0),
    dramBytes: numberOf('dram', values.dram, 16 * 2 ** 20),
    capacityBytes: numberOf('capacity', values.capacity, 0),
    workers: numberOf('workers', values.workers, 1, WORKERS_MAX),
    hotLines: numberOf('lines', values.lines, 0),
    device: choice('device', values.device, devices) as PresetName,
  };
  const workload =
    values.from === undefined ? choice('workload', values.workload, WORKLOAD_NAMES) : { file: values.from };
  const { runHotspots } = await import('../hotspots/run.js');
  const { hotspotsText } = await import('./hotspots-report.js');
  try {
    const outcome = await runHotspots({ ...size, workload }, listen);
    const shown = values.json
      ? JSON.stringify({ version: JSON_VERSION, ...size, workload, ...outcome }, null, 2)
      : undefined;
    console.log(shown ?? hotspotsText(outcome, size));
    return 0;
  } catch (error) {
    console.error(`entresol hotspots: ${(error as Error).message}`);
    return EXIT_FAILURE;
  }
}

async function tair(isJson: boolean): Promise<number> {
  const { traceWrites } = await import('../hotspots/traced.js');
  const listen = traceWrites();
  const { recordPuts } = await import('../hotspots/record-puts.js');
  const { TAIR_THREADS, TAIR_VALUE_BYTES, tairOptions, tairTable } = await import('../hotspots/tair.js');
  const { tairJson, tairText } = await import('./hotspots-report.js');
  const trace = recordPuts({ participants: TAIR_THREADS, puts: TAIR_PUTS, valueBytes: TAIR_VALUE_BYTES }, listen);
  const tables = [1, trace.shards].map((mapLocks) => ({
    mapLocks,
    rows: tairTable(trace, tairOptions(mapLocks, TAIR_PUTS)),
  }));
  console.log(
    isJson
      ? JSON.stringify({ version: JSON_VERSION, tables: tables.map(tairJson) }, null, 2)
      : tables.map(tairText).join('\n\n'),
  );
  return 0;
}

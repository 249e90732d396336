/**
 * entresol doctor: what a path is, what a server with these settings would make of it, and what to do better.
 *
 * Exit code 0 = fit, 1 = it works, with warnings, 2 = it cannot be used so.
 */
import { resolve } from 'node:path';
import { ConfigError, type Loaded, loadSettings } from '../config/index.js';
import type { Verdict } from './diagnosis.js';
import { EXIT_USAGE } from './exit.js';

const EXIT_CODES: Readonly<Record<Verdict, number>> = { fit: 0, warnings: 1, unusable: 2 };

export function doctorHelp(): string {
  return `Usage: entresol doctor [PATH] [--json] [options of serve]

Says what a path is (a DAX file system, an ordinary one, a NUMA node, ...), which capacity tier a server with these options
would have there and why, whether what is flushed there is durable, and what to do better. Changes nothing. A server may run.

  PATH       folder of a pool, or where one shall be; a device (/dev/dax0.0, /dev/pmem0); a NUMA node
             (/sys/devices/system/node/node1). Default: the pool of the settings.
  --json     for programs; the codes of findings never change their meaning

Exit code: 0 = fit, 1 = it works, with warnings, 2 = unusable, or wrong options.

Examples:
  entresol doctor /mnt/pmem0
  entresol doctor /mnt/pmem0/pool --capacity 256GiB --dram 16GiB
  entresol doctor --tier numa --numa-node 1 --capacity 64GiB`;
}

export async function doctor(args: readonly string[]): Promise<number> {
  if (args.includes('--help') || args.includes('-h')) {
    console.log(doctorHelp());
    return 0;
  }
  const isJson = args.includes('--json');
  const rest = args.filter((arg) => arg !== '--json');
  const path = rest[0]?.startsWith('-') === false ? rest[0] : undefined;
  let loaded: Loaded;
  try {
    const flags = path === undefined ? rest : rest.slice(1);
    loaded = loadSettings({ args: flags, env: process.env, mayListenNowhere: true });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    for (const problem of error.problems) console.error(`entresol: ${problem}`);
    return EXIT_USAGE;
  }
  const { settings } = loaded;
  if (path !== undefined) settings.pool = resolve(path);
  // Loaded here: help and wrong options must not need the native addon.
  const { diagnose, verdictOf } = await import('./diagnosis.js');
  const { doctorJson, doctorText } = await import('./doctor-report.js');
  let diagnosis: ReturnType<typeof diagnose>;
  try {
    diagnosis = diagnose(settings);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    console.error(`entresol: ${settings.pool}: ${message}`);
    return EXIT_USAGE;
  }
  console.log(isJson ? JSON.stringify(doctorJson(diagnosis), null, 2) : doctorText(diagnosis));
  return EXIT_CODES[verdictOf(diagnosis)];
}

/**
 * entresol pool info|check|export|repair|upgrade: a pool without a server. Refuses while a server or an embedding program has it.
 *
 * Exit code 0 = done, and for check: sound; 1 = damaged; 2 = the pool cannot be looked at (in use, not there, not ours), or wrong usage.
 */
import { resolve } from 'node:path';
import { suggestion } from '../config/nearest.js';
import { EXIT_USAGE } from './exit.js';
import type { PoolOptions } from './pool-actions.js';

const ACTIONS = ['info', 'check', 'export', 'repair', 'upgrade'] as const;
type Action = (typeof ACTIONS)[number];

export function poolHelp(): string {
  return `Usage: entresol pool info PATH [--json]
       entresol pool check PATH [--json]
       entresol pool export PATH [--rdb [--rdb-version N]] > FILE
       entresol pool repair PATH [--json]
       entresol pool upgrade PATH [--json]

Looks at the pool in a folder, without a server. While a server or an embedding program has the pool open it is refused, with the
process that has it. All but repair and upgrade read only.

  info     header, sizes, tiers, pages by kind, items, databases, slab classes
  check    walks the whole pool: index, items, collections, free lists, log pages, counts
  export   all items on standard output: as newline JSON (docs/operate.md says in which form), or with --rdb as a file that
           Redis loads; --rdb-version 10 (Redis 7.0, the default), 11 (7.2), 12 (7.4, with fields that expire)
  repair   of a pool that check finds damaged: makes index, tables and counts anew around what is sound, and drops the rest; says
           what it did. The DRAM tier is written beside the old one first, so /dev/shm must have room for both. A warm or durable
           pool is rebuilt by its next start instead, from what it keeps for a reboot
  upgrade  brings a pool of the layout version before to this one, in place, in a moment

What a killed server left half done is mended in memory for the check, as the next start will do it, and never in the files.

Examples:
  entresol pool check /var/lib/entresol && entresol serve --pool /var/lib/entresol
  entresol pool export /var/lib/entresol --rdb > dump.rdb
  entresol pool repair /var/lib/entresol --json

Exit code: 0 = done, or sound; 1 = damaged (and, after repair or upgrade, not changed); 2 = the pool cannot be looked at, or wrong usage.`;
}

function isAction(name: string | undefined): name is Action {
  return (ACTIONS as readonly (string | undefined)[]).includes(name);
}

export async function pool(args: readonly string[]): Promise<number> {
  if (args.includes('--help') || args.includes('-h')) {
    console.log(poolHelp());
    return 0;
  }
  const [action, ...rest] = args;
  if (!isAction(action)) {
    const hint = action === undefined ? '' : suggestion(action, [...ACTIONS]);
    console.error(
      `entresol pool: info, check, export, repair or upgrade is expected, not '${action ?? ''}'.${hint} See entresol pool --help.`,
    );
    return EXIT_USAGE;
  }
  const parsed = parseOptions(action, rest);
  if (typeof parsed === 'string') {
    console.error(`entresol pool ${action}: ${parsed} See entresol pool --help.`);
    return EXIT_USAGE;
  }
  // Loaded here: help and wrong usage must not need the native addon.
  const actions = await import('./pool-actions.js');
  return actions[action](parsed);
}

/** What is wrong with the arguments, as text. */
function parseOptions(action: Action, args: readonly string[]): PoolOptions | string {
  const paths: string[] = [];
  let isJson = false;
  let isRdb = false;
  let rdbVersion = '';
  for (let i = 0; i < args.length; i++) {
    const arg = args[i];
    if (arg === '--json') isJson = true;
    else if (arg === '--rdb' && action === 'export') isRdb = true;
    else if (arg === '--rdb-version' && action === 'export') rdbVersion = args[++i] ?? '?';
    else if (arg.startsWith('--rdb-version=') && action === 'export') rdbVersion = arg.slice('--rdb-version='.length);
    else if (arg.startsWith('-')) return `it has no option '${arg}'.`;
    else paths.push(arg);
  }
  if (paths.length !== 1) return 'one folder is expected.';
  if (rdbVersion !== '' && !isRdb) return '--rdb-version goes with --rdb.';
  if (!['', '10', '11', '12'].includes(rdbVersion)) return `--rdb-version is 10, 11 or 12, not '${rdbVersion}'.`;
  return { path: resolve(paths[0]), isJson, isRdb, rdbVersion: Number(rdbVersion || '10') };
}

/**
 * entresol pool info|check|export: a pool looked at without a server. Reads only; refuses while a server or an embedding program has it.
 *
 * Exit code 0 = done, and for check: sound; 1 = damaged; 2 = the pool cannot be looked at (in use, not there, not ours), or wrong usage.
 */
import { resolve } from 'node:path';
import { suggestion } from '../config/nearest.js';
import type { PoolCopy } from '../store/pool-copy.js';
import { EXIT_FAILURE, EXIT_USAGE } from './exit.js';

/** Version of the JSON forms: goes up when a field changes its meaning or goes. */
const JSON_VERSION = 1;

const STDOUT = 1;
const ACTIONS = ['info', 'check', 'export'];

export function poolHelp(): string {
  return `Usage: entresol pool info PATH [--json]
       entresol pool check PATH [--json]
       entresol pool export PATH > FILE

Looks at the pool in a folder, without a server. Reads only. While a server or an embedding program has the pool open it is
refused, with the process that has it.

  info    header, sizes, tiers, pages by kind, items, databases, slab classes
  check   walks the whole pool: index, items, collections, free lists, log pages, counts
  export  all items as newline JSON on standard output (docs/operate.md says in which form)

What a killed server left half done is mended in memory for the check, as the next start will do it, and never in the files.

Exit code: 0 = done, or sound; 1 = damaged; 2 = the pool cannot be looked at, or wrong usage.`;
}

export async function pool(args: readonly string[]): Promise<number> {
  if (args.includes('--help') || args.includes('-h')) {
    console.log(poolHelp());
    return 0;
  }
  const isJson = args.includes('--json');
  const [action, path, ...more] = args.filter((arg) => arg !== '--json');
  if (!ACTIONS.includes(action ?? '')) {
    const hint = action === undefined ? '' : suggestion(action, ACTIONS);
    console.error(
      `entresol pool: info, check or export is expected, not '${action ?? ''}'.${hint} See entresol pool --help.`,
    );
    return EXIT_USAGE;
  }
  if (path === undefined || path.startsWith('-') || more.length > 0) {
    console.error(`entresol pool ${action}: one folder is expected. See entresol pool --help.`);
    return EXIT_USAGE;
  }
  return run(action, resolve(path), isJson);
}

async function run(action: string, path: string, isJson: boolean): Promise<number> {
  // Loaded here: help and wrong usage must not need the native addon.
  const { openPoolCopy } = await import('../store/pool-copy.js');
  const { PoolError } = await import('../store/errors.js');
  let copy: PoolCopy;
  try {
    copy = openPoolCopy(path);
  } catch (error) {
    if (!(error instanceof PoolError)) throw error;
    const { code, message } = error;
    if (isJson)
      console.log(JSON.stringify({ version: JSON_VERSION, path, state: 'unreadable', code, problem: message }));
    else console.error(`entresol: ${message}`);
    return EXIT_USAGE;
  }
  try {
    if (action === 'info') return await info(copy, path, isJson);
    return action === 'check' ? await check(copy, path, isJson) : await exportItems(copy);
  } finally {
    copy.close();
  }
}

async function info(copy: PoolCopy, path: string, isJson: boolean): Promise<number> {
  const { collectPoolFacts } = await import('../store/pool-facts.js');
  const { infoJson, infoText } = await import('./pool-report.js');
  const facts = collectPoolFacts(copy.memory);
  const shown = isJson ? JSON.stringify({ version: JSON_VERSION, path, ...infoJson(copy, facts) }, null, 2) : undefined;
  console.log(shown ?? infoText(path, copy, facts));
  return 0;
}

async function check(copy: PoolCopy, path: string, isJson: boolean): Promise<number> {
  const { checkInvariants } = await import('../store/invariants.js');
  const { checkText } = await import('./pool-report.js');
  const deaths = copy.deaths();
  let items = 0;
  let problem = '';
  try {
    items = checkInvariants(copy.attach());
  } catch (error) {
    // A walk that runs into nonsense ends by whatever error that causes; it is damage all the same.
    problem = error instanceof Error ? error.message : String(error);
  }
  const state = problem === '' ? 'sound' : 'damaged';
  if (isJson) console.log(JSON.stringify({ version: JSON_VERSION, path, state, problem, items, deaths }, null, 2));
  else console.log(checkText(path, copy, { items, problem, deaths }));
  return problem === '' ? 0 : EXIT_FAILURE;
}

async function exportItems(copy: PoolCopy): Promise<number> {
  const { PoolExport, TextOutput } = await import('../store/pool-export.js');
  try {
    new PoolExport(copy.attach(), new TextOutput(STDOUT)).run(Date.now());
    return 0;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    // A reader that has seen enough (head) needs no message.
    if (code !== 'EPIPE') console.error(`entresol: export: ${message}`);
    return EXIT_FAILURE;
  }
}

/** What `entresol pool` does, an action a function: each opens the pool, prints, and returns the exit code. */
import { existsSync } from 'node:fs';
import { listFiles, logFolder } from '../server/effects/log-files.js';
import { exportRdb } from '../server/export-rdb.js';
import { PoolError } from '../store/errors.js';
import { checkInvariants } from '../store/invariants.js';
import { openPoolCopy, type PoolCopy } from '../store/pool-copy.js';
import { PoolExport, TextOutput } from '../store/pool-export.js';
import { collectPoolFacts } from '../store/pool-facts.js';
import { repairPool } from '../store/pool-repair.js';
import { upgradePool } from '../store/pool-upgrade.js';
import { EXIT_FAILURE, EXIT_USAGE } from './exit.js';
import { checkText, infoJson, infoText, repairText, upgradeText } from './pool-report.js';

export interface PoolOptions {
  readonly path: string;
  readonly isJson: boolean;
  readonly isRdb: boolean;
  readonly rdbVersion: number;
}

/** Version of the JSON forms: goes up when a field changes its meaning or goes. */
const JSON_VERSION = 1;
const STDOUT = 1;

/** Does something with a pool; what cannot be done with it is said, and the exit code 2. */
async function guarded({ path, isJson }: PoolOptions, work: () => number | Promise<number>): Promise<number> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof PoolError)) throw error;
    const { code, message } = error;
    if (isJson) print({ path, state: 'unreadable', code, problem: message });
    else console.error(`entresol: ${message}`);
    return EXIT_USAGE;
  }
}

function withCopy(options: PoolOptions, work: (copy: PoolCopy) => number): Promise<number> {
  return guarded(options, () => {
    const copy = openPoolCopy(options.path);
    try {
      return work(copy);
    } finally {
      copy.close();
    }
  });
}

function print(report: object): void {
  console.log(JSON.stringify({ version: JSON_VERSION, ...report }, null, 2));
}

export function info(options: PoolOptions): Promise<number> {
  const { path, isJson } = options;
  return withCopy(options, (copy) => {
    const facts = collectPoolFacts(copy.memory);
    if (isJson) print({ path, ...infoJson(copy, facts) });
    else console.log(infoText(path, copy, facts));
    return 0;
  });
}

export function check(options: PoolOptions): Promise<number> {
  const { path, isJson } = options;
  return withCopy(options, (copy) => {
    const deaths = copy.deaths();
    let items = 0;
    let problem = '';
    try {
      items = checkInvariants(copy.attach());
    } catch (error) {
      // A walk that runs into nonsense ends by whatever error that causes; it is damage all the same.
      problem = error instanceof Error ? error.message : String(error);
    }
    if (isJson) print({ path, state: problem === '' ? 'sound' : 'damaged', problem, items, deaths });
    else console.log(checkText(path, copy, { items, problem, deaths }));
    return problem === '' ? 0 : EXIT_FAILURE;
  });
}

function exportItems(options: PoolOptions): Promise<number> {
  const { path, isRdb, rdbVersion } = options;
  if (isRdb && process.stdout.isTTY) {
    console.error('entresol pool export: an RDB file is not for a terminal: entresol pool export PATH --rdb > FILE');
    return Promise.resolve(EXIT_USAGE);
  }
  return withCopy(options, (copy) => {
    try {
      const keyspace = copy.attach();
      if (isRdb) {
        const lost = exportRdb(keyspace, path, rdbVersion, STDOUT);
        if (lost !== '') console.error(`entresol: export: ${lost}`);
      } else new PoolExport(keyspace, new TextOutput(STDOUT)).run(Date.now());
      return 0;
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      if (code === undefined) throw error;
      // A reader that has seen enough (head) needs no message.
      if (code !== 'EPIPE') console.error(`entresol: export: ${message}`);
      return EXIT_FAILURE;
    }
  });
}

export { exportItems as export };

export function repair(options: PoolOptions): Promise<number> {
  const { path, isJson } = options;
  return guarded(options, () => {
    const folder = logFolder(path);
    const { last } = existsSync(folder) ? listFiles(folder) : { last: 0 };
    const outcome = repairPool(path, last > 0);
    if (isJson) print({ path, ...outcome });
    else console.log(repairText(path, outcome));
    return outcome.state === 'damaged' ? EXIT_FAILURE : 0;
  });
}

export function upgrade(options: PoolOptions): Promise<number> {
  const { path, isJson } = options;
  return guarded(options, () => {
    const outcome = upgradePool(path);
    if (isJson) print({ path, ...outcome });
    else console.log(upgradeText(path, outcome));
    return outcome.state === 'damaged' ? EXIT_FAILURE : 0;
  });
}

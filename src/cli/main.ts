/**
 * The entresol command: picks the subcommand. Invariant: run() never rejects; the exit code says what happened.
 */
import { programVersion } from '../config/index.js';
import { suggestion } from '../config/nearest.js';
import { doctor, doctorHelp } from './doctor.js';
import { EXIT_FAILURE, EXIT_USAGE } from './exit.js';
import { generalHelp, serveHelp } from './help.js';
import { hotspots, hotspotsHelp } from './hotspots.js';
import { memcached } from './memcached.js';
import { memcachedHelp } from './memcached-help.js';
import { pool, poolHelp } from './pool.js';
import { serve } from './serve.js';

const HELP_TEXTS: Readonly<Record<string, (() => string) | undefined>> = {
  serve: serveHelp,
  memcached: memcachedHelp,
  doctor: doctorHelp,
  pool: poolHelp,
  hotspots: hotspotsHelp,
};
const COMMANDS = ['serve', 'memcached', 'doctor', 'pool', 'hotspots', 'help'];

/** Runs one command line (without node and script); resolves to the exit code. */
export async function run(args: readonly string[]): Promise<number> {
  try {
    return await runCommand(args);
  } catch (error) {
    console.error(error);
    return EXIT_FAILURE;
  }
}

async function runCommand(args: readonly string[]): Promise<number> {
  const [command, ...rest] = args;
  if (command === '--version' || command === '-v' || command === '-V') {
    console.log(`entresol ${programVersion()}`);
    return 0;
  }
  if (command === undefined || command === '--help' || command === '-h' || command === 'help') {
    console.log(HELP_TEXTS[rest[0]]?.() ?? generalHelp());
    return command === undefined ? EXIT_USAGE : 0;
  }
  if (command === 'serve') return serve(rest);
  if (command === 'memcached') return memcached(rest);
  if (command === 'doctor') return doctor(rest);
  if (command === 'pool') return pool(rest);
  if (command === 'hotspots') return hotspots(rest);
  const hint = command.startsWith('-')
    ? ` Options of the server follow the command: entresol serve ${command}.`
    : suggestion(command, COMMANDS);
  console.error(`entresol: '${command}': unknown command.${hint} See entresol --help.`);
  return EXIT_USAGE;
}

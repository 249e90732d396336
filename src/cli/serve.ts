/**
 * entresol serve: settings, start, ready lines, signals.
 *
 * Invariant: the ready lines appear only after startServer has resolved, which it does when every listener answers; the
 * process ends with 0 after a clean stop.
 */
import { ConfigError, type Loaded, loadSettings, programVersion, type Settings } from '../config/index.js';
import { saveCompiled } from '../server/compile-cache.js';
import type { RunningServer } from '../server/main.js';
import { EXIT_FAILURE, EXIT_INTERRUPTED, EXIT_USAGE } from './exit.js';
import { serveHelp } from './help.js';
import { readyLines } from './ready.js';
import { describeStartupError } from './startup-errors.js';

export async function serve(args: readonly string[]): Promise<number> {
  if (args.includes('--help') || args.includes('-h')) {
    console.log(serveHelp());
    return 0;
  }
  let loaded: Loaded;
  try {
    loaded = loadSettings({ args, env: process.env });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    for (const problem of error.problems) console.error(`entresol: ${problem}`);
    return EXIT_USAGE;
  }
  for (const warning of loaded.warnings) console.error(`entresol: warning: ${warning}`);
  return runServer(loaded);
}

type OnReady = (server: RunningServer, settings: Settings) => void | Promise<void>;

/** Prints what listens and where the data is. */
export function announce(server: RunningServer, settings: Settings): void {
  console.log(readyLines(programVersion(), settings, server.addresses, server.dramPath));
}

/** A reader of our output that went away (a closed terminal, `| head`) is no reason to stop serving. */
function onOutputError(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE' && error.code !== 'EIO') throw error;
}

/** The short form of what doctor says of the pool's path; a path that cannot be looked at is left to the start itself. */
async function sayWhereItLies(settings: Settings): Promise<void> {
  const { diagnose, startLines } = await import('./diagnosis.js');
  const { logFor } = await import('../server/log.js');
  const log = logFor(settings);
  let lines: ReturnType<typeof startLines>;
  try {
    lines = startLines(diagnose(settings));
  } catch (error) {
    log('debug', `the pool's path cannot be looked at: ${error instanceof Error ? error.message : String(error)}`);
    return;
  }
  if (lines.notice !== '') log('notice', lines.notice);
  if (lines.warning !== '') log('warning', lines.warning);
}

/** Runs until a signal or a SHUTDOWN; `onReady` is told of the running server. Resolves to the exit code. */
export async function runServer({ settings, configPath }: Loaded, onReady: OnReady = announce): Promise<number> {
  // A signal during start-up counts too: stop as soon as there is something to stop.
  let stop: (() => void) | undefined;
  let isStopping = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (isStopping) {
      if (signal === 'SIGINT') process.exit(EXIT_INTERRUPTED);
      return;
    }
    isStopping = true;
    stop?.();
  };
  process.stdout.on('error', onOutputError);
  process.stderr.on('error', onOutputError);
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  // memcached's signal for a graceful stop; here every stop is one.
  process.on('SIGUSR1', onSignal);

  try {
    // Loaded here: --help and wrong options must not need the native addon.
    const { startServer } = await import('../server/main.js');
    await sayWhereItLies(settings);
    const server = await startServer(settings, { configPath });
    const stopped = new Promise<void>((resolve, reject) => {
      stop = () =>
        server.stop().then((hasStopped) => {
          if (hasStopped) resolve();
          else isStopping = false;
        }, reject);
    });
    if (isStopping) stop?.();
    else await onReady(server, settings);
    saveCompiled();
    await Promise.race([server.done, stopped]);
    if (isStopping) await stopped;
    return 0;
  } catch (error) {
    const message = describeStartupError(error, settings);
    if (message === undefined || settings.loglevel === 'debug') console.error(error);
    if (message !== undefined) console.error(`entresol: ${message}`);
    return EXIT_FAILURE;
  } finally {
    process.off('SIGINT', onSignal);
    process.off('SIGTERM', onSignal);
    process.off('SIGUSR1', onSignal);
  }
}

/**
 * The server's log: one line per event on standard output, warnings on standard error.
 *
 * Workers post their lines to the main thread (a thread that never returns to its event loop cannot print).
 */
import type { Settings } from '../config/index.js';
import type { Level } from './messages.js';

export type Log = (level: Level, message: string) => void;

const RANK: Readonly<Record<Settings['loglevel'], number>> = {
  debug: 0,
  verbose: 1,
  notice: 2,
  warning: 3,
  nothing: 4,
};

/** `settings` is asked each time: CONFIG SET loglevel takes effect at once. */
export function logFor(settings: Readonly<Settings>, print = printed): Log {
  return (level, message) => {
    if (RANK[level] < RANK[settings.loglevel]) return;
    const line = `${new Date().toISOString()} ${level}: ${message}`;
    print(line, level);
  };
}

function printed(line: string, level: Level): void {
  if (level === 'warning') console.error(line);
  else console.log(line);
}

/**
 * Writes that are refused because the last save in the background has failed: as in Redis, only where there is a schedule of saves.
 */
import { SharedWord } from '../../layout/counters.js';
import type { Client } from '../clients/client.js';
import type { Command } from '../command.js';
import type { Environment } from '../environment.js';
import { Flag } from '../spec.js';

const MISCONF = "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. ";
export const WRITES_DENIED = `${MISCONF}Commands that may modify the data set are disabled, because this instance is configured to report errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB error.`;
export const SCRIPTS_DENIED = `${MISCONF}Writable scripts are blocked. Use 'no-writes' flag for read only scripts.`;

/** True while writes are refused. */
export function deniesWrites({ settings, counters }: Environment): boolean {
  if (settings.save.length === 0 || !settings.stopWritesOnBgsaveError) return false;
  return Atomics.load(counters.shared, SharedWord.saveFailed) !== 0;
}

/** True for what is refused then: PING says that not all is well, too. */
export function isDenied({ transaction }: Client, command: Command): boolean {
  const { name } = command.spec;
  return (
    command.has(Flag.WRITE) || name === 'ping' || (name === 'exec' && ((transaction?.flags ?? 0) & Flag.WRITE) !== 0)
  );
}

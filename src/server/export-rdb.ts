/** A pool's keys as an RDB file on a descriptor that need not be a file: `entresol pool export --rdb`. */
import { lostExpiries, streamRdb } from '../commands/persistence/save-file.js';
import { settingsWith } from '../config/index.js';
import { Super } from '../layout/superblock.js';
import type { Keyspace } from '../store/keyspace.js';
import { POLICY_NAMES } from '../store/policy.js';
import { writeFully } from '../store/pool-export.js';

/** `keyspace`: of a copy, which nobody else uses. Returns what the file's version has no place for, in words; '' = nothing. */
export function exportRdb(keyspace: Keyspace, pool: string, version: number, fd: number): string {
  const maxmemoryPolicy = POLICY_NAMES[keyspace.memory.ctl[Super.POLICY_WORD]] ?? 'noeviction';
  const settings = settingsWith({ pool, rdbVersion: version, maxmemoryPolicy });
  keyspace.enterBatch();
  keyspace.closeGate();
  const lost = streamRdb(keyspace, settings, (u8, from, end) => writeFully(fd, u8, from, end));
  keyspace.openGate();
  keyspace.leaveBatch();
  return lost === 0 ? '' : lostExpiries(lost, version);
}

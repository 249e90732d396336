/**
 * Whether a directory's files can be mapped as persistent memory: tried with a real file and a real mapping.
 *
 * A question to the directory itself would not do: ext4 and XFS give their DAX flag to regular files only. Invariant: the
 * file that is tried has no name (O_TMPFILE), so nothing is left behind, whatever happens.
 */
import { closeSync, constants, openSync } from 'node:fs';
import { addon } from '../native/addon.js';

const PROBE_BYTES = 4096;
/** O_TMPFILE, which Node.js does not name: 020000000 | O_DIRECTORY. */
const O_TMPFILE = 0o20000000 | constants.O_DIRECTORY;

export interface DaxProbe {
  /** Files of the directory are mapped without the page cache (statx of a new file). */
  readonly isDax: boolean;
  /** MAP_SYNC was granted and a range persisted through it. */
  readonly isSync: boolean;
  /** errno name of what kept it from being tried, or '' when it was tried. */
  readonly obstacle: string;
}

const NO_DAX: DaxProbe = { isDax: false, isSync: false, obstacle: '' };

function codeOf(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === undefined) throw error;
  return code;
}

/** Tries it in `directory`, which must exist. Never throws for what a file system or its state refuses. */
export function probeDax(directory: string): DaxProbe {
  let fd: number;
  try {
    fd = openSync(directory, constants.O_RDWR | O_TMPFILE, 0o600);
  } catch (error) {
    const code = codeOf(error);
    // File systems without nameless files have no DAX either.
    return code === 'EOPNOTSUPP' || code === 'ENOTSUP' || code === 'EISDIR' ? NO_DAX : { ...NO_DAX, obstacle: code };
  }
  try {
    if (!addon.fileSystem(`/proc/self/fd/${fd}`).dax) return NO_DAX;
    return trySync(fd);
  } finally {
    closeSync(fd);
  }
}

function trySync(fd: number): DaxProbe {
  try {
    addon.reserve(fd, 0, PROBE_BYTES);
  } catch (error) {
    return { isDax: true, isSync: false, obstacle: codeOf(error) };
  }
  try {
    const arena = addon.mapArena(fd, 0, PROBE_BYTES, { sync: true });
    new Uint8Array(addon.wrapArena(arena))[0] = 1;
    addon.persist(arena, 0, PROBE_BYTES);
    addon.releaseArena(arena);
    return { isDax: true, isSync: true, obstacle: '' };
  } catch (error) {
    if (codeOf(error) !== 'EOPNOTSUPP') return { isDax: true, isSync: false, obstacle: codeOf(error) };
    return { isDax: true, isSync: false, obstacle: '' };
  }
}

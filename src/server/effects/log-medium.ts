/**
 * Files of the effect log as they are written: reserved, written from the beginning to the end, made persistent.
 *
 * On DAX the file is mapped and its lines are written back (clwb, fence); elsewhere write and fdatasync. Invariant: what `write` has been
 * given is in the file, or it has thrown and can be called again.
 */
import { fdatasyncSync, ftruncateSync, writeSync } from 'node:fs';
import { Bytes } from '../../layout/bytes.js';
import { addon } from '../../native/addon.js';
import { copyBytes } from '../../native/copy.js';

export interface LogFile {
  /** Bytes that it has room for. */
  readonly bytes: number;
  write(from: Bytes, length: number, position: number): void;
  /** What has been written survives a power cut. */
  persist(): void;
  close(): void;
}

/** Makes a file with room for so many bytes. Throws ENOSPC, and leaves none then. */
export function createLogFile(path: string, bytes: number): LogFile {
  const fd = addon.openFile(path, true, false);
  try {
    addon.reserve(fd, 0, bytes);
    return open(fd, path, bytes);
  } catch (error) {
    // Whatever a failed reservation has taken.
    ftruncateSync(fd, 0);
    addon.closeFile(fd);
    throw error;
  }
}

function open(fd: number, path: string, bytes: number): LogFile {
  if (!addon.fileSystem(path).dax) return new OrdinaryFile(fd, bytes);
  try {
    const arena = addon.mapArena(fd, 0, bytes, { sync: true });
    return new DaxFile(fd, bytes, arena);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EOPNOTSUPP') throw error;
    return new OrdinaryFile(fd, bytes);
  }
}

class OrdinaryFile implements LogFile {
  readonly #fd: number;

  constructor(
    fd: number,
    readonly bytes: number,
  ) {
    this.#fd = fd;
  }

  write(from: Bytes, length: number, position: number): void {
    for (let at = 0; at < length; ) at += writeSync(this.#fd, from.u8, at, length - at, position + at);
  }

  persist(): void {
    fdatasyncSync(this.#fd);
  }

  close(): void {
    addon.closeFile(this.#fd);
  }
}

class DaxFile implements LogFile {
  readonly #fd: number;
  readonly #arena: number;
  readonly #mapped: Bytes;
  /** What has been written and not made persistent. */
  #from = Number.MAX_SAFE_INTEGER;
  #end = 0;

  constructor(
    fd: number,
    readonly bytes: number,
    arena: number,
  ) {
    this.#fd = fd;
    this.#arena = arena;
    this.#mapped = new Bytes(addon.wrapArena(arena), arena);
  }

  write(from: Bytes, length: number, position: number): void {
    copyBytes(this.#mapped, position, from, 0, length);
    this.#from = Math.min(this.#from, position);
    this.#end = Math.max(this.#end, position + length);
  }

  persist(): void {
    if (this.#end > this.#from) addon.persist(this.#arena, this.#from, this.#end - this.#from);
    this.#from = Number.MAX_SAFE_INTEGER;
    this.#end = 0;
  }

  close(): void {
    addon.releaseArena(this.#arena);
    addon.closeFile(this.#fd);
  }
}

/**
 * An archive of files in cpio's "newc" form, which the kernel unpacks as its first file system. Symbolic links and devices are
 * not needed: /dev is mounted by init.
 *
 *     070701 | 13 numbers of 8 hex digits: inode mode uid gid links mtime size, 4 x device, name length with its 0, 0
 *     name, 0, padded to 4 bytes | content, padded to 4 bytes
 */
import { closeSync, openSync, readdirSync, readFileSync, statSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';

const DIRECTORY = 0o40755;
const FILE = 0o100755;
const NAME_AT = 110;

export class CpioWriter {
  readonly #fd: number;
  readonly #folders = new Set<string>(['.']);
  #inode = 0;

  constructor(path: string) {
    this.#fd = openSync(path, 'w');
  }

  /** Adds a file under a path without a leading slash, and the folders above it. */
  file(name: string, content: Buffer | string): void {
    this.folder(dirname(name));
    this.#entry(name, FILE, Buffer.from(content));
  }

  copy(name: string, from: string): void {
    this.file(name, readFileSync(from));
  }

  /** Copies what lies under a folder and is wanted. */
  tree(name: string, from: string, isWanted: (path: string) => boolean): void {
    for (const entry of readdirSync(from)) {
      const path = join(from, entry);
      if (statSync(path).isDirectory()) this.tree(`${name}/${entry}`, path, isWanted);
      else if (isWanted(path)) this.copy(`${name}/${entry}`, path);
    }
  }

  folder(name: string): void {
    if (this.#folders.has(name)) return;
    this.folder(dirname(name));
    this.#folders.add(name);
    this.#entry(name, DIRECTORY, Buffer.alloc(0));
  }

  close(): void {
    this.#entry('TRAILER!!!', 0, Buffer.alloc(0));
    closeSync(this.#fd);
  }

  #entry(name: string, mode: number, content: Buffer): void {
    const numbers = [++this.#inode, mode, 0, 0, 1, 0, content.length, 0, 0, 0, 0, name.length + 1, 0];
    const head = `070701${numbers.map((value) => value.toString(16).padStart(8, '0')).join('')}${name}\0`;
    writeSync(this.#fd, Buffer.from(head.padEnd(padded(head.length), '\0'), 'latin1'));
    if (content.length === 0) return;
    writeSync(this.#fd, Buffer.concat([content, Buffer.alloc(padded(content.length) - content.length)]));
  }
}

function padded(length: number): number {
  return (length + 3) & ~3;
}

if (padded(NAME_AT + 2) !== 112) throw new Error('a name of one letter ends at byte 112');

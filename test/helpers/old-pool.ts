/**
 * Pools of earlier layouts, kept as files: lines of text that say how one was made, an empty line, then its files, compressed (Brotli).
 *
 *     compressed   JSON of [name, bytes] for each file, a line; then their contents, one behind the other. 'dram' lies in /dev/shm
 */
import { closeSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, brotliDecompressSync, constants } from 'node:zlib';
import { readPoolName } from '../../src/store/pool-name.js';
import { makePool } from './pool.js';

const FOLDER = fileURLToPath(new URL('../fixtures/', import.meta.url));
const DRAM = 'dram';

export const dramOf = (pool: string): string => join('/dev/shm', readPoolName(pool) ?? 'none');

/** The pool of a fixture, in a new folder. */
export async function unpackPool(fixture: string): Promise<string> {
  const pool = await makePool();
  const packed = readFileSync(join(FOLDER, fixture));
  const content = brotliDecompressSync(packed.subarray(packed.indexOf('\n\n') + 2));
  let at = content.indexOf('\n') + 1;
  for (const [name, bytes] of JSON.parse(content.toString('latin1', 0, at)) as [string, number][]) {
    const path = name === DRAM ? dramOf(pool) : join(pool, name);
    writeSparse(path, content.subarray(at, at + bytes));
    at += bytes;
  }
  return pool;
}

/** With holes for what is zero. */
function writeSparse(path: string, content: Buffer): void {
  const zeros = Buffer.alloc(4096);
  const fd = openSync(path, 'w');
  for (let at = 0; at < content.length; at += zeros.length) {
    const end = Math.min(content.length, at + zeros.length);
    if (end === content.length || content.compare(zeros, 0, zeros.length, at, end) !== 0)
      writeSync(fd, content, at, end - at, at);
  }
  closeSync(fd);
}

/** Makes a fixture of a pool that nobody has open. `names`: its files, 'dram' among them where its memory is wanted; pool.id first. */
export function packPool(pool: string, names: readonly string[], about: string, fixture: string): void {
  const contents = names.map((name) => readFileSync(name === DRAM ? dramOf(pool) : join(pool, name)));
  const list = JSON.stringify(names.map((name, i) => [name, contents[i].length]));
  const compressed = brotliCompressSync(Buffer.concat([Buffer.from(`${list}\n`), ...contents]), {
    params: { [constants.BROTLI_PARAM_LGWIN]: 24, [constants.BROTLI_PARAM_QUALITY]: 11 },
  });
  writeFileSync(join(FOLDER, fixture), Buffer.concat([Buffer.from(`${about}\n\n`), compressed]));
}

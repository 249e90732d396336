/**
 * Where the native addon is: built in this checkout, or prebuilt in the package for this machine's C library.
 *
 * The path is chosen before anything is loaded: an addon of the other C library may load and fail much later.
 */
import { closeSync, existsSync, openSync, readSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Relative to this file in dist/native. */
const BUILT_HERE = '../../native/addon/build/Release/entresol.node';
const PREBUILDS = '../../prebuilds';

/** ELF, 64 bits, little endian: what the supported machines have. */
const PROGRAM_HEADERS_AT = 0x20;
const PROGRAM_HEADER_BYTES = 56;
const PROGRAM_HEADER_COUNT_AT = 0x38;
const PT_INTERP = 3;
const HEADER_BYTES = 4096;

/** The loader that `program` names ('/lib/ld-musl-x86_64.so.1'); '' when it names none (linked statically). */
export function interpreterOf(program: string): string {
  const fd = openSync(program, 'r');
  try {
    const header = Buffer.alloc(HEADER_BYTES);
    readSync(fd, header, 0, HEADER_BYTES, 0);
    const count = header.readUInt16LE(PROGRAM_HEADER_COUNT_AT);
    const first = Number(header.readBigUInt64LE(PROGRAM_HEADERS_AT));
    for (let i = 0; i < count; i++) {
      const at = first + i * PROGRAM_HEADER_BYTES;
      if (header.readUInt32LE(at) !== PT_INTERP) continue;
      const path = Buffer.alloc(Number(header.readBigUInt64LE(at + 32)));
      readSync(fd, path, 0, path.length, Number(header.readBigUInt64LE(at + 8)));
      return path.toString('latin1').replace(/\0.*$/s, '');
    }
    return '';
  } finally {
    closeSync(fd);
  }
}

/** The name of the prebuilt addon for the process that runs this. */
export function targetName(): string {
  const libc = interpreterOf(process.execPath).includes('ld-musl') ? 'musl' : 'glibc';
  return `linux-${process.arch}-${libc}`;
}

/** The path of the addon. Throws with what to do when there is none. */
export function findAddon(): string {
  const here = fileURLToPath(new URL(BUILT_HERE, import.meta.url));
  if (existsSync(here)) return here;
  const name = targetName();
  const prebuilt = fileURLToPath(new URL(`${PREBUILDS}/${name}/entresol.node`, import.meta.url));
  if (existsSync(prebuilt)) return prebuilt;
  throw Object.assign(
    new Error(`no native addon for ${name}: in a checkout, run npm run build; a package has it in ${prebuilt}`),
    { code: 'ERR_ADDON_MISSING' },
  );
}

/**
 * Lua 5.1 as a static library for a target, compiled from Debian's source package: what scripts (EVAL) need in the addon.
 *
 * Debian's own liblua5.1.a is for its glibc of today and has none for musl; one source for all targets keeps them alike. Nothing of
 * it is kept in the repository.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { unpackDebianSource } from './debian.mjs';

/** The programs lua and luac, and what only they use. */
const NOT_IN_LIBRARY = new Set(['lua.c', 'luac.c', 'print.c']);

/** Debian's luaconf.h takes the place of modules from this file; we load none. */
const MULTIARCH_HEADER = 'lua5.1-deb-multiarch.h';

/** Compiles into `folder`; returns { library, include }. */
export function makeLua(target, cflags, cache, folder) {
  cpSync(join(unpackDebianSource('lua5.1', join(cache, 'lua5.1')), 'src'), folder, { recursive: true });
  writeFileSync(join(folder, MULTIARCH_HEADER), `#define DEB_HOST_MULTIARCH "${target.triplet}"\n`);
  const files = readdirSync(folder)
    .filter((name) => name.endsWith('.c') && !NOT_IN_LIBRARY.has(name))
    .sort();
  const flags = ['-O2', '-fPIC', '-fvisibility=hidden', '-DLUA_USE_POSIX', '-w', ...cflags.split(' ').filter(Boolean)];
  const run = (command, args) => execFileSync(command, args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
  run(target.compiler, [...flags, '-c', ...files]);
  const library = 'liblua5.1.a';
  run('ar', ['rcsD', library, ...files.map((name) => name.replace(/c$/, 'o'))]);
  return { library: join(folder, library), include: folder };
}

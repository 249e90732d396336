/**
 * What a prebuilt addon needs from the machine it will run on, read from the file; and whether that machine has it.
 *
 * Invariant: what passes here asks for nothing but Node-API and the C library of its target, in versions that the oldest
 * supported system has.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { isOldEnough } from './old-glibc.mjs';

const MACHINES = { x64: 'X86-64', arm64: 'AArch64' };
/** musl's loader takes any name that begins so as itself. */
const C_LIBRARIES = { glibc: /^(libc|libm|libpthread|libdl)\.so\.\d+$/, musl: /^libc\.so$/ };

/** Lua's own mark in what it is linked into. */
const LUA_MARK = 'PUC-Rio';

function readelf(args) {
  return execFileSync('readelf', ['-W', ...args], { encoding: 'utf8', maxBuffer: 64 << 20 });
}

/** The symbols that a file leaves to others. */
function neededSymbols(path) {
  return readelf(['--dyn-syms', path])
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => fields[6] === 'UND' && fields[7] !== undefined && fields[4] === 'GLOBAL')
    .map((fields) => {
      const [name, version] = fields[7].split(/@+/);
      return { name, version };
    });
}

/** The names that musl's libc.so of the target offers. */
function offeredSymbols(path) {
  const lines = readelf(['--dyn-syms', path]).split('\n');
  return new Set(
    lines
      .map((line) => line.trim().split(/\s+/))
      .filter((fields) => fields[6] !== 'UND')
      .map((fields) => fields[7]),
  );
}

/** Reasons why the file does not suit the target; none = it does. `muslLibrary`: where its libc.so is, for musl targets. */
export function problemsOf(path, target, muslLibrary) {
  const problems = [];
  const header = readelf(['-h', path]);
  if (!header.includes(MACHINES[target.arch])) problems.push('is for another machine');
  if (!readFileSync(path).includes(LUA_MARK)) problems.push('carries no Lua');
  const libraries = [...readelf(['-d', path]).matchAll(/\(NEEDED\).*\[(.+)\]/g)].map((match) => match[1]);
  for (const library of libraries) {
    if (!C_LIBRARIES[target.libc].test(library)) problems.push(`needs the library ${library}`);
  }
  const offered = target.libc === 'musl' ? offeredSymbols(muslLibrary) : undefined;
  for (const { name, version } of neededSymbols(path)) {
    // Node-API, and libuv's names for errors: the node binary has both.
    if (/^(napi_|node_api_|uv_\w+_r$)/.test(name)) continue;
    if (offered !== undefined) {
      if (version !== undefined) problems.push(`needs ${name} in a version of glibc (${version})`);
      else if (!offered.has(name)) problems.push(`needs ${name}, which musl does not have`);
    } else if (version === undefined) problems.push(`needs ${name}, which glibc does not have`);
    else if (!isOldEnough(version.replace(/^GLIBC_/, ''))) problems.push(`needs ${name} of ${version}`);
  }
  return problems;
}

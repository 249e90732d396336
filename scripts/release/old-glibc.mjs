/**
 * A C library to link against whose newest symbol is as old as we need: what is built here then runs on older systems.
 *
 * glibc keeps the old versions of its functions beside the new ones, but the linker takes the newest. So each library is replaced,
 * for linking only, by an empty one that offers for each name the newest version that GLIBC_MAX has. What had no such
 * version (stat and its kin before 2.33) comes from native/release/old-stat.c.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { GLIBC_MAX } from './targets.mjs';

const LIBRARIES = ['libc.so.6', 'libm.so.6'];

function compareVersions(a, b) {
  const [left, right] = [a, b].map((version) => version.split('.').map(Number));
  for (let i = 0; i < Math.max(left.length, right.length); i++) {
    const difference = (left[i] ?? 0) - (right[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

export function isOldEnough(version) {
  return compareVersions(version, GLIBC_MAX) <= 0;
}

/** name -> { version, type }: the newest version of each symbol that is old enough. */
function oldSymbols(library) {
  const text = execFileSync('readelf', ['-W', '--dyn-syms', library], { encoding: 'utf8', maxBuffer: 64 << 20 });
  const symbols = new Map();
  for (const line of text.split('\n')) {
    const [, , , type, bind, , section, name] = line.trim().split(/\s+/);
    const match = /^(\w+)@@?GLIBC_([\d.]+)$/.exec(name ?? '');
    if (match === null || section === 'UND' || section === 'ABS' || bind === 'LOCAL') continue;
    if (!isOldEnough(match[2])) continue;
    const known = symbols.get(match[1]);
    if (known === undefined || compareVersions(known.version, match[2]) < 0) {
      symbols.set(match[1], { version: match[2], type });
    }
  }
  return symbols;
}

/** The stand-in of one library, as assembler and version script. */
function standIn(symbols) {
  const versions = [...new Set([...symbols.values()].map(({ version }) => version))].sort(compareVersions);
  const lines = ['.text'];
  let index = 0;
  for (const [name, { version, type }] of symbols) {
    const local = `stand_in_${index++}`;
    const kind = type === 'OBJECT' ? 'object' : type === 'TLS' ? 'tls_object' : 'function';
    lines.push(`.globl ${local}`, `.type ${local}, %${kind}`, `${local}: .quad 0`, `.size ${local}, 8`);
    lines.push(`.symver ${local}, ${name}@@GLIBC_${version}`);
  }
  const script = versions.map((version) => `GLIBC_${version} { };`).join('\n');
  return { assembler: `${lines.join('\n')}\n.section .note.GNU-stack,"",%progbits\n`, script };
}

/** Makes the libraries in `folder`; returns the linker flags that put them first. */
export function makeOldGlibc(target, compatSource, folder) {
  mkdirSync(folder, { recursive: true });
  const run = (command, args) => execFileSync(command, args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
  for (const library of LIBRARIES) {
    const path = execFileSync(target.compiler, [`-print-file-name=${library}`], { encoding: 'utf8' }).trim();
    const { assembler, script } = standIn(oldSymbols(path));
    writeFileSync(join(folder, `${library}.s`), assembler);
    writeFileSync(join(folder, `${library}.map`), `${script}\n`);
    const link = [`-Wl,-soname,${library}`, `-Wl,--version-script=${library}.map`];
    run(target.compiler, ['-shared', '-nostdlib', ...link, '-o', library, `${library}.s`]);
  }
  run(target.compiler, ['-O2', '-fPIC', '-c', '-o', 'old-stat.o', compatSource]);
  run('ar', ['rcsD', 'libold-stat.a', 'old-stat.o']);
  writeFileSync(join(folder, 'libc.so'), `GROUP ( ${folder}/libc.so.6 ${folder}/libold-stat.a )\n`);
  writeFileSync(join(folder, 'libm.so'), `GROUP ( ${folder}/libm.so.6 )\n`);
  return `-L${folder}`;
}

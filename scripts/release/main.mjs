/**
 * npm run release: the package with a prebuilt addon for every supported machine, as one tarball in build/release/.
 *
 *     npm run release                                    all of it
 *     npm run release -- --check                         builds everything twice, elsewhere, and compares the bytes
 *     npm run release -- --targets linux-x64-glibc       a tarball for these alone
 *     npm run release -- --as-built                      packs dist/ as it is (so do the tests, with --targets and --out)
 *     npm run release -- --addons-only                   what `npm pack` needs first (its prepack)
 *
 * Needs Debian with gcc and dpkg-dev, and gcc-aarch64-linux-gnu with libc6-dev-arm64-cross for arm64; musl and Lua come by apt-get without being installed.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { hasCommand, PrepareError, ROOT, runStep } from '../prepare.mjs';
import { buildAddon } from './addon.mjs';
import { TARGETS, targetNamed } from './targets.mjs';

const OPTIONS = {
  targets: { type: 'string' },
  out: { type: 'string', default: join(ROOT, 'build/release') },
  check: { type: 'boolean', default: false },
  'as-built': { type: 'boolean', default: false },
  'addons-only': { type: 'boolean', default: false },
};
const CACHE = join(ROOT, '.cache/release');
const PREBUILDS = join(ROOT, 'prebuilds');

const hashOf = (path) => createHash('sha256').update(readFileSync(path)).digest('hex');

/** True when the target's compiler is there and finds the headers of its C library. */
function canCompile({ compiler }) {
  const input = '#include <stdio.h>\n#include <linux/types.h>\n';
  return hasCommand(compiler) && spawnSync(compiler, ['-E', '-x', 'c', '-'], { input }).status === 0;
}

function checkCompilers(targets) {
  const missing = targets.filter((target) => !canCompile(target));
  if (missing.length === 0) return;
  const packages = [...new Set(missing.flatMap((target) => target.packages))];
  throw new PrepareError(
    `no compiler for ${missing.map(({ name }) => name).join(', ')}: apt-get install ${packages.join(' ')}, or name other --targets.`,
  );
}

/** Builds in a folder that is gone afterwards; `use` gets the file. */
function withBuilt(target, use) {
  const work = mkdtempSync(join(tmpdir(), 'entresol-release-'));
  try {
    return use(buildAddon(target, CACHE, join(work, 'work')));
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function buildAddons(targets) {
  rmSync(PREBUILDS, { recursive: true, force: true });
  for (const target of targets) {
    const path = join(PREBUILDS, target.name, 'entresol.node');
    mkdirSync(join(PREBUILDS, target.name), { recursive: true });
    withBuilt(target, (built) => cpSync(built, path));
    console.log(`${hashOf(path)}  prebuilds/${target.name}/entresol.node  ${readFileSync(path).length} bytes`);
  }
}

function checkAddons(targets) {
  for (const target of targets) {
    const first = hashOf(join(PREBUILDS, target.name, 'entresol.node'));
    const second = withBuilt(target, hashOf);
    if (first !== second) throw new PrepareError(`${target.name}: two builds differ (${first}, ${second})`);
    console.log(`${target.name}: the same bytes again`);
  }
}

/** Packs what is there; returns the tarball's path. */
function pack(folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const args = ['pack', '--ignore-scripts', '--loglevel=error', '--pack-destination', folder];
  const { status, stderr } = spawnSync('npm', args, { cwd: ROOT, encoding: 'utf8' });
  if (status !== 0) throw new PrepareError(`npm pack failed: ${stderr}`);
  return join(folder, readdirSync(folder)[0]);
}

function main() {
  const { values } = parseArgs({ options: OPTIONS });
  const targets = values.targets === undefined ? TARGETS : values.targets.split(',').map(targetNamed);
  checkCompilers(targets);
  if (!values['as-built']) runStep('Building the program', 'npm', ['run', '--silent', 'build:ts']);
  buildAddons(targets);
  if (values.check) checkAddons(targets);
  if (values['addons-only']) return;

  const tarball = pack(values.out);
  console.log(`${hashOf(tarball)}  ${tarball}  ${readFileSync(tarball).length} bytes`);
  if (!values.check) return;
  if (!values['as-built']) runStep('Building the program again', 'npm', ['run', '--silent', 'build:ts']);
  const again = pack(`${values.out}.again`);
  const isSame = hashOf(again) === hashOf(tarball);
  rmSync(`${values.out}.again`, { recursive: true });
  if (!isSame) throw new PrepareError('two tarballs differ');
  console.log('the tarball: the same bytes again');
}

try {
  main();
} catch (error) {
  if (!(error instanceof PrepareError)) throw error;
  console.error(`release: ${error.message}`);
  process.exitCode = 1;
}

/**
 * Makes a checkout runnable: dependencies installed, TypeScript and native addon built, each only when something changed.
 *
 * Runs before anything is installed, so it imports nothing but Node.js. What was built from which sources is known by a
 * hash of their content, kept beside the output; a checkout of another branch or a touched file cannot fool it.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('..', import.meta.url));

export class PrepareError extends Error {}

/** Runs a command in the checkout, its output shown; throws when it fails. */
export function runStep(title, command, args, env = process.env) {
  console.log(`> ${title}`);
  const { status, error } = spawnSync(command, args, { cwd: ROOT, stdio: 'inherit', env });
  if (error !== undefined) throw new PrepareError(`${title}: cannot run ${command}: ${error.message}`);
  if (status !== 0) throw new PrepareError(`${title}: failed; see the messages above.`);
}

export function hasCommand(name) {
  return spawnSync('sh', ['-c', `command -v ${name}`], { stdio: 'ignore' }).status === 0;
}

/** True when the Lua library is there that the addon carries; without it EVAL answers with an error. */
export function hasLua() {
  const found = spawnSync('sh', [join(ROOT, 'native/addon/find-lua.sh'), 'library'], { encoding: 'utf8' });
  return found.status === 0 && found.stdout.trim() !== '';
}

/** Refuses machines that the program does not support. */
export function checkPlatform() {
  if (Number(process.versions.node.split('.')[0]) < 20) {
    throw new PrepareError(`Node.js 20 or newer is needed; this is ${process.version}.`);
  }
  if (process.platform !== 'linux' || !['x64', 'arm64'].includes(process.arch)) {
    throw new PrepareError(`Linux on x64 or arm64 is needed; this is ${process.platform} on ${process.arch}.`);
  }
}

function readJson(path) {
  return JSON.parse(readFileSync(join(ROOT, path), 'utf8'));
}

/** True when node_modules holds exactly the versions of package-lock.json (optional packages of other platforms aside). */
function isInstalled() {
  if (!existsSync(join(ROOT, 'node_modules/.package-lock.json'))) return false;
  const installed = readJson('node_modules/.package-lock.json').packages;
  return Object.entries(readJson('package-lock.json').packages).every(
    ([path, { version, optional }]) =>
      path === '' || installed[path]?.version === version || (optional === true && installed[path] === undefined),
  );
}

export function installDependencies() {
  if (isInstalled()) return;
  // Without this, NODE_ENV=production would leave out the compiler.
  runStep('Installing dependencies (npm ci)', 'npm', [
    'ci',
    '--include=dev',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
  ]);
}

function* filesUnder(folder) {
  for (const entry of readdirSync(join(ROOT, folder), { withFileTypes: true })) {
    const path = `${folder}/${entry.name}`;
    if (!entry.isDirectory()) yield path;
    else if (!/^(build|build-.*|node_modules)$/.test(entry.name)) yield* filesUnder(path);
  }
}

/** Hash over names and content of these files and the files of these folders; what is missing counts as empty. */
function hashSources(paths, isSource, more = '') {
  const hash = createHash('sha256').update(process.arch).update(more);
  for (const path of paths) {
    if (!existsSync(join(ROOT, path))) continue;
    const files = statSync(join(ROOT, path)).isDirectory() ? [...filesUnder(path)].sort() : [path];
    for (const file of files.filter(isSource)) hash.update(`\n${file}\n`).update(readFileSync(join(ROOT, file)));
  }
  return hash.digest('hex');
}

function buildIfChanged({ title, script, sources, isSource = () => true, output, stamp, check, more }) {
  const hash = hashSources(sources, isSource, more);
  const isCurrent =
    existsSync(join(ROOT, output)) && existsSync(join(ROOT, stamp)) && readFileSync(join(ROOT, stamp), 'utf8') === hash;
  if (isCurrent) return;
  check?.();
  runStep(title, 'npm', ['run', '--silent', script]);
  writeFileSync(join(ROOT, stamp), hash);
}

function checkCompiler() {
  const missing = ['make', 'g++', 'python3'].filter((name) => !hasCommand(name));
  if (missing.length === 0) return;
  throw new PrepareError(
    `the native addon needs ${missing.join(', ')} to build. On Debian and Ubuntu: apt-get install make g++ python3; on Alpine: apk add make g++ python3 linux-headers.`,
  );
}

/** Removes outputs whose source is gone, so that no import finds a module that is no longer there. */
function removeOrphans() {
  for (const file of [...filesUnder('dist')]) {
    if (/^dist\/(bundle|cjs)\//.test(file)) continue; // made anew as a whole (scripts/bundle.mjs)
    const source = file.replace(/^dist\//, 'src/').replace(/(\.d\.ts|\.js|\.js\.map)$/, '.ts');
    if (source.endsWith('.ts') && !existsSync(join(ROOT, source))) rmSync(join(ROOT, file));
  }
}

export function build() {
  buildIfChanged({
    title: 'Building the program (tsc)',
    script: 'build:ts',
    sources: ['src', 'scripts/bundle.mjs', 'tsconfig.json', 'tsconfig.build.json', 'package-lock.json'],
    isSource: (file) => !file.endsWith('.test.ts'),
    output: 'dist/cjs/start.js',
    stamp: 'dist/.sources',
  });
  removeOrphans();
  buildIfChanged({
    title: 'Building the native addon (node-gyp)',
    script: 'build:native',
    sources: ['native/addon', 'native/common'],
    output: 'native/addon/build/Release/entresol.node',
    stamp: 'native/addon/build/.sources',
    // Built again when the Lua library has come.
    more: hasLua() ? 'lua' : '',
    check: checkCompiler,
  });
}

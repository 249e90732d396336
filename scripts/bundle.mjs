/**
 * Bundles what tsc has made in dist/: few files load in half the time of two hundred.
 *
 * dist/bundle: the library for import. dist/cjs: the library for require(), and the program: a thread that loads CommonJS starts
 * with a tenth less work. Both come with types, and lie as deep as the files that they are made of (dist/FOLDER/FILE), so that
 * paths relative to import.meta.url hold.
 */
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { rolldown } from 'rolldown';
import { ROOT } from './prepare.mjs';

const DIST = join(ROOT, 'dist');
/** Public entries: name in the package -> module. */
const LIBRARY = { index: 'embed/index', testing: 'testing/index', keyv: 'keyv/index' };
/** Entries that the program itself starts; a worker is named as in server/worker-thread.ts. What they load goes into files of its own. */
const PROGRAM = {
  start: 'cli/start',
  'start-worker': 'server/start-worker',
  'start-child': 'testing/start-child',
  'start-control': 'testing/start-control',
  'save-thread': 'server/save-thread',
  'durability-worker': 'server/durability-worker',
  'log-thread': 'server/effects/log-thread',
  'checkpoint-thread': 'server/effects/checkpoint-thread',
};

/** The files that a module in dist/ imports, with all that these import; not what is loaded later, by import(). */
function reachOf(path, seen = new Set()) {
  const file = join(DIST, `${path}.js`);
  if (seen.has(file)) return seen;
  seen.add(file);
  for (const [, target] of readFileSync(file, 'utf8').matchAll(/^(?:import|export)\b[^;]*?'(\.[^']+)\.js';/gm)) {
    reachOf(relative(DIST, join(dirname(file), target)), seen);
  }
  return seen;
}

/**
 * Returns a function: the name of the file that a module goes into, or null for whatever the bundler chooses. What a start loads lies in few
 * files, since each costs half a millisecond: what the main thread and a worker (a test server's process is both) share, what a worker shares with the
 * library, and what is left of either. Settings stay by themselves: --help must not need the addon. So does what must be there before the store.
 */
function placing() {
  const paths = ['server/worker', 'server/main', 'testing/child', 'embed/index', 'config/index'];
  const [worker, main, child, library, settings] = paths.map((path) => reachOf(path));
  // What an entry loads before it uses what earlier starts have compiled of the rest.
  const alone = reachOf('testing/start-child', reachOf('server/start-worker', reachOf('cli/start')));
  const flavour = join(DIST, 'layout/flavour.js');
  return (file) => {
    if (alone.has(file)) return null;
    // Where writers' flavour is chosen, before the file that they are in is loaded.
    if (file === flavour) return 'config';
    if (settings.has(file)) return 'config';
    if (main.has(file)) return child.has(file) ? 'shared' : 'main';
    if (worker.has(file)) return library.has(file) ? 'store' : 'commands';
    return null;
  };
}

async function bundle(entries, format, folder, nameOf) {
  const out = join(DIST, folder);
  rmSync(out, { recursive: true, force: true });
  const input = Object.fromEntries(Object.entries(entries).map(([name, path]) => [name, join(DIST, `${path}.js`)]));
  const build = await rolldown({
    input,
    platform: 'node',
    external: [/^node:/, 'smol-toml'],
    logLevel: 'warn',
    // What `nameOf` asks for.
    preserveEntrySignatures: nameOf === undefined ? 'exports-only' : 'allow-extension',
  });
  await build.write({
    dir: out,
    format,
    entryFileNames: '[name].js',
    chunkFileNames: '[name]-[hash].js',
    sourcemap: true,
    exports: 'named',
    // Read at each start, never by people: sources and their comments are in the repository.
    comments: false,
    codeSplitting: nameOf === undefined || {
      includeDependenciesRecursively: false,
      groups: [{ debugName: 'start', name: nameOf }],
    },
  });
  await build.close();
}

/** The declarations that a library entry needs, in the same folders as in dist/. */
function copyTypes(folder) {
  const seen = new Set();
  const visit = (file) => {
    if (seen.has(file)) return;
    seen.add(file);
    const target = join(DIST, folder, 'types', relative(DIST, file));
    mkdirSync(dirname(target), { recursive: true });
    cpSync(file, target);
    for (const [, path] of readFileSync(file, 'utf8').matchAll(/(?:from|import\()\s*'(\.[^']+)\.js'/g)) {
      visit(join(dirname(file), `${path}.d.ts`));
    }
  };
  for (const path of Object.values(LIBRARY)) visit(join(DIST, `${path}.d.ts`));
}

await bundle(LIBRARY, 'esm', 'bundle');
copyTypes('bundle');
await bundle({ ...LIBRARY, ...PROGRAM }, 'cjs', 'cjs', placing());
copyTypes('cjs');
writeFileSync(join(DIST, 'cjs/package.json'), '{ "type": "commonjs" }\n');

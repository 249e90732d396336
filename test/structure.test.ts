/**
 * The shape of the code, enforced: which folder may import which, no import cycles, a header in every file, small files.
 *
 * Imports point one way: cli -> server -> {protocol, commands} -> store -> memory -> layout. A new folder under src/ must be
 * entered in LAYERS, with what it may import.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const SRC = join(ROOT, 'src');
const LINES_MAX = 500;

/** Folder -> the folders it may import. */
const LAYERS: Readonly<Record<string, readonly string[]>> = {
  cli: ['config', 'server', 'embed', 'hotspots', 'devices', 'store', 'memory', 'layout', 'native'],
  hotspots: ['config', 'protocol', 'commands', 'devices', 'store', 'memory', 'layout', 'native'],
  server: ['config', 'protocol', 'commands', 'rdb', 'devices', 'store', 'memory', 'layout', 'native'],
  keyv: ['embed'],
  testing: ['server', 'config', 'native'],
  embed: ['store', 'memory', 'layout', 'native', 'config'],
  // Handlers write replies through protocol's writers; the protocol knows of commands the declarations only (types).
  commands: ['config', 'protocol', 'rdb', 'store', 'memory', 'layout', 'native'],
  protocol: ['layout', 'native'],
  // Dumps and files as Redis writes them: values of the store to bytes and back.
  rdb: ['store', 'memory', 'layout', 'native'],
  store: ['devices', 'memory', 'layout', 'native'],
  // What the machine is; knows nothing of pools.
  devices: ['config', 'native'],
  memory: ['devices', 'layout', 'native'],
  native: ['layout'],
  layout: [],
  config: [],
};
/** Beside the above, for `import type` alone: nothing of these reaches the running program. */
const TYPE_LAYERS: Readonly<Record<string, readonly string[]>> = { protocol: ['commands'] };

interface Import {
  readonly from: string;
  readonly to: string;
  readonly isType: boolean;
}

function filesUnder(folder: string, extension: RegExp): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && extension.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !/\/(node_modules|build|build-[^/]*|dist)\//.test(path));
}

const isTest = (path: string): boolean => path.endsWith('.test.ts');
const sourceFiles = filesUnder(SRC, /\.ts$/).filter((path) => !isTest(path));

/** Static and dynamic imports of our own files. A clause whose names are all marked `type` is a type import. */
function importsOf(path: string): Import[] {
  const text = readFileSync(path, 'utf8');
  const pattern = /\b(?:import|export)\s+((?:type\s+)?[\w*{}\s,]*?)\s*from\s*'(\.[^']+)'|\bimport\s*\(?\s*'(\.[^']+)'/g;
  return [...text.matchAll(pattern)].map(([, clause, staticTarget, bareTarget]) => {
    const target = join(dirname(path), staticTarget ?? bareTarget).replace(/\.js$/, '.ts');
    const names =
      /^\{([^}]*)\}$/
        .exec((clause ?? '').trim())?.[1]
        .split(',')
        .map((name) => name.trim()) ?? [];
    const areAllTypes =
      names.some((name) => name !== '') && names.every((name) => name === '' || name.startsWith('type '));
    return { from: path, to: target, isType: /^type\s/.test((clause ?? '').trim()) || areAllTypes };
  });
}

const layerOf = (path: string): string => relative(SRC, path).split('/')[0];
const imports = sourceFiles.flatMap(importsOf);

function isAllowed({ from, to, isType }: Import): boolean {
  const [fromLayer, toLayer] = [layerOf(from), layerOf(to)];
  if (fromLayer === toLayer || LAYERS[fromLayer]?.includes(toLayer)) return true;
  return isType && (TYPE_LAYERS[fromLayer]?.includes(toLayer) ?? false);
}

/** One cycle of value imports as a list of files, or undefined. */
function findCycle(): string[] | undefined {
  const targets = new Map<string, string[]>();
  for (const { from, to, isType } of imports) {
    if (!isType) targets.set(from, [...(targets.get(from) ?? []), to]);
  }
  const done = new Set<string>();
  const path: string[] = [];
  const visit = (file: string): string[] | undefined => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (done.has(file)) return undefined;
    path.push(file);
    for (const target of targets.get(file) ?? []) {
      const cycle = visit(target);
      if (cycle !== undefined) return cycle;
    }
    path.pop();
    done.add(file);
    return undefined;
  };
  for (const file of sourceFiles) {
    const cycle = visit(file);
    if (cycle !== undefined) return cycle.map((name) => relative(ROOT, name));
  }
  return undefined;
}

describe('structure', () => {
  it('finds the imports', () => {
    expect(imports.length).toBeGreaterThan(20);
  });

  it('knows every folder of src', () => {
    expect([...new Set(sourceFiles.map(layerOf))].filter((layer) => !(layer in LAYERS))).toEqual([]);
  });

  it('imports in one direction only', () => {
    const wrong = imports.filter((entry) => !isAllowed(entry));
    expect(wrong.map(({ from, to }) => `${relative(ROOT, from)} imports ${relative(ROOT, to)}`)).toEqual([]);
  });

  it('has no import cycles', () => {
    expect(findCycle()).toBeUndefined();
  });

  it('opens every source file with what it is', () => {
    const native = filesUnder(join(ROOT, 'native'), /\.[ch]$/);
    const scripts = filesUnder(join(ROOT, 'scripts'), /\.mjs$/);
    const bare = [...sourceFiles, ...native, ...scripts].filter((path) => {
      const opening = readFileSync(path, 'utf8').replace(/^#!.*\n/, '');
      return !/^(\/\*|\/\/)/.test(opening);
    });
    expect(bare.map((path) => relative(ROOT, path))).toEqual([]);
  });

  it('loads node:crypto only when something is to be hashed', () => {
    const eager = sourceFiles.filter((path) => /^import (?!type\b).*'node:crypto'/m.test(readFileSync(path, 'utf8')));
    expect(eager.map((path) => relative(ROOT, path))).toEqual([]);
  });

  it(`keeps files below ${LINES_MAX} lines`, () => {
    const folders = ['src', 'test', 'native', 'scripts'];
    const files = folders.flatMap((folder) => filesUnder(join(ROOT, folder), /\.(ts|mjs|c|h)$/));
    const long = files.filter((path) => readFileSync(path, 'utf8').split('\n').length > LINES_MAX);
    expect(long.map((path) => relative(ROOT, path))).toEqual([]);
  });
});

/**
 * Who else may make views of mapped memory, and why nothing of a pool in use is written through them. All others get it from Bytes.ofPool,
 * which the traced flavour replaces (layout/flavour).
 */
const OWN_VIEWS: Readonly<Record<string, string>> = {
  'src/store/attach.ts': 'Bytes.ofPool',
  'src/store/pool-copy.ts': 'Bytes.ofPool',
  'src/store/format.ts': 'formats a pool that nobody uses',
  'src/store/open.ts': 'sets the policy of a pool that is being opened',
  'src/devices/dax-probe.ts': 'a file of its own',
  'src/server/loop.ts': "the pump's arenas",
  'src/store/effects/record-buffer.ts': 'records on their way to the log',
  'src/server/effects/log-medium.ts': 'a file of its own',
  'src/hotspots/feed.ts': 'requests',
  'src/commands/scripting/script-engine.ts': "the interpreter's arenas",
};
/** Natives that write to memory which they are given, and the one file that calls them. */
const WRITING_NATIVES: Readonly<Record<string, string>> = {
  'addon.copy\\b': 'src/native/copy.ts',
  // hotspots/feed receives through views instead.
  '\\.receiveInto\\(': 'src/server/loop.ts',
};
const VIEW = '(?:Uint8|Int8|Uint16|Int16|Uint32|Int32|Float32|Float64|BigInt64|BigUint64|Uint8Clamped)Array|DataView';

describe('writes to mapped memory', () => {
  const code = (path: string): string =>
    readFileSync(path, 'utf8')
      .replace(/\/\*[\s\S]*?\*\//g, '')
      .replace(/^\s*\/\/.*$/gm, '');
  const files = sourceFiles.filter((path) => relative(ROOT, path) !== 'src/native/addon.ts');
  const filesWith = (pattern: RegExp): string[] =>
    files.filter((path) => pattern.test(code(path))).map((path) => relative(ROOT, path));

  it('go through views of the chosen flavour', () => {
    expect(filesWith(/\bwrapArena\(/).filter((path) => !(path in OWN_VIEWS))).toEqual([]);
  });

  it('never go round them: no view is made of the buffer behind a view of a pool', () => {
    const behind = new RegExp(`new (?:${VIEW})\\(\\s*[^;)]*\\b(?:u8|i32|view|ctl|own|words?)\\b\\.buffer`);
    // What is left makes views of numbers and of arrays of its own.
    expect(filesWith(behind)).toEqual(['src/hotspots/structures.ts', 'src/store/capacity-file.ts']);
    expect(filesWith(/Buffer\.from\([^;]*\.buffer[^;]*\)\s*\.(?:write|fill|set|copy|swap)/)).toEqual([]);
    expect(filesWith(/\.subarray\([^;]*\)\s*\.(?:fill|set|copyWithin|write|reverse|sort)\(/)).toEqual([
      // Numbers of the command's own.
      'src/commands/collections/ordering.ts',
      'src/commands/sorted-sets/sorted-set-computation.ts',
    ]);
  });

  it('by natives are made where they are recorded', () => {
    for (const [native, file] of Object.entries(WRITING_NATIVES)) {
      expect(filesWith(new RegExp(native)), native).toEqual([file]);
    }
    // The control block of copies belongs to prefetches and texts too, which write nothing.
    const users = ['src/native/copy.ts', 'src/native/prefetch.ts', 'src/native/text.ts'];
    expect(filesWith(/\bcopyControl\(/)).toEqual(users);
  });
});

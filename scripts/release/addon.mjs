/**
 * Builds the addon for one target of a release, the same bytes wherever and whenever it runs with the same compiler.
 *
 * It is node-gyp with native/addon/binding.gyp as from a clone: other compilers and flags come through the environment. The
 * sources are copied into a work folder, whose path does not reach the result.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../prepare.mjs';
import { problemsOf } from './elf.mjs';
import { makeLua } from './lua.mjs';
import { makeMusl } from './musl.mjs';
import { makeOldGlibc } from './old-glibc.mjs';

/** Folders of native/ that the addon is built from. */
const SOURCES = ['addon', 'common'];
const PROBLEMS_SHOWN = 5;

function copySources(folder) {
  for (const name of SOURCES) {
    const from = join(ROOT, 'native', name);
    if (!existsSync(from)) continue;
    cpSync(from, join(folder, 'native', name), {
      recursive: true,
      filter: (path) => !/\/(build|build-.*|node_modules)$/.test(path),
    });
  }
}

function toolsFor(target, cache, work) {
  const tools = join(work, 'tools');
  mkdirSync(tools, { recursive: true });
  if (target.libc === 'musl') {
    const { flags, library } = makeMusl(target, cache, tools);
    return { cflags: flags, ldflags: flags, muslLibrary: library };
  }
  const compat = join(ROOT, 'native/release/old-stat.c');
  return { cflags: '', ldflags: makeOldGlibc(target, compat, tools), muslLibrary: undefined };
}

function run(command, args, options) {
  const { status, error, stdout } = spawnSync(command, args, { encoding: 'utf8', ...options });
  if (error !== undefined) throw new Error(`cannot run ${command}: ${error.message}`);
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed (${status})\n${stdout ?? ''}`);
}

/** Builds into `work`; returns the path of the finished file. Throws when it needs what its target may not have. */
export function buildAddon(target, cache, work) {
  rmSync(work, { recursive: true, force: true });
  copySources(work);
  const { cflags, ldflags, muslLibrary } = toolsFor(target, cache, work);
  const lua = makeLua(target, cflags, cache, join(work, 'lua'));
  const prefix = `-ffile-prefix-map=${work}=.`;
  const env = {
    ...process.env,
    CC: target.compiler,
    // The addon is C: nothing may pull in the C++ library.
    CXX: target.compiler,
    LINK: target.compiler,
    AR: 'ar',
    CFLAGS: `${prefix} ${cflags}`,
    CXXFLAGS: `${prefix} ${cflags}`,
    LDFLAGS: `${ldflags} -Wl,--build-id=none -Wl,-z,relro,-z,now`,
    SOURCE_DATE_EPOCH: '0',
  };
  const addon = join(work, 'native/addon');
  const options = [`--arch=${target.arch}`, `--lua_library=${lua.library}`, `--lua_include=${lua.include}`];
  run('node-gyp', ['rebuild', '-C', addon, ...options, '--jobs', 'max', '--loglevel=error'], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const built = join(work, 'entresol.node');
  copyFileSync(join(addon, 'build/Release/entresol.node'), built);
  run(target.compiler.replace(/gcc$/, 'strip'), ['--strip-unneeded', built], {});
  const problems = problemsOf(built, target, muslLibrary);
  if (problems.length > 0) throw new Error(`${target.name}: the addon ${problems.slice(0, PROBLEMS_SHOWN).join('; ')}`);
  return built;
}

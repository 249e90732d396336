/**
 * Keeps what V8 has compiled of the bundled program (dist/cjs) for the next start: compiling it takes 25 ms of a start, reading it back 3.
 *
 * An entry calls `keepCompiled` before it loads the rest, and `saveCompiled` once all of a start has run, so that the functions which a start
 * needs are in what is kept. Invariant: a file's cache is used only for the same size and time of the file and the same Node.js; V8
 * itself refuses what another version of it has made. Where nothing can be written, everything works without.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire, Module } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Script } from 'node:vm';
import { threadId } from 'node:worker_threads';

/** Node's own: how a CommonJS module is compiled. */
interface CompilingModule {
  exports: unknown;
  _compile(content: string, filename: string, ...rest: unknown[]): unknown;
}
type Wrapper = (exports: unknown, require: unknown, module: unknown, filename: string, dirname: string) => unknown;

const SUFFIX = '.compiled';
/** Before the compiled code: size and time of the source, two doubles. */
const HEADER_BYTES = 16;

const here = dirname(fileURLToPath(import.meta.url));
/** What has been compiled in this thread without a cache that fits. */
const fresh: { readonly script: Script; readonly filename: string }[] = [];
let restore: (() => void) | null = null;

/** node_modules/.cache of the project that the package lies in, or of this checkout; null where there is none. */
function cacheFolder(): string | null {
  const packageFolder = dirname(dirname(here));
  const around = dirname(packageFolder);
  const modules = basename(around) === 'node_modules' ? around : join(packageFolder, 'node_modules');
  return existsSync(modules) ? join(modules, '.cache', 'entresol', `${process.version}-${process.arch}`) : null;
}

function headerOf(filename: string): Buffer {
  const { size, mtimeMs } = statSync(filename);
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeDoubleLE(size);
  header.writeDoubleLE(mtimeMs, 8);
  return header;
}

function readCompiled(folder: string, filename: string): Buffer | undefined {
  let kept: Buffer;
  try {
    kept = readFileSync(join(folder, `${basename(filename)}${SUFFIX}`));
  } catch {
    return undefined;
  }
  return kept.subarray(0, HEADER_BYTES).equals(headerOf(filename)) ? kept.subarray(HEADER_BYTES) : undefined;
}

/** From here on, modules beside this one are compiled with what earlier starts have kept. Does nothing in dist/server, which is not CommonJS. */
export function keepCompiled(): void {
  const folder = cacheFolder();
  if (folder === null || restore !== null || basename(here) !== 'cjs') return;
  const prototype = Module.prototype as unknown as CompilingModule;
  const ordinary = prototype._compile;
  restore = () => {
    prototype._compile = ordinary;
  };
  prototype._compile = function (content, filename, ...rest) {
    if (dirname(filename) !== here) return ordinary.call(this, content, filename, ...rest);
    const cachedData = readCompiled(folder, filename);
    const script = new Script(Module.wrap(content), {
      filename,
      ...(cachedData !== undefined && { cachedData }),
    });
    if (cachedData === undefined || script.cachedDataRejected === true) fresh.push({ script, filename });
    const run = script.runInThisContext() as Wrapper;
    return run.call(this.exports, this.exports, createRequire(filename), this, filename, here);
  };
}

/** Writes what was compiled anew, and removes what belongs to files that are no more. */
export function saveCompiled(): void {
  restore?.();
  const folder = cacheFolder();
  if (folder === null || fresh.length === 0) return;
  try {
    mkdirSync(folder, { recursive: true });
    for (const { script, filename } of fresh.splice(0)) {
      const path = join(folder, `${basename(filename)}${SUFFIX}`);
      const draft = `${path}.${process.pid}-${threadId}`;
      writeFileSync(draft, Buffer.concat([headerOf(filename), script.createCachedData()]));
      renameSync(draft, path);
    }
    for (const name of readdirSync(folder)) {
      if (name.endsWith(SUFFIX) && !existsSync(join(here, name.slice(0, -SUFFIX.length)))) rmSync(join(folder, name));
    }
  } catch {
    // A read-only installation, a full disk: the next start compiles again.
  }
}

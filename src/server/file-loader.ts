/**
 * Reading files of Redis into a store: RDB files, append-only files, the two in one (an RDB file with commands behind it), and the parts that a
 * manifest names.
 *
 * Owns: what has been read so far. Invariant: an append-only file is read to its end, or, where `aof-load-truncated` allows it, to the last
 * command or transaction that is there whole; for anything else that is wrong with it a LoadError names the file and the byte.
 */
import {
  closeSync,
  existsSync,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { MANIFEST_SUFFIX, parseManifest } from '../commands/persistence/aof-manifest.js';
import type { Replay } from '../commands/persistence/aof-replay.js';
import { LoadSink } from '../commands/persistence/load-sink.js';
import { LIBRARIES_FILE } from '../commands/scripting/function-libraries.js';
import { encodeLibraries } from '../commands/scripting/library-codec.js';
import type { Settings } from '../config/index.js';
import { AofItem, AofReader } from '../rdb/aof-reader.js';
import { RdbFileReader } from '../rdb/file-reader.js';
import { RdbError } from '../rdb/format.js';
import type { Fill } from '../rdb/reader.js';
import type { Keyspace } from '../store/keyspace.js';
import type { Log } from './log.js';

/** Between two looks at signals and clock. */
const KEYS_A_STEP = 512;
const STEP_MS = 50;
const BACKGROUND_US = 200;
/** First bytes of an append-only file of commands: one of these, or its first annotation. */
const COMMAND_BEGINS = 0x2a;
const ANNOTATION_BEGINS = 0x23;

/** A file that cannot be loaded. The pool is empty; the next start tries again. */
export class LoadError extends Error {
  override readonly name = 'LoadError';
  readonly code = 'ERR_LOAD';

  constructor(
    readonly path: string,
    reason: string,
  ) {
    super(`${path}: ${reason}`);
  }
}

/** The files that make up what `path` names: itself, or those of a manifest (a folder has one), in reading order. */
function filesOf(path: string): readonly string[] {
  const isFolder = attempt(path, () => statSync(path).isDirectory());
  if (isFolder) {
    const manifests = readdirSync(path).filter((name) => name.endsWith(MANIFEST_SUFFIX));
    if (manifests.length === 1) return filesOf(join(path, manifests[0]));
    const what = manifests.length === 0 ? 'without' : 'with more than one';
    throw new LoadError(path, `is a folder ${what} manifest of an append-only file (*${MANIFEST_SUFFIX})`);
  }
  if (!path.endsWith(MANIFEST_SUFFIX)) return [path];
  const { base, increments } = attempt(path, () => parseManifest(readFileSync(path, 'utf8')));
  return [...(base === null ? [] : [base]), ...increments].map(({ name }) => join(dirname(path), name));
}

/** What `work` returns; its errors as LoadErrors. */
function attempt<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof RdbError) throw new LoadError(path, `cannot be loaded: ${error.message}`);
    throw new LoadError(path, `cannot be opened: ${(error as Error).message}`);
  }
}

export class FileLoader {
  readonly #keyspace: Keyspace;
  readonly #settings: Settings;
  readonly #log: Log;
  readonly #sink: LoadSink;
  readonly #librariesPath: string;
  #replay: Replay | null = null;
  #commands = 0;
  #bytes = 0;

  constructor(keyspace: Keyspace, settings: Settings, log: Log) {
    this.#keyspace = keyspace;
    this.#settings = settings;
    this.#log = log;
    this.#sink = new LoadSink(keyspace, settings);
    this.#librariesPath = join(settings.pool, LIBRARIES_FILE);
  }

  /** Loads what `path` names. Throws LoadError; what has been read by then is in the store. */
  async load(path: string): Promise<void> {
    const startedMs = performance.now();
    const files = filesOf(path);
    try {
      for (const [i, file] of files.entries()) await this.#read(file, files[0] !== path, i === files.length - 1);
    } finally {
      this.#keyspace.holdExpiry(false);
    }
    this.#report(path, (performance.now() - startedMs) / 1000);
  }

  #report(path: string, seconds: number): void {
    const { loadedKeys, expiredKeys, moduleKeyCount, moduleKeys } = this.#sink;
    const log = this.#log;
    const replayed = this.#replay === null ? '' : `, ${this.#commands} commands carried out`;
    const what = `${loadedKeys} keys loaded${replayed} in ${seconds.toFixed(1)} s, ${this.#bytes} bytes`;
    log('notice', `${path}: ${what}`);
    if (expiredKeys > 0) log('notice', `${path}: ${expiredKeys} keys had expired`);
    if (moduleKeyCount > 0) {
      log('warning', `${path}: ${moduleKeyCount} keys of modules are left out: ${moduleKeys.join(', ')}`);
    }
    const { errors = 0, firstError = '' } = this.#replay ?? {};
    if (errors > 0)
      log('warning', `${path}: ${errors} commands were answered with an error, the first of them ${firstError}`);
  }

  async #read(path: string, isPart: boolean, isLast: boolean): Promise<void> {
    const fd = attempt(path, () => openSync(path, 'r'));
    const reader = new RdbFileReader(this.#sink);
    try {
      const { size } = fstatSync(fd);
      this.#bytes += size;
      // What Redis has begun a part with, and has not written to yet.
      if (size === 0 && isPart) return;
      const fill = (u8: Uint8Array, at: number, length: number): number => readSync(fd, u8, at, length, null);
      const first = Buffer.alloc(1);
      readSync(fd, first, 0, 1, 0);
      if (first[0] === COMMAND_BEGINS || first[0] === ANNOTATION_BEGINS) reader.reader.openFile(fill, size);
      else await this.#readKeys(reader, fill, size);
      if (reader.reader.left > 0) await this.#carryOut(path, new AofReader(reader.reader), isLast);
    } catch (error) {
      throw error instanceof RdbError ? new LoadError(path, `cannot be loaded: ${error.message}`) : error;
    } finally {
      closeSync(fd);
    }
  }

  async #readKeys(reader: RdbFileReader, fill: Fill, size: number): Promise<void> {
    reader.open(fill, size, this.#settings.rdbchecksum);
    await this.#inSteps(() => {
      reader.read(KEYS_A_STEP);
      return !reader.isDone;
    });
    this.#keepLibraries();
  }

  /** Libraries of functions, unless the pool's folder has its own. */
  #keepLibraries(): void {
    const { libraries } = this.#sink;
    if (libraries.length === 0 || existsSync(this.#librariesPath)) return;
    writeFileSync(this.#librariesPath, encodeLibraries(libraries), { mode: 0o600 });
  }

  async #carryOut(path: string, commands: AofReader, isLast: boolean): Promise<void> {
    this.#keyspace.holdExpiry(true);
    const replay = await this.#beginReplay();
    let cutAt = -1;
    try {
      await this.#inSteps(() => {
        for (let i = 0; i < KEYS_A_STEP; i++) {
          const item = commands.next();
          if (item !== AofItem.COMMAND) {
            if (replay.transactionAt >= 0) cutAt = replay.transactionAt;
            else if (item === AofItem.CUT) cutAt = commands.begin;
            return false;
          }
          replay.run(commands);
          this.#commands++;
        }
        return true;
      });
    } catch (error) {
      throw error instanceof RdbError ? new RdbError(`${error.message}, at byte ${commands.begin}`) : error;
    }
    if (cutAt >= 0) this.#leaveOut(path, cutAt, isLast);
  }

  /** Only for this all commands are loaded. */
  async #beginReplay(): Promise<Replay> {
    if (this.#replay === null) {
      const { Replay: Commands } = await import('../commands/persistence/aof-replay.js');
      this.#replay = new Commands(this.#keyspace, this.#settings, this.#librariesPath);
    }
    this.#replay.beginFile();
    return this.#replay;
  }

  /** The file ends in the middle of the command or transaction that begins there. */
  #leaveOut(path: string, begin: number, isLast: boolean): void {
    const what = `ends in the middle of the command or transaction that begins at byte ${begin}`;
    if (!isLast) throw new LoadError(path, `${what}, and is not the last of its files`);
    if (!this.#settings.aofLoadTruncated) throw new LoadError(path, `${what}, and aof-load-truncated is off`);
    this.#log('warning', `${path}: ${what}, which is left out`);
  }

  /** Repeats `step` while it returns true, and looks at other things in between. */
  async #inSteps(step: () => boolean): Promise<void> {
    const keyspace = this.#keyspace;
    keyspace.enterBatch();
    try {
      for (let untilMs = performance.now() + STEP_MS; step(); ) {
        keyspace.refreshClock();
        keyspace.background(BACKGROUND_US);
        if (performance.now() < untilMs) continue;
        keyspace.leaveBatch();
        await nextTurn();
        keyspace.enterBatch();
        untilMs = performance.now() + STEP_MS;
      }
    } catch (error) {
      this.#sink.abandon();
      throw error;
    } finally {
      keyspace.leaveBatch();
    }
  }
}

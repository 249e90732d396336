/**
 * The libraries of functions of one server: FUNCTION LOAD and friends, and what FCALL runs.
 *
 * The truth is a file beside the pool (the payload of FUNCTION DUMP), so libraries survive restarts as the pool does. Whoever changes
 * them holds the store gate, writes the file and moves the shared version on; the other workers read it again at their next call.
 * Each worker has its own interpreter: variables of a library are not shared. Invariant: `libraries` and the file agree after every change,
 * and a change that cannot be written changes nothing.
 */
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { ScriptWord } from '../../layout/shared-scripts.js';
import type { Executor } from '../executor.js';
import { decodeLibraries, encodeLibraries } from './library-codec.js';
import { ScriptEngine } from './script-engine.js';
import type { Scripting } from './scripting.js';
import { libraryShebang } from './shebang.js';

export const LIBRARIES_FILE = 'functions.rdb';
export const ENGINE_NAME = 'LUA';

export interface LibraryFunction {
  readonly name: string;
  readonly description: string | null;
  readonly flags: number;
  /** In the interpreter. */
  readonly id: number;
}

export interface Library {
  readonly name: string;
  readonly code: Buffer;
  readonly functions: readonly LibraryFunction[];
}

/** How FUNCTION RESTORE treats what is there. */
export type RestorePolicy = 'append' | 'replace' | 'flush';

export class FunctionLibraries {
  private readonly scripting: Scripting;
  private readonly executor: Executor;
  private readonly path: string;
  private engine: ScriptEngine | null = null;
  /** Of what is loaded here; -1 = nothing yet. */
  private version = -1;
  private libraries = new Map<string, Library>();
  /** By name in lower case: functions are called in any case. */
  private functions = new Map<string, LibraryFunction>();

  constructor(scripting: Scripting, executor: Executor, path: string) {
    this.scripting = scripting;
    this.executor = executor;
    this.path = path;
  }

  /** Bytes of the libraries' code. */
  get codeBytes(): number {
    return this.list().reduce((sum, { code }) => sum + code.length, 0);
  }

  /** In order of their loading. */
  list(): readonly Library[] {
    this.synchronize();
    return [...this.libraries.values()];
  }

  find(name: string): LibraryFunction | undefined {
    this.synchronize();
    return this.functions.get(name.toLowerCase());
  }

  /** The same as far as this worker has heard of it. Needs no gate. */
  known(name: string): LibraryFunction | undefined {
    return this.functions.get(name.toLowerCase());
  }

  get functionCount(): number {
    this.synchronize();
    return this.functions.size;
  }

  open(): ScriptEngine {
    this.engine ??= new ScriptEngine(this.scripting, this.executor, true);
    return this.engine;
  }

  /** FUNCTION LOAD: the library's name, or the error. */
  load(code: Buffer, replaces: boolean): { readonly name: string } | { readonly error: string } {
    this.synchronize();
    const head = libraryShebang(code.toString('latin1'));
    if (typeof head === 'string') return { error: head };
    if (head.engine.toUpperCase() !== ENGINE_NAME) return { error: `ERR Engine '${head.engine}' not found` };
    if (this.libraries.has(head.name) && !replaces) return { error: `ERR Library '${head.name}' already exists` };
    const loaded = this.compile(head.name, code, head.skipped, true);
    if (typeof loaded === 'string') return { error: loaded };
    const next = new Map(this.libraries);
    next.delete(head.name);
    next.set(head.name, loaded);
    const error = this.clash(next, loaded) ?? this.replaceBy(next);
    if (error === null) return { name: head.name };
    this.forget(loaded);
    return { error };
  }

  /** FUNCTION DELETE, the error or null. */
  remove(name: string): string | null {
    this.synchronize();
    if (!this.libraries.has(name)) return 'ERR Library not found';
    const next = new Map(this.libraries);
    next.delete(name);
    return this.replaceBy(next);
  }

  flush(): string | null {
    this.synchronize();
    return this.replaceBy(new Map());
  }

  dump(): Buffer {
    return encodeLibraries(this.list().map(({ code }) => code));
  }

  /** FUNCTION RESTORE, all or nothing: the error or null. */
  restore(payload: Buffer, policy: RestorePolicy): string | null {
    this.synchronize();
    const codes = decodeLibraries(payload);
    if (typeof codes === 'string') return codes;
    const restored: Library[] = [];
    const error = this.restoreAll(codes, policy, restored);
    if (error !== null) for (const library of restored) this.forget(library);
    return error;
  }

  private restoreAll(codes: readonly Buffer[], policy: RestorePolicy, restored: Library[]): string | null {
    const next = policy === 'flush' ? new Map<string, Library>() : new Map(this.libraries);
    const given = new Map<string, Library>();
    for (const code of codes) {
      const head = libraryShebang(code.toString('latin1'));
      if (typeof head === 'string') return head;
      if (head.engine.toUpperCase() !== ENGINE_NAME) return `ERR Engine '${head.engine}' not found`;
      if (given.has(head.name)) return `ERR Library '${head.name}' already exists`;
      const library = this.compile(head.name, code, head.skipped, false);
      if (typeof library === 'string') return library;
      restored.push(library);
      const clash = this.clash(given, library);
      if (clash !== null) return clash;
      given.set(head.name, library);
    }
    for (const name of given.keys()) {
      if (next.has(name) && policy !== 'replace') return `ERR Library ${name} already exists`;
      next.delete(name);
    }
    for (const library of given.values()) {
      const clash = this.clash(next, library);
      if (clash !== null) return clash;
    }
    for (const [name, library] of given) next.set(name, library);
    return this.replaceBy(next);
  }

  /** The error when a function of `library` has the name of one in another library. */
  private clash(libraries: ReadonlyMap<string, Library>, library: Library): string | null {
    const names = new Set<string>();
    for (const other of libraries.values()) {
      if (other !== library) for (const { name } of other.functions) names.add(name.toLowerCase());
    }
    const taken = library.functions.find(({ name }) => names.has(name.toLowerCase()));
    return taken === undefined ? null : `ERR Function ${taken.name} already exists`;
  }

  private compile(name: string, code: Buffer, skipped: number, isLimited: boolean): Library | string {
    const loaded = this.open().lua.load(code, skipped, isLimited);
    if (typeof loaded === 'string') return `ERR ${loaded}`;
    const functions = loaded.map(([functionName, description, flags, id]) => ({
      name: functionName,
      description,
      flags,
      id,
    }));
    return functions.length === 0 ? 'ERR No functions registered' : { name, code, functions };
  }

  private forget(library: Library): void {
    for (const { id } of library.functions) this.open().lua.forget(id);
  }

  /** Writes the file, then lets these libraries hold, here and everywhere. The error or null. */
  private replaceBy(next: Map<string, Library>): string | null {
    const error = this.write(encodeLibraries([...next.values()].map(({ code }) => code)));
    if (error !== null) return error;
    for (const [name, library] of this.libraries) if (next.get(name) !== library) this.forget(library);
    this.adopt(next);
    const { shared } = this.scripting;
    this.version = shared.get(ScriptWord.libraries) + 1;
    shared.set(ScriptWord.libraries, this.version);
    return null;
  }

  private adopt(libraries: Map<string, Library>): void {
    this.libraries = libraries;
    this.functions = new Map();
    for (const library of libraries.values()) {
      for (const one of library.functions) this.functions.set(one.name.toLowerCase(), one);
    }
  }

  /**
   * Whole or not at all as processes see it. Not forced to the medium: all workers wait meanwhile (the gate is closed), and what the pool holds
   * does not survive the machine's end either.
   */
  private write(payload: Buffer): string | null {
    const draft = `${this.path}.new`;
    try {
      writeFileSync(draft, payload, { mode: 0o600 });
      renameSync(draft, this.path);
      return null;
    } catch (error) {
      rmSync(draft, { force: true });
      return `ERR the libraries could not be saved: ${(error as Error).message}`;
    }
  }

  /** Loads what holds now, if that is not what is loaded. */
  private synchronize(): void {
    const version = this.scripting.shared.get(ScriptWord.libraries);
    if (version === this.version) return;
    this.engine?.close();
    this.engine = null;
    this.version = version;
    const libraries = new Map<string, Library>();
    for (const code of this.read()) {
      const head = libraryShebang(code.toString('latin1'));
      const library = typeof head === 'string' ? head : this.compile(head.name, code, head.skipped, false);
      if (typeof library === 'string') this.complain(library);
      else libraries.set(library.name, library);
    }
    this.adopt(libraries);
  }

  private read(): readonly Buffer[] {
    if (!existsSync(this.path)) return [];
    const codes = decodeLibraries(readFileSync(this.path));
    if (typeof codes !== 'string') return codes;
    this.complain(codes);
    return [];
  }

  private complain(reason: string): void {
    this.executor.environment.control?.log(
      'warning',
      `${this.path}: a library of functions cannot be loaded: ${reason}`,
    );
  }
}

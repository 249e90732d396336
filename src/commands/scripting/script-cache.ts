/**
 * The scripts of EVAL and SCRIPT LOAD: found by body or digest, compiled once a worker, known to all workers.
 *
 * A script has a small number here, under which the interpreter keeps it and `flags` its flags. Invariant: the numbers belong to the
 * generation that was synchronized last; a new generation starts with an empty interpreter.
 */

import { DIGEST_BYTES, ScriptRecord, ScriptWord } from '../../layout/shared-scripts.js';
import { crypto } from '../../native/crypto.js';
import type { Context } from '../context.js';
import type { Executor } from '../executor.js';
import { ScriptEngine } from './script-engine.js';
import type { Scripting } from './scripting.js';
import { scriptShebang } from './shebang.js';

export const NO_SCRIPT = 'NOSCRIPT No matching script. Please use EVAL.';
/** Compiled scripts that a worker keeps; then it starts anew and compiles what is asked for. */
const COMPILED_MAX = 20_000;
/** Larger scripts are run, and known to their worker only. */
const SHARED_BODY_BYTES_MAX = 1024 * 1024;

export class ScriptCache {
  /** By number. */
  readonly flags: number[] = [];

  private readonly scripting: Scripting;
  private readonly executor: Executor;
  private engine: ScriptEngine | null = null;
  private generation = 0;
  private visited = 0;
  /** Digest -> offset of the shared record. */
  private readonly records = new Map<string, number>();

  constructor(scripting: Scripting, executor: Executor) {
    this.scripting = scripting;
    this.executor = executor;
  }

  /** Bytes of the scripts that all workers know. */
  get cacheBytes(): number {
    return this.scripting.shared.get(ScriptWord.used);
  }

  /** Scripts that all workers know. */
  get count(): number {
    this.synchronize();
    return this.records.size;
  }

  /** The interpreter, of the present generation. */
  open(): ScriptEngine {
    if (this.generation !== this.scripting.shared.get(ScriptWord.generation)) this.startAnew();
    this.engine ??= new ScriptEngine(this.scripting, this.executor, false);
    return this.engine;
  }

  /** The number of the script whose body is argument 1; -1 after an error reply. */
  byBody(context: Context): number {
    const engine = this.open();
    const { arena, offset } = engine.locate(context, 1);
    const id = engine.lua.find(0, arena, offset, context.argLength(1));
    return id >= 0 ? id : this.define(context, Buffer.from(context.argBytes(1)), 0);
  }

  /** The same by its digest, which is argument 1. */
  byDigest(context: Context): number {
    if (context.argLength(1) === DIGEST_BYTES) {
      const engine = this.open();
      const { arena, offset } = engine.locate(context, 1);
      const id = engine.lua.find(1, arena, offset, DIGEST_BYTES);
      if (id >= 0) return id;
      const digest = context.argString(1).toLowerCase();
      this.synchronize();
      const record = this.records.get(digest);
      if (record !== undefined) {
        return this.compile(context, digest, this.scripting.shared.body(record), this.scripting.shared.flags(record));
      }
    }
    context.reply.error(NO_SCRIPT);
    return -1;
  }

  /** SCRIPT LOAD: the digest, or null after an error reply. */
  load(context: Context, body: Buffer): string | null {
    const digest = digestOf(body);
    this.open();
    this.synchronize();
    const record = this.records.get(digest);
    if (record !== undefined) {
      this.scripting.shared.markLoaded(record);
      return digest;
    }
    return this.compile(context, digest, body, ScriptRecord.LOADED) < 0 ? null : digest;
  }

  exists(digest: string): boolean {
    this.open();
    this.synchronize();
    return this.records.has(digest.toLowerCase());
  }

  /** The body of a script that this worker has heard of, a byte string. Outside the gate: others may just be throwing it away. */
  bodyOf(digest: string): string | undefined {
    const { shared } = this.scripting;
    const record = this.records.get(digest.toLowerCase());
    if (record === undefined || this.generation !== shared.get(ScriptWord.generation)) return undefined;
    const body = shared.body(record).toString('latin1');
    return this.generation === shared.get(ScriptWord.generation) ? body : undefined;
  }

  flush(): void {
    this.scripting.shared.clear();
  }

  private define(context: Context, body: Buffer, flags: number): number {
    return this.compile(context, digestOf(body), body, flags);
  }

  /** Compiles and makes known; -1 after an error reply. */
  private compile(context: Context, digest: string, body: Buffer, recordFlags: number): number {
    const shebang = scriptShebang(body.toString('latin1'));
    if (typeof shebang === 'string') {
      context.reply.error(shebang);
      return -1;
    }
    if (this.flags.length >= COMPILED_MAX) this.startAnew();
    const id = this.flags.length;
    const problem = this.open().lua.define(id, digest, body, shebang.skipped);
    if (problem !== null) {
      context.reply.error(`ERR Error compiling script (new function): ${problem}`);
      return -1;
    }
    this.flags.push(shebang.flags);
    this.share(digest, body, recordFlags);
    return id;
  }

  /** Tells the other workers. When the records are full, those that EVAL alone has brought go. */
  private share(digest: string, body: Buffer, flags: number): void {
    const { shared } = this.scripting;
    this.synchronize();
    if (this.records.has(digest) || body.length > SHARED_BODY_BYTES_MAX) return;
    if (!shared.append(digest, body, flags)) {
      this.compact();
      shared.append(digest, body, flags);
    }
    this.synchronize();
  }

  /** Keeps what SCRIPT LOAD has brought. Offsets change; what is compiled here stays good. */
  private compact(): void {
    const { shared } = this.scripting;
    const kept = [...this.records]
      .filter(([, offset]) => (shared.flags(offset) & ScriptRecord.LOADED) !== 0)
      .map(([digest, offset]) => ({ digest, body: shared.body(offset) }));
    shared.clear();
    for (const { digest, body } of kept) shared.append(digest, body, ScriptRecord.LOADED);
    this.generation = shared.get(ScriptWord.generation);
    this.forgetRecords();
  }

  /** Reads the records that others have added. */
  private synchronize(): void {
    const { shared } = this.scripting;
    if (this.generation !== shared.get(ScriptWord.generation)) this.startAnew();
    this.visited = shared.visit(this.visited, (digest, offset) => this.records.set(digest, offset));
  }

  private forgetRecords(): void {
    this.records.clear();
    this.visited = 0;
  }

  private startAnew(): void {
    this.engine?.close();
    this.engine = null;
    this.flags.length = 0;
    this.forgetRecords();
    this.generation = this.scripting.shared.get(ScriptWord.generation);
  }
}

/** SHA-1 in hexadecimal: the name of a script. */
export function digestOf(body: Uint8Array): string {
  return crypto().createHash('sha1').update(body).digest('hex');
}

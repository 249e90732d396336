/**
 * The first line of a script or library: '#!lua flags=no-writes,allow-oom', '#!lua name=mylib'.
 *
 * Words are split as Redis splits the lines of its configuration. Invariant: `skipped` bytes of the body are the line without its line
 * break, so that line numbers of errors stay right.
 */
import { splitQuoted } from '../../protocol/resp/inline.js';

/** In the order of their bits; a script without a first line has COMPATIBLE instead. */
export const SCRIPT_FLAGS: readonly string[] = [
  'no-writes',
  'allow-oom',
  'allow-stale',
  'no-cluster',
  'allow-cross-slot-keys',
];

export const enum ScriptFlag {
  NO_WRITES = 1,
  ALLOW_OOM = 2,
  ALLOW_STALE = 4,
  NO_CLUSTER = 8,
  ALLOW_CROSS_SLOT = 16,
  /** No first line: the rules of before there were flags. */
  COMPATIBLE = 32,
}

/** False only for what was declared as not writing. */
export function mayWrite(flags: number): boolean {
  return (flags & (ScriptFlag.COMPATIBLE | ScriptFlag.NO_WRITES)) !== ScriptFlag.NO_WRITES;
}

export interface Shebang {
  readonly flags: number;
  readonly skipped: number;
}

/** Of a script; a text is the error. `body` is a byte string. */
export function scriptShebang(body: string): Shebang | string {
  if (!body.startsWith('#!')) return { flags: ScriptFlag.COMPATIBLE, skipped: 0 };
  const end = body.indexOf('\n');
  if (end < 0) return 'ERR Invalid script shebang';
  const words = splitWords(body.slice(0, end));
  if (words === null || words.length === 0) return 'ERR Invalid engine in script shebang';
  if (words[0] !== '#!lua') return `ERR Unexpected engine in script shebang: ${words[0]}`;
  let flags = 0;
  for (const word of words.slice(1)) {
    if (!word.startsWith('flags=')) return `ERR Unknown lua shebang option: ${word}`;
    const list = word.slice('flags='.length);
    if (list === '') continue;
    for (const name of list.split(',')) {
      const bit = SCRIPT_FLAGS.indexOf(name);
      if (bit < 0) return `ERR Unexpected flag in script shebang: ${name}`;
      flags |= 1 << bit;
    }
  }
  return { flags, skipped: end };
}

export interface LibraryHead {
  readonly engine: string;
  readonly name: string;
  readonly skipped: number;
}

export const BAD_LIBRARY_NAME =
  'ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one character long';

/** Of a library of functions; a text is the error. */
export function libraryShebang(code: string): LibraryHead | string {
  if (!code.startsWith('#!')) return 'ERR Missing library metadata';
  const end = code.indexOf('\n');
  if (end < 0) return 'ERR Invalid library metadata';
  const words = splitWords(code.slice(0, end));
  if (words === null || words.length === 0) return 'ERR Invalid library metadata';
  let name: string | null = null;
  for (const word of words.slice(1)) {
    if (!/^name=/i.test(word)) return `ERR Invalid metadata value given: ${word}`;
    if (name !== null) return 'ERR Invalid metadata value, name argument was given multiple times';
    name = word.slice('name='.length);
  }
  if (name === null) return 'ERR Library name was not given';
  if (!/^[A-Za-z0-9_]+$/.test(name)) return BAD_LIBRARY_NAME;
  return { engine: words[0].slice(2), name, skipped: end };
}

/** The words of a line with Redis's quoting; null = unbalanced quotes. Byte strings. */
function splitWords(line: string): string[] | null {
  const bytes = Buffer.from(line, 'latin1');
  const pairs = new Int32Array(bytes.length * 2 + 2);
  const scratch = Buffer.alloc(bytes.length);
  const count = splitQuoted(bytes, 0, bytes.length, pairs, 0, scratch, 0);
  if (count < 0) return null;
  return Array.from({ length: count }, (_, i) =>
    scratch.toString('latin1', pairs[i * 2], pairs[i * 2] + pairs[i * 2 + 1]),
  );
}

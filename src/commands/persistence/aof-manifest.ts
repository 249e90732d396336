/**
 * The manifest of an append-only file in parts, as Redis 7 keeps it: which files there are, and in which order they are read.
 *
 *     file appendonly.aof.2.base.rdb seq 2 type b
 *     file appendonly.aof.5.incr.aof seq 5 type i
 *
 * b: the base, one at most. i: what came after it, in ascending order. h: what is no longer part of the data. Invariant: what is read here
 * names files of the manifest's own folder only.
 */
import { splitQuoted } from '../../protocol/resp/inline.js';
import { RdbError } from '../../rdb/format.js';

export interface Manifest {
  readonly base: ManifestFile | null;
  readonly increments: readonly ManifestFile[];
  readonly history: readonly ManifestFile[];
}

export interface ManifestFile {
  readonly name: string;
  readonly sequence: number;
}

export const MANIFEST_SUFFIX = '.manifest';

/** Throws an RdbError that names the line. */
export function parseManifest(text: string): Manifest {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  if (lines.length === 0) throw new RdbError('it is an empty manifest');
  let base: ManifestFile | null = null;
  const increments: ManifestFile[] = [];
  const history: ManifestFile[] = [];
  for (const [i, line] of lines.entries()) {
    if (line.startsWith('#')) continue;
    const fail = (reason: string): never => {
      throw new RdbError(`line ${i + 1} ${reason}`);
    };
    const { file, type } = parseLine(line) ?? fail("is none of a manifest: 'file NAME seq NUMBER type b|i|h'");
    if (file.name.includes('/') || file.name === '') fail('names a file that lies elsewhere');
    if (type === 'h') history.push(file);
    else if (type === 'b') base = base === null ? file : fail('is a second base');
    else if (file.sequence <= (increments.at(-1)?.sequence ?? 0)) fail('is out of order');
    else increments.push(file);
  }
  return { base, increments, history };
}

/** Null: the line is none. Names that a later version adds are passed over. */
function parseLine(line: string): { readonly file: ManifestFile; readonly type: 'b' | 'i' | 'h' } | null {
  const words = splitLine(line);
  if (words === null || words.length < 6 || words.length % 2 !== 0) return null;
  const fields = new Map<string, string>();
  for (let i = 0; i < words.length; i += 2) fields.set(words[i].toLowerCase(), words[i + 1]);
  const [name, sequence, type] = ['file', 'seq', 'type'].map((field) => fields.get(field) ?? '');
  if (name === '' || !/^[1-9]\d{0,14}$/.test(sequence) || (type !== 'b' && type !== 'i' && type !== 'h')) return null;
  return { file: { name, sequence: Number(sequence) }, type };
}

/** Words with Redis's quoting; null = unbalanced quotes. */
function splitLine(line: string): string[] | null {
  const bytes = Buffer.from(line);
  const pairs = new Int32Array(bytes.length * 2 + 2);
  const scratch = Buffer.alloc(bytes.length);
  const count = splitQuoted(bytes, 0, bytes.length, pairs, 0, scratch, 0);
  if (count < 0) return null;
  return Array.from({ length: count }, (_, i) =>
    scratch.toString('utf8', pairs[i * 2], pairs[i * 2] + pairs[i * 2 + 1]),
  );
}

/** A manifest of this base alone. */
export function manifestOf({ name, sequence }: ManifestFile): string {
  const shown = /[\s"'\\]/.test(name) ? `"${name.replace(/["\\]/g, '\\$&')}"` : name;
  return `file ${shown} seq ${sequence} type b\n`;
}

/** A TOML file -> setting texts. Keys are the flag names without the dashes in front, all at the top level. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { suggestion } from './nearest.js';
import { type SettingKey, schema, settingKeyOf, settingNames } from './schema.js';
import type { SettingText } from './sources.js';

export interface TomlTexts {
  readonly texts: readonly SettingText[];
  readonly problems: readonly string[];
}

/** The line on which a top-level key stands; the TOML parser keeps no positions. */
function lineOf(source: string, key: string): number {
  const lines = source.split('\n');
  const start = lines.findIndex((line) => {
    const text = line.trimStart().replace(/^\[/, '').replace(/^["']/, '');
    return text.startsWith(key) && /^["']?\s*[=.\]]/.test(text.slice(key.length));
  });
  return start + 1;
}

/** A list of texts or of numbers. */
function isList(value: unknown): value is (string | number | bigint)[] {
  return Array.isArray(value) && value.every((part) => ['string', 'number', 'bigint'].includes(typeof part));
}

/** The text of a TOML value, or undefined when its type cannot be a value of the setting. */
function textOf(key: SettingKey, value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'number') return String(value);
  const { listSeparator } = schema[key].kind;
  if (listSeparator !== undefined && isList(value)) return value.join(listSeparator);
  return undefined;
}

/** `path` is only for messages. */
export function parseToml(source: string, path: string): TomlTexts {
  // Most starts name no file.
  const { parse, TomlError } = createRequire(import.meta.url)('smol-toml') as typeof import('smol-toml');
  let table: Record<string, unknown>;
  try {
    table = parse(source);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const reason = error.message.split('\n')[0].replace(/^Invalid TOML document: /, '');
    return { texts: [], problems: [`${path} line ${error.line}, column ${error.column}: not valid TOML: ${reason}`] };
  }
  const texts: SettingText[] = [];
  const problems: string[] = [];
  for (const [name, value] of Object.entries(table)) {
    const where = `${path} line ${lineOf(source, name)}, ${name}`;
    const key = settingKeyOf(name);
    if (key === undefined) {
      problems.push(`${where}: unknown setting.${suggestion(name, settingNames)} See entresol serve --help.`);
      continue;
    }
    const text = textOf(key, value);
    if (text === undefined) {
      problems.push(`${where}: cannot take this type of value; it takes ${schema[key].kind.placeholder}`);
    } else {
      texts.push({ key, text, where });
    }
  }
  return { texts, problems };
}

export function readToml(path: string): TomlTexts {
  let source: string;
  try {
    source = readFileSync(path, 'utf8');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    const reason = code === 'ENOENT' ? 'there is no such file' : code === 'EACCES' ? 'no permission to read it' : code;
    return { texts: [], problems: [`${path}: cannot read the configuration file: ${reason}`] };
  }
  return parseToml(source, path);
}

/**
 * CONFIG REWRITE: the live settings written back into the TOML file, everything else in it untouched.
 *
 * Only settings that CONFIG SET can change and the users are written: those that the file has, and those that differ from the default.
 * Invariant: the new text is read back before it replaces the file (by rename), and means what the server runs with.
 */
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import {
  assignText,
  defaultSettings,
  formatSetting,
  type SettingKey,
  type Settings,
  schema,
  settingKeys,
  settingName,
} from './schema.js';
import { parseToml } from './toml.js';

/** What may change while the server runs: what CONFIG SET can change, and the users. */
function isRewritten(key: SettingKey): boolean {
  return schema[key].live || schema[key].isHidden;
}

/** 'hz = 20', in TOML's own types where it has them. */
function tomlLine(settings: Settings, key: SettingKey): string {
  const value = settings[key];
  const tomlValue =
    typeof value === 'number' || typeof value === 'boolean' || Array.isArray(value)
      ? value
      : formatSetting(settings, key);
  const { stringify } = createRequire(import.meta.url)('smol-toml') as typeof import('smol-toml');
  return stringify({ [settingName(key)]: tomlValue }).trimEnd();
}

/** The new text of the file. Throws an Error whose message says why when that is not possible. */
export function rewriteToml(source: string, settings: Settings): string {
  const before = parseToml(source, 'the file');
  if (before.problems.length > 0) throw new Error(`the file is not valid now: ${before.problems[0]}`);
  const inFile = new Map(before.texts.map(({ key, text }) => [key, text]));
  const lines = source === '' ? [] : source.replace(/\n$/, '').split('\n');
  for (const key of settingKeys.filter(isRewritten)) {
    const isDefault = formatSetting(settings, key) === formatSetting(defaultSettings(), key);
    const old = inFile.get(key);
    if (old === undefined) {
      if (!isDefault) lines.push(tomlLine(settings, key));
      continue;
    }
    const was = defaultSettings();
    assignText(was, key, old);
    if (formatSetting(was, key) === formatSetting(settings, key)) continue;
    const keyPattern = new RegExp(`^\\s*["']?${settingName(key)}["']?\\s*=`);
    const index = lines.findIndex((line) => keyPattern.test(line));
    if (index >= 0) lines[index] = tomlLine(settings, key);
  }
  const text = `${lines.join('\n')}\n`;
  checkRewritten(text, settings);
  return text;
}

/** A value over several lines, say, cannot be replaced by line; better no new file than a wrong one. */
function checkRewritten(text: string, settings: Settings): void {
  const { texts, problems } = parseToml(text, 'the rewritten file');
  const now = defaultSettings();
  for (const { key, text: value } of texts) assignText(now, key, value);
  const wrong = settingKeys.find((key) => isRewritten(key) && formatSetting(now, key) !== formatSetting(settings, key));
  if (problems.length > 0 || wrong !== undefined) {
    throw new Error(`cannot change the line of ${wrong === undefined ? problems[0] : settingName(wrong)}`);
  }
}

/** Rewrites the file in place, keeping its permissions. Throws when it cannot, with the old file unharmed. */
export function rewriteConfigFile(path: string, settings: Settings): void {
  const text = rewriteToml(readFileSync(path, 'utf8'), settings);
  const temporary = `${path}.${process.pid}.tmp`;
  try {
    const fd = openSync(temporary, 'wx', statSync(path).mode & 0o777);
    try {
      writeFileSync(fd, text);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

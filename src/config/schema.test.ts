import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { stringify } from 'smol-toml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readEnvironment } from './environment.js';
import { parseFlags } from './flags.js';
import {
  assignText,
  checkSetting,
  defaultSettings,
  environmentName,
  formatSetting,
  type SettingKey,
  schema,
  settingKeyOf,
  settingKeys,
  settingName,
} from './schema.js';
import type { SettingText } from './sources.js';
import { readToml } from './toml.js';

/** Texts that a setting accepts: filtered guesses around its kind. */
function acceptedTexts(key: SettingKey): fc.Arbitrary<string> {
  const guesses = fc.oneof(
    fc.constantFrom(...schema[key].kind.placeholder.split('|')),
    fc.constant(formatSetting(defaultSettings(), key)),
    fc.integer({ min: -1, max: 100_000 }).map(String),
    fc.integer({ min: 0, max: 20 }).map((bits) => String(2 ** bits)),
    fc
      .tuple(fc.integer({ min: 1, max: 600 }), fc.constantFrom('kb', 'mb', 'gb', 'MiB', 'm'))
      .map(([n, u]) => `${n}${u}`),
    fc.array(fc.oneof(fc.ipV4(), fc.ipV6()), { minLength: 1, maxLength: 3 }).map((list) => list.join(',')),
    fc.stringMatching(/^[a-z0-9/._ é#"'=-]{1,40}$/),
  );
  return guesses.filter((text) => {
    try {
      assignText(defaultSettings(), key, text);
      return true;
    } catch {
      return false;
    }
  });
}

function applied(texts: readonly SettingText[]) {
  const settings = defaultSettings();
  for (const { key, text } of texts) assignText(settings, key, text);
  return settings;
}

describe('schema', () => {
  it('has a valid default and a one-to-one name for every setting', () => {
    const settings = defaultSettings();
    for (const key of settingKeys) {
      checkSetting(settings, key);
      expect(settingKeyOf(settingName(key))).toBe(key);
    }
    expect(new Set(settingKeys.map(environmentName)).size).toBe(settingKeys.length);
    const redisNames = settingKeys.flatMap((key) => schema[key].redisNames);
    expect(new Set(redisNames).size).toBe(redisNames.length);
  });

  describe('every setting means the same as flag, in the environment and in TOML', () => {
    let folder: string;
    beforeAll(() => {
      folder = mkdtempSync(join(tmpdir(), 'entresol-config-'));
    });
    afterAll(() => rmSync(folder, { recursive: true }));

    it.each(settingKeys.map((key) => [settingName(key), key] as const))('%s', (name, key) => {
      const path = join(folder, `${name}.toml`);
      fc.assert(
        fc.property(acceptedTexts(key), (text) => {
          const expected = defaultSettings();
          assignText(expected, key, text);
          checkSetting(expected, key);

          const flags = parseFlags([`--${name}=${text}`]);
          expect(flags.problems).toEqual([]);
          expect(applied(flags.texts)).toEqual(expected);

          expect(applied(readEnvironment({ [environmentName(key)]: text }).texts)).toEqual(expected);

          writeFileSync(path, stringify({ [name]: text }));
          expect(applied(readToml(path).texts)).toEqual(expected);

          // And in the form of the value itself, where TOML has it.
          const value = expected[key];
          const canonical = typeof value === 'object' ? [...value] : value;
          if (
            schema[key].kind.placeholder !== 'MODE' &&
            schema[key].kind.placeholder !== 'N|auto' &&
            schema[key].kind.placeholder !== 'CLASSES'
          ) {
            writeFileSync(path, stringify({ [name]: canonical }));
            expect(applied(readToml(path).texts)).toEqual(expected);
          }
        }),
        { numRuns: 30 },
      );
    });
  });
});

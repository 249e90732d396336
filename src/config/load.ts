/**
 * All sources -> one Settings: flag over environment over file over default.
 *
 * Invariant: either the result is complete and usable, or a ConfigError lists every problem at once.
 */
import { type Environment, readEnvironment } from './environment.js';
import { ConfigError } from './error.js';
import { parseFlags } from './flags.js';
import { ValueError } from './kinds.js';
import { type Machine, readMachine } from './machine.js';
import { type Origins, resolveSettings } from './resolve.js';
import {
  assignText,
  checkSetting,
  defaultSettings,
  formatSetting,
  type Settings,
  schema,
  settingKeys,
} from './schema.js';
import type { Origin, SettingText } from './sources.js';
import { readToml, type TomlTexts } from './toml.js';

export interface Loaded {
  readonly settings: Settings;
  readonly origins: Origins;
  /** The TOML file that was read, if any. */
  readonly configPath: string | undefined;
  /** For the user to see; none keeps the server from starting. */
  readonly warnings: readonly string[];
}

export interface LoadOptions {
  readonly args?: readonly string[];
  readonly env?: Environment;
  readonly machine?: Machine;
  /** Do not refuse settings with which nothing listens. */
  readonly mayListenNowhere?: boolean;
}

const NO_TOML: TomlTexts = { texts: [], problems: [] };

/** Throws ConfigError. */
export function loadSettings(options: LoadOptions = {}): Loaded {
  const flags = parseFlags(options.args ?? []);
  const environment = readEnvironment(options.env ?? {});
  const configPath = flags.configPath ?? environment.configPath;
  const toml = configPath === undefined ? NO_TOML : readToml(configPath);

  const settings = defaultSettings();
  const origins = Object.fromEntries(settingKeys.map((key) => [key, 'default'])) as Record<keyof Settings, Origin>;
  const problems = [...flags.problems, ...toml.problems];

  const apply = (texts: readonly SettingText[], origin: Origin): void => {
    for (const { key, text, where } of texts) {
      try {
        const { isRepeatable = false, listSeparator } = schema[key].kind;
        const adds = isRepeatable && origins[key] === origin;
        assignText(settings, key, adds ? `${formatSetting(settings, key)}${listSeparator}${text}` : text);
        origins[key] = origin;
      } catch (error) {
        if (!(error instanceof ValueError)) throw error;
        const shown = schema[key].kind.isSecret === true ? 'the value' : `'${text}'`;
        problems.push(`${where}: ${shown} ${error.message.replace(/^couldn't be parsed into/, 'is not')}.`);
      }
    }
  };
  apply(toml.texts, 'file');
  apply(environment.texts, 'environment');
  apply(flags.texts, 'flag');
  if (problems.length > 0) throw new ConfigError(problems);

  const resolution = resolveSettings(settings, origins, options.machine ?? readMachine(), options.mayListenNowhere);
  if (resolution.problems.length > 0) throw new ConfigError(resolution.problems);
  return { settings, origins, configPath, warnings: [...environment.warnings, ...resolution.warnings] };
}

/** Settings from a partial object, with everything else at its default: for tests, benchmarks and embedding. */
export function settingsWith(overrides: Partial<Settings>): Settings {
  const settings = { ...defaultSettings(), ...overrides };
  for (const key of settingKeys) checkSetting(settings, key);
  if (settings.workers === 0) settings.workers = 1;
  if (settings.tier === 'none') settings.capacity = 0;
  return settings;
}

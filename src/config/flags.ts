/**
 * Command-line arguments -> setting texts.
 *
 * Knows the form of flags (--name value, --name=value, --switch, --no-switch) and which names exist; values are not
 * parsed here. Invariant: every argument ends up as a value, as help/config, or as one problem.
 */
import { suggestion } from './nearest.js';
import { schema, settingKeyOf, settingNames } from './schema.js';
import type { SettingText } from './sources.js';

export interface Flags {
  readonly texts: readonly SettingText[];
  readonly configPath: string | undefined;
  readonly help: boolean;
  readonly problems: readonly string[];
}

const OTHER_FLAGS = ['config', 'help'];

/** A following argument is a value unless it looks like a flag; negative numbers are values. */
function isValue(arg: string | undefined): arg is string {
  return arg !== undefined && (!arg.startsWith('-') || /^-\d/.test(arg) || arg === '-');
}

export function parseFlags(args: readonly string[]): Flags {
  const texts: SettingText[] = [];
  const problems: string[] = [];
  let configPath: string | undefined;
  let help = false;

  for (let i = 0; i < args.length; i++) {
    const arg = args[i];
    if (arg === '-h') {
      help = true;
      continue;
    }
    if (!arg.startsWith('--') || arg === '--') {
      problems.push(`'${arg}': not expected here. Options start with --; see entresol serve --help.`);
      continue;
    }
    const equals = arg.indexOf('=');
    const name = equals < 0 ? arg.slice(2) : arg.slice(2, equals);
    let value = equals < 0 ? undefined : arg.slice(equals + 1);

    if (name === 'help') {
      help = true;
      continue;
    }
    const offKey = name.startsWith('no-') ? settingKeyOf(name.slice(3)) : undefined;
    if (offKey !== undefined && schema[offKey].kind.isSwitch === true && value === undefined) {
      texts.push({ key: offKey, text: 'no', where: `--${name}` });
      continue;
    }
    const key = settingKeyOf(name);
    if (key === undefined && name !== 'config') {
      const hint = suggestion(name, [...settingNames, ...OTHER_FLAGS], (found) => `--${found}`);
      problems.push(`--${name}: unknown option.${hint} See entresol serve --help.`);
      if (value === undefined && isValue(args[i + 1])) i++;
      continue;
    }
    if (value === undefined) {
      if (isValue(args[i + 1])) value = args[++i];
      else if (key !== undefined && schema[key].kind.isSwitch === true) value = 'yes';
      else {
        const placeholder = key === undefined ? 'FILE.toml' : schema[key].kind.placeholder;
        problems.push(`--${name}: a value is missing: --${name} ${placeholder}`);
        continue;
      }
    }
    if (key === undefined) configPath = value;
    else texts.push({ key, text: value, where: `--${name}` });
  }
  return { texts, configPath, help, problems };
}

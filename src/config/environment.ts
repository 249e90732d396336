/**
 * ENTRESOL_... variables -> setting texts.
 *
 * In Kubernetes a Service named 'entresol' makes the kubelet set ENTRESOL_PORT=tcp://10.0.0.1:6379 and a family of
 * ENTRESOL_SERVICE_... and ENTRESOL_PORT_6379_TCP... variables in every pod; those are not ours and are passed over.
 * Unknown names only warn: the environment is shared with other programs.
 */
import { suggestion } from './nearest.js';
import { environmentName, settingKeys } from './schema.js';
import type { SettingText } from './sources.js';

const PREFIX = 'ENTRESOL_';
export const CONFIG_VARIABLE = 'ENTRESOL_CONFIG';

export interface EnvironmentTexts {
  readonly texts: readonly SettingText[];
  readonly configPath: string | undefined;
  readonly warnings: readonly string[];
}

export type Environment = Readonly<Record<string, string | undefined>>;

function isServiceLink(name: string, value: string): boolean {
  if (name === 'ENTRESOL_PORT') return /^(tcp|udp|sctp):\/\//.test(value);
  return /^ENTRESOL_(SERVICE_(HOST|PORT)|PORT_\d+_)/.test(name);
}

export function readEnvironment(env: Environment): EnvironmentTexts {
  const keyByVariable = new Map(settingKeys.map((key) => [environmentName(key), key]));
  const texts: SettingText[] = [];
  const warnings: string[] = [];
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith(PREFIX) || value === undefined || name === CONFIG_VARIABLE) continue;
    if (isServiceLink(name, value)) continue;
    const key = keyByVariable.get(name);
    if (key === undefined) {
      const hint = suggestion(name, [...keyByVariable.keys(), CONFIG_VARIABLE]);
      warnings.push(`${name} in the environment is not a setting and has no effect.${hint}`);
    } else {
      texts.push({ key, text: value, where: name });
    }
  }
  return { texts, configPath: env[CONFIG_VARIABLE] || undefined, warnings };
}

/** What the readers of flags, environment and TOML hand to the loader: texts, each with the place it stands at. */
import type { SettingKey } from './schema.js';

export interface SettingText {
  readonly key: SettingKey;
  readonly text: string;
  /** For messages: '--port', 'ENTRESOL_PORT', 'entresol.toml line 3, port'. */
  readonly where: string;
}

export type Origin = 'flag' | 'environment' | 'file' | 'default';

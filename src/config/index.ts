/** What the rest of the program uses of the configuration. */
export { formatEndpoint, parseEndpoint } from './endpoint.js';
export { ConfigError } from './error.js';
export { type Loaded, type LoadOptions, loadSettings, settingsWith } from './load.js';
export { type Machine, readMachine } from './machine.js';
export { type MemcachedListener, memcachedListeners } from './memcached-listeners.js';
export { memcachedMemory } from './memcached-memory.js';
export { programVersion } from './program-version.js';
export { type ConfigSetResult, configGet, configSet, type SizeCheck } from './redis.js';
export { isLocalPeer, protectionProblems } from './resolve.js';
export { rewriteConfigFile } from './rewrite.js';
export {
  type Durability,
  defaultSettings,
  environmentName,
  formatSetting,
  type Group,
  type HugePages,
  type LogLevel,
  type MaxmemoryPolicy,
  type SettingKey,
  type Settings,
  schema,
  settingKeys,
  settingName,
  type Tier,
} from './schema.js';
export { approximateSize, formatSize, parseSize } from './size.js';

/** The form of one declared setting; the settings themselves stand in schema.ts and schema-memcached.ts. */
import type { Kind } from './kinds.js';

export type Group = 'Listening' | 'Memory' | 'Clients and limits' | 'Observation and tuning' | 'memcached';

export interface Setting<T> {
  readonly group: Group;
  readonly kind: Kind<T>;
  readonly default: T;
  /** One sentence or two for --help and the documentation. */
  readonly doc: string;
  /** True when CONFIG SET may change it while the server runs. */
  readonly live: boolean;
  /** The names under which CONFIG GET/SET know it; without any, its flag name. */
  readonly redisNames: readonly string[];
}

export function declare<T>(
  group: Group,
  kind: Kind<T>,
  value: T,
  doc: string,
  options: { live?: boolean; redis?: readonly string[] } = {},
): Setting<T> {
  return { group, kind, default: value, doc, live: options.live ?? false, redisNames: options.redis ?? [] };
}

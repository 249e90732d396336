/** The form of one declared setting; the settings themselves stand in schema.ts and the schema-*.ts beside it. */
import type { Kind } from './kinds.js';

export type Group =
  | 'Listening'
  | 'Memory'
  | 'RDB files'
  | 'Clients and limits'
  | 'Users'
  | 'Observation and tuning'
  | 'memcached';

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
  /** CONFIG GET and SET do not know it. */
  readonly isHidden: boolean;
}

export function declare<T>(
  group: Group,
  kind: Kind<T>,
  value: T,
  doc: string,
  options: { live?: boolean; redis?: readonly string[]; isHidden?: boolean } = {},
): Setting<T> {
  const { live = false, redis = [], isHidden = false } = options;
  return { group, kind, default: value, doc, live, redisNames: redis, isHidden };
}

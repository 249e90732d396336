/** The settings of durability `durable`: when the effect log is made persistent, and when a checkpoint takes its place. Names are Redis's. */
import { integer, oneOf, size } from './kinds.js';
import { declare, type Setting } from './setting.js';

export interface DurableSettings {
  appendfsync: 'always' | 'everysec' | 'no';
  autoAofRewritePercentage: number;
  autoAofRewriteMinSize: number;
}

const MIB = 1024 * 1024;

export const durableSchema: { readonly [K in keyof DurableSettings]: Setting<DurableSettings[K]> } = {
  appendfsync: declare(
    'Memory',
    oneOf('everysec', 'always', 'no'),
    'everysec',
    'With durability durable, when changes are on the medium: always = before they are answered, everysec = a second later at most, no = when the system writes them.',
    { live: true, redis: ['appendfsync'] },
  ),
  autoAofRewritePercentage: declare(
    'Memory',
    integer(0, 2 ** 31 - 1),
    100,
    'The effect log is replaced by a checkpoint when it has grown by so many percent of the last one; 0 = never.',
    { live: true, redis: ['auto-aof-rewrite-percentage'] },
  ),
  autoAofRewriteMinSize: declare('Memory', size(1024, 2 ** 50), 64 * MIB, 'But not before it has grown by so much.', {
    live: true,
    redis: ['auto-aof-rewrite-min-size'],
  }),
};

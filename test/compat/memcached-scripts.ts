/**
 * Byte scripts that memcached and this server must answer alike, by topic. Every step is sent as it stands, then `mn`
 * marks its end. `{cas:KEY}` becomes the version that the server at hand gave KEY (0 when it has none), `{cas:KEY:-1}` the
 * one before it. Replies are compared with versions replaced by names, in order of appearance.
 *
 * `differs` lists what is meant to differ from Debian's memcached (1.6.18): step -> our reply (null: not checked), and why.
 * Where 1.6.18 and later releases part ways, classic commands follow 1.6.18 and meta commands the later ones.
 */

import { classicScripts } from './memcached-classic.js';
import { metaScripts } from './memcached-meta.js';
import type { Script } from './memcached-run.js';

export const scripts: readonly Script[] = [...classicScripts, ...metaScripts];

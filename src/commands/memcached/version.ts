/** What `version` and `stats` say. */
import { programVersion } from '../../config/index.js';

/**
 * The memcached release whose protocol this follows, and nothing else: clients look for three numbers, some at the
 * beginning of the text and some at its end. Our own version stands in stats.
 */
export const VERSION = '1.6.18';

export const ENTRESOL_VERSION = programVersion();

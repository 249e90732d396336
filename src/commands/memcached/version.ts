/** What `version` and `stats` say. */
import { readFileSync } from 'node:fs';

/**
 * The memcached release whose protocol this follows, and nothing else: clients look for three numbers, some at the
 * beginning of the text and some at its end. Our own version stands in stats.
 */
export const VERSION = '1.6.18';

function ownVersion(): string {
  const text = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

export const ENTRESOL_VERSION = ownVersion();

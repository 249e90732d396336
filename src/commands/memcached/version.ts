/** What `version` and `stats` say: the memcached release whose protocol this follows, then what this is. */
import { readFileSync } from 'node:fs';

const MEMCACHED_LEVEL = '1.6.18';

function ownVersion(): string {
  const text = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

/** Clients that read three numbers find those of memcached. */
export const VERSION = `${MEMCACHED_LEVEL}-entresol-${ownVersion()}`;

/** The settings of memcached's protocols, beside those that all protocols share (schema.ts). */
import { endpoints, integer, oneOf, size, text, yesNo } from './kinds.js';
import { declare, type Setting } from './setting.js';

const KIB = 1024;
const MIB = 1024 * KIB;
/** The longest path a unix socket address holds on Linux. */
export const UNIX_PATH_BYTES_MAX = 107;

export type MemcachedProtocol = 'auto' | 'ascii' | 'binary';

export interface MemcachedSettings {
  memcachedPort: number;
  memcachedUdpPort: number;
  memcachedBind: readonly string[];
  memcachedUnix: string;
  memcachedProtocol: MemcachedProtocol;
  memcachedAuthFile: string;
  memcachedRequestsPerTurn: number;
  memcachedCas: boolean;
  memcachedFlush: boolean;
  memcachedDump: boolean;
  memcachedWatch: boolean;
  memcachedWatchBuffer: number;
  memcachedDetail: boolean;
  memcachedLruCrawler: boolean;
  memcachedPrefixDelimiter: string;
  itemSizeMax: number;
  enableShutdown: boolean;
}

const LIVE = { live: true };

export const memcachedSchema: { readonly [K in keyof MemcachedSettings]: Setting<MemcachedSettings[K]> } = {
  memcachedPort: declare(
    'memcached',
    integer(0, 65_535, 'PORT'),
    11_211,
    'TCP port of the memcached protocols (text, meta, binary); 0 = off.',
  ),
  memcachedUdpPort: declare(
    'memcached',
    integer(0, 65_535, 'PORT'),
    0,
    'UDP port of the memcached protocols; 0 = off. UDP answers can be abused to flood others: keep it on trusted networks.',
  ),
  memcachedBind: declare(
    'memcached',
    endpoints(),
    [],
    'Addresses of the memcached protocols, where they are not those of bind; each may have a port of its own, for TCP and UDP.',
  ),
  memcachedUnix: declare(
    'memcached',
    text('PATH', UNIX_PATH_BYTES_MAX),
    '',
    'Unix socket of the memcached protocols; empty = off. Its permissions are --unix-mode.',
  ),
  memcachedProtocol: declare(
    'memcached',
    oneOf('auto', 'ascii', 'binary'),
    'auto',
    'What memcached connections may speak; auto = the first byte of a connection decides.',
  ),
  memcachedAuthFile: declare(
    'memcached',
    text('PATH', 4096),
    '',
    'File of user:password lines for memcached connections (text and SASL PLAIN), beside the password; empty = none.',
  ),
  memcachedRequestsPerTurn: declare(
    'memcached',
    integer(1, 1024),
    1024,
    'Requests of one memcached connection that are served before the others have their turn.',
  ),
  memcachedCas: declare('memcached', yesNo(), true, 'Tell clients the versions (CAS numbers) of items.'),
  memcachedFlush: declare('memcached', yesNo(), true, 'Allow flush_all.', LIVE),
  memcachedDump: declare(
    'memcached',
    yesNo(),
    true,
    'Allow lru_crawler metadump and mgdump, and stats cachedump.',
    LIVE,
  ),
  memcachedWatch: declare('memcached', yesNo(), true, 'Allow watch.', LIVE),
  memcachedWatchBuffer: declare(
    'memcached',
    size(4 * KIB, 64 * MIB),
    256 * KIB,
    'Unread lines of a watching connection, in bytes, above which further ones are skipped.',
    LIVE,
  ),
  memcachedDetail: declare('memcached', yesNo(), false, 'Count per key prefix from the start (stats detail).'),
  memcachedPrefixDelimiter: declare(
    'memcached',
    text('CHARACTER', 1),
    ':',
    'What ends the prefix of a key in stats detail.',
  ),
  memcachedLruCrawler: declare(
    'memcached',
    yesNo(),
    true,
    'Answer lru_crawler crawl and metadump from the start; expired items are swept either way.',
  ),
  itemSizeMax: declare('memcached', size(KIB, 512 * MIB), MIB, 'Largest item that memcached commands may store.', LIVE),
  enableShutdown: declare(
    'memcached',
    yesNo(),
    false,
    'Let clients stop the server with the memcached command shutdown.',
  ),
};

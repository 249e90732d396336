/**
 * The command table: for each CommandCode how many tokens it takes, whether it writes, and its handler. A wrong number of
 * tokens is answered with ERROR, as memcached answers it, whatever the tokens say.
 */

import { Replies } from '../../protocol/memcached/replies.js';
import { CommandCode, Request } from '../../protocol/memcached/request.js';
import { flushAll, metaNoop, quit, shutdown, unknown, version } from './admin.js';
import { arithmetic } from './arithmetic.js';
import type { MemcachedContext } from './context.js';
import { cacheMemoryLimit, lru, lruCrawler, slabs, verbosity } from './maintenance.js';
import { metaArithmetic } from './meta-arithmetic.js';
import { metaDelete } from './meta-delete.js';
import { metaDebug, metaGet } from './meta-get.js';
import { metaSet } from './meta-set.js';
import { deleteKey, touch } from './one-key.js';
import { retrieve } from './retrieval.js';
import { stats } from './stats.js';
import { storeClassic } from './storage.js';

interface Entry {
  readonly minTokens: number;
  readonly maxTokens: number;
  readonly isWrite: boolean;
  readonly run: (context: MemcachedContext) => void;
}

const ANY = 1_000_000;

function read(minTokens: number, maxTokens: number, run: (context: MemcachedContext) => void): Entry {
  return { minTokens, maxTokens, isWrite: false, run };
}

function write(minTokens: number, maxTokens: number, run: (context: MemcachedContext) => void): Entry {
  return { minTokens, maxTokens, isWrite: true, run };
}

const TABLE: Entry[] = [];
TABLE[CommandCode.UNKNOWN] = read(0, ANY, unknown);
TABLE[CommandCode.GET] = read(2, ANY, retrieve);
TABLE[CommandCode.GETS] = read(2, ANY, retrieve);
TABLE[CommandCode.GAT] = write(2, ANY, retrieve);
TABLE[CommandCode.GATS] = write(2, ANY, retrieve);
TABLE[CommandCode.SET] = write(5, 6, storeClassic);
TABLE[CommandCode.ADD] = write(5, 6, storeClassic);
TABLE[CommandCode.REPLACE] = write(5, 6, storeClassic);
TABLE[CommandCode.APPEND] = write(5, 6, storeClassic);
TABLE[CommandCode.PREPEND] = write(5, 6, storeClassic);
TABLE[CommandCode.CAS] = write(6, 7, storeClassic);
// Meta commands say themselves what is wrong with them.
TABLE[CommandCode.META_SET] = write(1, ANY, metaSet);
// N and T write, and a win is recorded.
TABLE[CommandCode.META_GET] = write(1, ANY, metaGet);
TABLE[CommandCode.META_DELETE] = write(1, ANY, metaDelete);
TABLE[CommandCode.META_ARITHMETIC] = write(1, ANY, metaArithmetic);
TABLE[CommandCode.META_NOOP] = read(1, ANY, metaNoop);
TABLE[CommandCode.META_DEBUG] = read(1, ANY, metaDebug);
TABLE[CommandCode.DELETE] = write(2, 4, deleteKey);
TABLE[CommandCode.INCR] = write(3, 4, arithmetic);
TABLE[CommandCode.DECR] = write(3, 4, arithmetic);
TABLE[CommandCode.TOUCH] = write(3, 4, touch);
TABLE[CommandCode.STATS] = read(1, ANY, stats);
TABLE[CommandCode.FLUSH_ALL] = write(1, 3, flushAll);
TABLE[CommandCode.VERSION] = read(1, ANY, version);
TABLE[CommandCode.VERBOSITY] = read(2, 3, verbosity);
TABLE[CommandCode.QUIT] = read(1, ANY, quit);
TABLE[CommandCode.SHUTDOWN] = read(1, ANY, shutdown);
TABLE[CommandCode.LRU] = read(1, ANY, lru);
TABLE[CommandCode.LRU_CRAWLER] = read(1, ANY, lruCrawler);
TABLE[CommandCode.SLABS] = read(1, ANY, slabs);
TABLE[CommandCode.CACHE_MEMLIMIT] = read(2, 3, cacheMemoryLimit);
TABLE[CommandCode.WATCH] = read(1, ANY, (context) => context.watch.begin(context));

/** Executes the context's current request. */
export function execute(context: MemcachedContext): void {
  const entry = TABLE[context.word(Request.command)];
  const count = context.tokenCount;
  if (count < entry.minTokens || count > entry.maxTokens) return context.reply.line(Replies.ERROR);
  if (entry.isWrite && context.isLogRefused && context.word(Request.command) !== CommandCode.META_GET)
    return context.answer(Replies.LOG_REFUSED);
  entry.run(context);
}

/** True for commands that wait while writes are paused. */
export function isWrite(command: number): boolean {
  return TABLE[command].isWrite;
}

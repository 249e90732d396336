/**
 * stats [settings | items | slabs | sizes | conns | reset]: what memcached's tools read, from our counters and store.
 *
 * Slow path: builds strings. The lines keep memcached's names where the meaning is the same; what has no counterpart here
 * (slab automover, LRU segments ...) is left out rather than invented.
 */
import { Replies } from '../../protocol/memcached/replies.js';
import type { ClientRow } from '../control.js';
import type { MemcachedContext } from './context.js';
import { generalStats } from './stats-general.js';
import { settingsStats } from './stats-settings.js';

export type Lines = (readonly [name: string, value: string | number])[];

export function stats(context: MemcachedContext): void {
  const { reply } = context;
  if (context.tokenCount === 1) return end(context, generalStats(context));
  switch (context.tokenText(1)) {
    case 'settings':
      return end(context, settingsStats(context));
    case 'items':
      return end(context, itemsStats(context));
    case 'slabs':
      return end(context, slabsStats(context));
    case 'sizes':
      return end(context, [['sizes_status', 'disabled']]);
    case 'conns':
      return connsStats(context);
    case 'reset':
      context.totals.reset();
      return reply.line(Replies.RESET);
    // Dumps of keys and per-prefix counts are off, as with memcached's -X.
    case 'detail':
      return reply.line(Replies.DETAIL_OFF);
    case 'cachedump':
      return reply.line(Replies.DUMP_OFF);
    default:
      return reply.line(Replies.ERROR);
  }
}

function end(context: MemcachedContext, lines: Lines): void {
  for (const [name, value] of lines) context.reply.stat(name, value);
  context.reply.line(Replies.END);
}

function itemsStats(context: MemcachedContext): Lines {
  const lines: Lines = [];
  for (const { slabClass, usedChunks, evictions } of context.keyspace.stats().classes) {
    if (usedChunks === 0 && evictions === 0) continue;
    lines.push([`items:${slabClass}:number`, usedChunks], [`items:${slabClass}:evicted`, evictions]);
  }
  return lines;
}

function slabsStats(context: MemcachedContext): Lines {
  const { classes, slabBytes } = context.keyspace.stats();
  const lines: Lines = [];
  for (const { slabClass, chunkBytes, chunksPerPage, pages, usedChunks } of classes) {
    const totalChunks = pages * chunksPerPage;
    lines.push(
      [`${slabClass}:chunk_size`, chunkBytes],
      [`${slabClass}:chunks_per_page`, chunksPerPage],
      [`${slabClass}:total_pages`, pages],
      [`${slabClass}:total_chunks`, totalChunks],
      [`${slabClass}:used_chunks`, usedChunks],
      [`${slabClass}:free_chunks`, totalChunks - usedChunks],
    );
  }
  lines.push(['active_slabs', classes.length], ['total_malloced', slabBytes]);
  return lines;
}

/** All workers answer for their connections. */
function connsStats(context: MemcachedContext): void {
  const { client, control, reply } = context;
  if (control === null) return end(context, []);
  client.suspended = true;
  control.askWorkers(client, 'clientList', {}, (answers) => {
    for (const row of answers.flat()) {
      if (row.kind === 'memcached') connStats(context, row, row.id === client.id);
    }
    reply.line(Replies.END);
  });
}

function connStats(context: MemcachedContext, row: ClientRow, isAsking: boolean): void {
  const { reply } = context;
  reply.stat(`${row.fd}:addr`, `tcp:${row.address}`);
  reply.stat(`${row.fd}:listen_addr`, `tcp:${row.localAddress}`);
  reply.stat(`${row.fd}:state`, isAsking ? 'conn_parse_cmd' : 'conn_read');
  reply.stat(`${row.fd}:secs_since_last_cmd`, row.idleSeconds);
}

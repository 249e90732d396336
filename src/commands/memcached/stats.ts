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

/** Where statistics go: the two protocols frame them differently. May be used in a later turn. */
export interface StatSink {
  stat(name: string, value: string | number): void;
  end(): void;
  /** Done, with what the text protocol says then. */
  done(reply: Uint8Array): void;
  /** No such statistics, or not allowed, with what the text protocol says then. */
  refuse(reply: Uint8Array): void;
}

/** stats [words] of the text protocol. */
export function stats(context: MemcachedContext): void {
  const { reply } = context;
  const words: string[] = [];
  for (let i = 1; i < context.tokenCount; i++) words.push(context.tokenText(i));
  answerStats(context, words, {
    stat: (name, value) => reply.stat(name, value),
    end: () => reply.line(Replies.END),
    done: (line) => reply.line(line),
    refuse: (line) => reply.line(line),
  });
}

/** `words`: what follows `stats`. */
export function answerStats(context: MemcachedContext, words: readonly string[], sink: StatSink): void {
  switch (words[0]) {
    case undefined:
      return all(generalStats(context), sink);
    case 'settings':
      return all(settingsStats(context), sink);
    case 'items':
      return all(itemsStats(context), sink);
    case 'slabs':
      return all(slabsStats(context), sink);
    case 'sizes':
      return all([['sizes_status', 'disabled']], sink);
    case 'conns':
      return connsStats(context, sink);
    case 'reset':
      context.totals.reset();
      return sink.done(Replies.RESET);
    // Dumps of keys and per-prefix counts are off, as with memcached's -X.
    case 'detail':
      return sink.refuse(Replies.DETAIL_OFF);
    case 'cachedump':
      return sink.refuse(Replies.DUMP_OFF);
    default:
      return sink.refuse(Replies.ERROR);
  }
}

function all(lines: Lines, sink: StatSink): void {
  for (const [name, value] of lines) sink.stat(name, value);
  sink.end();
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
function connsStats(context: MemcachedContext, sink: StatSink): void {
  const { client, control } = context;
  if (control === null) return sink.end();
  client.suspended = true;
  control.askWorkers(client, 'clientList', {}, (answers) => {
    for (const row of answers.flat()) {
      if (row.kind === 'memcached') connStats(row, row.id === client.id, sink);
    }
    sink.end();
  });
}

function connStats(row: ClientRow, isAsking: boolean, sink: StatSink): void {
  sink.stat(`${row.fd}:addr`, `tcp:${row.address}`);
  sink.stat(`${row.fd}:listen_addr`, `tcp:${row.localAddress}`);
  sink.stat(`${row.fd}:state`, isAsking ? 'conn_parse_cmd' : 'conn_read');
  sink.stat(`${row.fd}:secs_since_last_cmd`, row.idleSeconds);
}

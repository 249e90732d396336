/**
 * stats [settings | items | slabs | sizes | conns | detail on,off,dump | cachedump | reset]: what memcached's tools read, from our counters and
 * store, for all front ends.
 *
 * Slow path: builds strings. The lines keep memcached's names where the meaning is the same; what has no counterpart here
 * (LRU segments, extstore ...) is left out rather than invented.
 */
import { CLASS_COUNT } from '../../memory/slab-classes.js';
import { INVALID_UNSIGNED, parseUint32 } from '../../protocol/memcached/numbers.js';
import { Replies } from '../../protocol/memcached/replies.js';
import type { MemcachedContext } from './context.js';
import { beginDump } from './dump.js';
import { prefixLines } from './prefixes.js';
import { itemsStats, slabsStats } from './stats-classes.js';
import { connsStats } from './stats-conns.js';
import { generalStats } from './stats-general.js';
import { settingsStats } from './stats-settings.js';

export type Lines = (readonly [name: string, value: string | number])[];

/** Where statistics go: the two protocols frame them differently. May be used in a later turn. */
export interface StatSink {
  stat(name: string, value: string | number): void;
  end(): void;
  /** Lines that are already in the form of the text protocol. */
  text(name: string, lines: string): void;
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
  if (words[0] === 'cachedump') return cacheDump(context);
  answerStats(context, words, {
    stat: (name, value) => reply.stat(name, value),
    end: () => reply.line(Replies.END),
    text: (_, lines) => {
      reply.text(lines);
      reply.line(Replies.END);
    },
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
    case 'sizes_enable':
    case 'sizes_disable':
      return all([['sizes_status', 'disabled']], sink);
    case 'conns':
      return connsStats(context, sink);
    case 'detail':
      return detail(context, words[1], sink);
    case 'reset':
      return reset(context, sink);
    default:
      return sink.refuse(Replies.ERROR);
  }
}

function all(lines: Lines, sink: StatSink): void {
  for (const [name, value] of lines) sink.stat(name, value);
  sink.end();
}

function reset(context: MemcachedContext, sink: StatSink): void {
  const { client, control } = context;
  context.totals.reset();
  context.keyspace.resetStats();
  if (control === null) return sink.done(Replies.RESET);
  control.askWorkers(client, 'memcachedPrefixesReset', null, () => sink.done(Replies.RESET));
}

function detail(context: MemcachedContext, word: string | undefined, sink: StatSink): void {
  const { client, control, prefixes } = context;
  switch (word) {
    case 'on':
    case 'off':
      prefixes.switch(word === 'on');
      return sink.done(Replies.OK);
    case 'dump':
      if (control === null) return sink.text('detailed', '');
      return control.askWorkers(client, 'memcachedPrefixes', null, (answers) => {
        sink.text('detailed', prefixLines(answers));
      });
    default:
      return sink.refuse(Replies.BAD_DETAIL);
  }
}

/** stats cachedump class limit: keys of one class; limit 0 = all. */
function cacheDump(context: MemcachedContext): void {
  const { reply } = context;
  if (!context.settings.memcachedDump) return reply.line(Replies.DUMP_OFF);
  if (context.tokenCount < 4) return reply.line(Replies.BAD_LINE);
  const [slabClass, limit] = [2, 3].map((token) =>
    parseUint32(context.input.u8, context.tokenOffset(token), context.tokenLength(token)),
  );
  if (slabClass === INVALID_UNSIGNED || limit === INVALID_UNSIGNED) return reply.line(Replies.BAD_FORMAT);
  if (slabClass > CLASS_COUNT) return reply.line(Replies.BAD_SLAB);
  beginDump(context, 'cachedump', [slabClass], limit === 0 ? Number.POSITIVE_INFINITY : limit);
}

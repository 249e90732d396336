/**
 * What `entresol hotspots` can run: made-up requests by name, or requests that were recorded, as clients send them (RESP).
 *
 * Invariant: a named workload is the same in every run.
 */
import { createReadStream } from 'node:fs';
import { Bytes } from '../layout/bytes.js';
import { ParseStatus, Request, RequestParser } from '../protocol/resp/parser.js';

export interface WorkloadSize {
  readonly requests: number;
  readonly keys: number;
  readonly valueBytes: number;
}

interface Workload {
  readonly about: string;
  /** Requests that are made before counting begins. */
  prepare(size: WorkloadSize): Iterable<Uint8Array>;
  requests(size: WorkloadSize): Iterable<Uint8Array>;
}

const LEADERBOARD = 'leaderboard';
const QUEUE = 'queue';

/** xorshift32: numbers below `limit`. */
function draws(limit: number): () => number {
  let state = 2_463_534_242;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % limit;
  };
}

export function request(...words: readonly (string | Uint8Array)[]): Uint8Array {
  const parts: Uint8Array[] = [Buffer.from(`*${words.length}\r\n`)];
  for (const word of words) {
    const bytes = typeof word === 'string' ? Buffer.from(word) : word;
    parts.push(Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n'));
  }
  return Buffer.concat(parts);
}

function* times(count: number, make: (i: number) => Uint8Array): Iterable<Uint8Array> {
  for (let i = 0; i < count; i++) yield make(i);
}

const keyName = (number: number): string => `key:${String(number).padStart(12, '0')}`;

function* fill({ keys, valueBytes }: WorkloadSize): Iterable<Uint8Array> {
  const value = Buffer.alloc(valueBytes, 'v');
  for (let i = 0; i < keys; i++) yield request('SET', keyName(i), value);
}

const nothing = (): Iterable<Uint8Array> => [];

function mix(setPart: number): Workload['requests'] {
  return ({ requests, keys, valueBytes }) => {
    const next = draws(keys);
    const chance = draws(100);
    const value = Buffer.alloc(valueBytes, 'w');
    return times(requests, () =>
      chance() < setPart ? request('SET', keyName(next()), value) : request('GET', keyName(next())),
    );
  };
}

export const WORKLOADS: Readonly<Record<string, Workload>> = {
  insert: {
    about: 'SET of keys that are not there yet',
    prepare: nothing,
    requests: ({ requests, valueBytes }) => {
      const value = Buffer.alloc(valueBytes, 'v');
      return times(requests, (i) => request('SET', keyName(i), value));
    },
  },
  update: { about: 'SET of keys that are there', prepare: fill, requests: mix(100) },
  mixed: { about: 'one SET to nine GETs', prepare: fill, requests: mix(10) },
  read: { about: 'GET', prepare: fill, requests: mix(0) },
  counters: {
    about: 'INCR of a hundred counters',
    prepare: nothing,
    requests: ({ requests }) => {
      const next = draws(100);
      return times(requests, () => request('INCR', `counter:${next()}`));
    },
  },
  queue: {
    about: 'LPUSH and RPOP of one list',
    prepare: nothing,
    requests: ({ requests, valueBytes }) => {
      const value = Buffer.alloc(valueBytes, 'v');
      return times(requests, (i) => (i % 2 === 0 ? request('LPUSH', QUEUE, value) : request('RPOP', QUEUE)));
    },
  },
  leaderboard: {
    about: 'ZADD of members of one sorted set',
    prepare: nothing,
    requests: ({ requests, keys }) => {
      const member = draws(keys);
      const score = draws(1_000_000);
      return times(requests, () => request('ZADD', LEADERBOARD, String(score()), `member:${member()}`));
    },
  },
};

export const WORKLOAD_NAMES = Object.keys(WORKLOADS);

/** The requests of a file or pipe ('-' = standard input), one by one. Throws for what is no RESP, with the offset. */
export async function* recordedRequests(path: string): AsyncIterable<Uint8Array> {
  const stream = path === '-' ? process.stdin : createReadStream(path);
  const parser = new RequestParser();
  let pending: Uint8Array = new Uint8Array(0);
  let offset = 0;
  for await (const chunk of stream) {
    pending = Buffer.concat([pending, chunk as Uint8Array]);
    const input = Bytes.from(pending);
    let at = 0;
    for (;;) {
      const status = parser.parse(input, at, input.length, 1, true, null);
      if (status === ParseStatus.ERROR) throw new Error(`${path}: no request at byte ${offset + at}`);
      if (parser.count === 0) break;
      const end = parser.requests[Request.end];
      yield pending.subarray(at, end);
      at = end;
    }
    pending = pending.subarray(at);
    offset += at;
  }
  if (pending.length > 0) throw new Error(`${path}: ends within the request at byte ${offset}`);
}

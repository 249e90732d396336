/**
 * A short fuzzing run over the memcached tokenizer and meta flags: mutations of the corpus, cut at random places. What is
 * checked: nothing throws, every record stays inside its input, the parser always either consumes or says why not.
 * FUZZ_RUNS sets the number of mutations (default 4,000); a failure prints its seed.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { MetaFlags } from '../../src/protocol/memcached/meta-flags.js';
import { CommandCode, MAX_TOKENS, Request } from '../../src/protocol/memcached/request.js';
import { MAX_LINE_BYTES, Pending, Tokenizer } from '../../src/protocol/memcached/tokenizer.js';

const CORPUS = join(import.meta.dirname, 'corpus', 'memcached');
const RUNS = Number(process.env.FUZZ_RUNS ?? 4000);

/** xorshift32: the same seed gives the same run. */
function random(seed: number): (limit: number) => number {
  let state = seed | 1;
  return (limit) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % limit;
  };
}

const INTERESTING = [
  '\r\n',
  '\n',
  ' ',
  '  ',
  '\r',
  '\0',
  'noreply',
  '-1',
  '2147483645',
  '18446744073709551615',
  ' q',
  ' b',
  '=',
];

function mutate(seed: Buffer, other: Buffer, next: (limit: number) => number): Buffer {
  let bytes = Buffer.from(seed);
  for (let i = next(6); i >= 0; i--) {
    const at = next(bytes.length + 1);
    switch (next(5)) {
      case 0:
        if (at < bytes.length) bytes[at] = next(256);
        break;
      case 1:
        bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + next(8))]);
        break;
      case 2:
        bytes = Buffer.concat([
          bytes.subarray(0, at),
          Buffer.from(INTERESTING[next(INTERESTING.length)]),
          bytes.subarray(at),
        ]);
        break;
      case 3:
        bytes = Buffer.concat([bytes.subarray(0, at), other.subarray(next(other.length)), bytes.subarray(at)]);
        break;
      default:
        bytes = bytes.subarray(0, at);
    }
    if (bytes.length > 20_000) bytes = bytes.subarray(0, 20_000);
  }
  return bytes;
}

function check(bytes: Buffer, next: (limit: number) => number): void {
  const tokenizer = new Tokenizer();
  const flags = new MetaFlags();
  let at = 0;
  let end = 0;
  while (end < bytes.length) {
    end = Math.min(bytes.length, end + 1 + next(64));
    for (;;) {
      const count = tokenizer.parse(bytes, at, end, 0);
      for (let i = 0; i < count; i++) checkRecord(tokenizer, flags, bytes, i * Request.WORDS, at, end);
      expect(tokenizer.consumed).toBeGreaterThanOrEqual(at);
      at = tokenizer.consumed;
      if (tokenizer.pending !== Pending.NONE || at === end) break;
      expect(count).toBeGreaterThan(0);
    }
    if (tokenizer.pending === Pending.LINE_TOO_LONG) {
      expect(end - at).toBeGreaterThan(MAX_LINE_BYTES);
      return;
    }
  }
}

function checkRecord(
  tokenizer: Tokenizer,
  flags: MetaFlags,
  bytes: Buffer,
  record: number,
  at: number,
  end: number,
): void {
  const records = tokenizer.records;
  const first = records[record + Request.tokenFirst];
  const count = records[record + Request.tokenCount];
  const next = records[record + Request.next];
  expect(count).toBeLessThanOrEqual(MAX_TOKENS);
  expect(next).toBeLessThanOrEqual(end);
  for (let i = first; i < first + count; i++) {
    expect(tokenizer.tokens[i * 2]).toBeGreaterThanOrEqual(at);
    expect(tokenizer.tokens[i * 2 + 1]).toBeGreaterThan(0);
    expect(tokenizer.tokens[i * 2] + tokenizer.tokens[i * 2 + 1]).toBeLessThanOrEqual(
      records[record + Request.lineEnd],
    );
  }
  const valueOffset = records[record + Request.valueOffset];
  if (valueOffset >= 0) expect(valueOffset + records[record + Request.valueLength] + 2).toBe(next);
  const command = records[record + Request.command];
  if (command >= CommandCode.META_SET && command <= CommandCode.META_DEBUG) {
    flags.parse(bytes, tokenizer.tokens, first, command === CommandCode.META_SET ? 3 : 2, count);
  }
}

describe('memcached tokenizer under fuzz', () => {
  const corpus = readdirSync(CORPUS).map((name) => readFileSync(join(CORPUS, name)));

  it('takes the corpus as it is', () => {
    for (const bytes of corpus) check(bytes, random(1));
  });

  it(`takes ${RUNS} mutations of it`, () => {
    const base = Number(process.env.FUZZ_SEED ?? (Math.random() * 2 ** 31) | 0);
    for (let run = 0; run < RUNS; run++) {
      const next = random(base + run * 7919);
      const bytes = mutate(corpus[next(corpus.length)], corpus[next(corpus.length)], next);
      try {
        check(bytes, next);
      } catch (error) {
        throw new Error(`FUZZ_SEED=${base} run ${run}: ${JSON.stringify(bytes.toString('latin1'))}`, { cause: error });
      }
    }
  });
});

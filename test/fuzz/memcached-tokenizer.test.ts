/**
 * A short fuzzing run over the memcached tokenizer and meta flags: mutations of the corpus, cut at random places. What is
 * checked: nothing throws, every record stays inside its input, the parser always either consumes or says why not.
 * FUZZ_RUNS sets the number of mutations (default 3,000); a failure prints its seed.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'vitest';
import { MetaFlags } from '../../src/protocol/memcached/meta-flags.js';
import { CommandCode, MAX_TOKENS, Request } from '../../src/protocol/memcached/request.js';
import { MAX_LINE_BYTES, Pending, Tokenizer } from '../../src/protocol/memcached/tokenizer.js';
import { mutate, random } from './mutate.js';

const CORPUS = join(import.meta.dirname, 'corpus', 'memcached');
const RUNS = Number(process.env.FUZZ_RUNS ?? 3000);

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

/** An expect() in here would take most of the time. */
function demand(condition: boolean): void {
  if (!condition) throw new Error('a promise of the tokenizer is broken');
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
      demand(tokenizer.consumed >= at);
      at = tokenizer.consumed;
      if (tokenizer.pending !== Pending.NONE || at === end) break;
      demand(count > 0);
    }
    if (tokenizer.pending === Pending.LINE_TOO_LONG) {
      demand(end - at > MAX_LINE_BYTES);
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
  demand(count <= MAX_TOKENS);
  demand(next <= end);
  for (let i = first; i < first + count; i++) {
    demand(tokenizer.tokens[i * 2] >= at);
    demand(tokenizer.tokens[i * 2 + 1] > 0);
    demand(tokenizer.tokens[i * 2] + tokenizer.tokens[i * 2 + 1] <= records[record + Request.lineEnd]);
  }
  const valueOffset = records[record + Request.valueOffset];
  if (valueOffset >= 0) demand(valueOffset + records[record + Request.valueLength] + 2 === next);
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
      const bytes = mutate(corpus[next(corpus.length)], corpus[next(corpus.length)], INTERESTING, next);
      try {
        check(bytes, next);
      } catch (error) {
        throw new Error(`FUZZ_SEED=${base} run ${run}: ${JSON.stringify(bytes.toString('latin1'))}`, { cause: error });
      }
    }
  });
});

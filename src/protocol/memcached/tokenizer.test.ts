import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { COMMAND_NAMES } from './command-names.js';
import { BATCH_REQUESTS, CommandCode, MAX_TOKENS, Request, RequestFlag } from './request.js';
import { Pending, Tokenizer } from './tokenizer.js';

interface Parsed {
  readonly command: string;
  readonly tokens: readonly string[];
  readonly value: string | null;
  readonly flags: number;
}

const encode = (text: string) => Uint8Array.from(Buffer.from(text, 'latin1'));
const decode = (u8: Uint8Array, offset: number, length: number) =>
  Buffer.from(u8.subarray(offset, offset + length)).toString('latin1');

/** Feeds chunks as the pump does: what is not consumed comes again in front of the next chunk, at another offset. */
function parseChunks(chunks: readonly Uint8Array[]): { requests: Parsed[]; pending: number; left: string } {
  const tokenizer = new Tokenizer();
  const requests: Parsed[] = [];
  let held = new Uint8Array(0);
  let scanned = 0;
  let turn = 0;
  for (const chunk of chunks) {
    const base = (turn++ * 7) % 13;
    const u8 = new Uint8Array(base + held.length + chunk.length + 3).fill(10);
    u8.set(held, base);
    u8.set(chunk, base + held.length);
    const end = base + held.length + chunk.length;
    let at = base;
    for (;;) {
      const count = tokenizer.parse(u8, at, end, scanned);
      for (let i = 0; i < count; i++) requests.push(read(tokenizer, u8, i * Request.WORDS));
      expect(tokenizer.consumed).toBeGreaterThanOrEqual(at);
      expect(tokenizer.consumed).toBeLessThanOrEqual(end);
      at = tokenizer.consumed;
      scanned = tokenizer.pending === Pending.LINE ? end - at : 0;
      if (count < BATCH_REQUESTS) break;
    }
    held = u8.slice(at, end);
  }
  return { requests, pending: tokenizer.pending, left: decode(held, 0, held.length) };
}

function read(tokenizer: Tokenizer, u8: Uint8Array, record: number): Parsed {
  const word = (index: number) => tokenizer.records[record + index];
  const tokens: string[] = [];
  for (let i = 0; i < word(Request.tokenCount); i++) {
    const pair = (word(Request.tokenFirst) + i) * 2;
    tokens.push(decode(u8, tokenizer.tokens[pair], tokenizer.tokens[pair + 1]));
  }
  const valueOffset = word(Request.valueOffset);
  return {
    command: COMMAND_NAMES[word(Request.command)],
    tokens,
    value: valueOffset < 0 ? null : decode(u8, valueOffset, word(Request.valueLength)),
    flags: word(Request.flags),
  };
}

const parseText = (text: string) => parseChunks([encode(text)]);

describe('Tokenizer', () => {
  it('records the tokens of a line and the end of a request', () => {
    expect(parseText('get a  bc \r\n').requests).toEqual([
      { command: 'get', tokens: ['get', 'a', 'bc'], value: null, flags: 0 },
    ]);
  });

  it('takes a bare LF, and a CR that is no line end as part of a token', () => {
    const { requests } = parseText('get a\rb\nversion\n');
    expect(requests.map((r) => r.tokens)).toEqual([['get', 'a\rb'], ['version']]);
  });

  it('finds the data block whatever is in it', () => {
    expect(parseText('set k 0 0 6\r\na\r\nget\r\nmn\r\n').requests).toEqual([
      { command: 'set', tokens: ['set', 'k', '0', '0', '6'], value: 'a\r\nget', flags: 0 },
      { command: 'mn', tokens: ['mn'], value: null, flags: 0 },
    ]);
  });

  it('marks a data block without its CR LF', () => {
    const { requests } = parseText('set k 0 0 3\r\nabcd\r\n');
    expect(requests[0].flags).toBe(RequestFlag.BAD_CHUNK);
    expect(requests[1].command).toBe('unknown');
  });

  it('sees noreply only where a command takes it', () => {
    expect(parseText('get noreply\r\n').requests[0].flags).toBe(0);
    expect(parseText('delete a noreply\r\n').requests[0].flags).toBe(RequestFlag.NOREPLY);
    expect(parseText('set a 0 0 0 noreply\r\n\r\n').requests[0].flags).toBe(RequestFlag.NOREPLY);
    expect(parseText('set a 0 0 0 noreplx\r\n\r\n').requests[0].flags).toBe(0);
  });

  it('has no data block for a storage command that is not well formed', () => {
    for (const line of [
      'set a 0 0',
      'set a 0 0 -1',
      'set a 0 0 x',
      'set a 0 0 1 2 3',
      'cas a 0 0 1',
      'ms a',
      'ms a x',
    ]) {
      const { requests } = parseText(`${line}\r\n`);
      expect(requests, line).toHaveLength(1);
      expect(requests[0].value, line).toBe(null);
    }
  });

  it('waits for a data block and shows its request', () => {
    const tokenizer = new Tokenizer();
    const u8 = encode('mn\r\nset a 0 0 10\r\nabc');
    expect(tokenizer.parse(u8, 0, u8.length, 0)).toBe(1);
    expect(tokenizer.pending).toBe(Pending.VALUE);
    expect(tokenizer.consumed).toBe(4);
    expect(tokenizer.records[Request.WORDS + Request.command]).toBe(CommandCode.SET);
    expect(tokenizer.records[Request.WORDS + Request.valueOffset]).toBe(18);
    expect(tokenizer.records[Request.WORDS + Request.valueLength]).toBe(10);
  });

  it('survives the longest value length a line can name', () => {
    const tokenizer = new Tokenizer();
    const u8 = encode('set a 0 0 2147483645\r\n');
    expect(tokenizer.parse(u8, 0, u8.length, 0)).toBe(0);
    expect(tokenizer.pending).toBe(Pending.VALUE);
    expect(parseText('set a 0 0 2147483646\r\n').requests[0].value).toBe(null);
  });

  it('records at most 24 tokens and says that there are more', () => {
    const keys = Array.from({ length: 30 }, (_, i) => `k${i}`);
    const { requests } = parseText(`get ${keys.join(' ')}\r\nmn\r\n`);
    expect(requests[0].tokens).toEqual(['get', ...keys.slice(0, MAX_TOKENS - 1)]);
    expect(requests[0].flags).toBe(RequestFlag.MORE_TOKENS);
    expect(requests[1].command).toBe('mn');
  });

  it('gives up on a long line without LF unless it is a get', () => {
    expect(parseText('x'.repeat(2049)).pending).toBe(Pending.LINE_TOO_LONG);
    expect(parseText(`get ${'x'.repeat(3000)}`).pending).toBe(Pending.LINE);
    expect(parseText(`  gets ${'x'.repeat(3000)}`).pending).toBe(Pending.LINE);
    expect(parseText(`${' '.repeat(150)}get ${'x'.repeat(3000)}`).pending).toBe(Pending.LINE_TOO_LONG);
    expect(parseText('x'.repeat(2048)).pending).toBe(Pending.LINE);
  });

  it('parses no more than a batch at once', () => {
    const tokenizer = new Tokenizer();
    const u8 = encode('mn\r\n'.repeat(BATCH_REQUESTS + 5));
    expect(tokenizer.parse(u8, 0, u8.length, 0)).toBe(BATCH_REQUESTS);
    expect(tokenizer.pending).toBe(Pending.NONE);
    expect(tokenizer.parse(u8, tokenizer.consumed, u8.length, 0)).toBe(5);
  });

  it('knows every command by its name and no other', () => {
    for (let code = 1; code < COMMAND_NAMES.length; code++) {
      const name = COMMAND_NAMES[code];
      expect(parseText(`${name} k 0 0 0 0\r\n\r\n`).requests[0].command).toBe(name);
      expect(parseText(`${name}x k\r\n`).requests[0].command, `${name}x`).not.toBe(name);
      expect(parseText(`${name.slice(0, -1)} k\r\n`).requests[0].command, name.slice(0, -1)).not.toBe(name);
      expect(parseText(`${name.toUpperCase()} k\r\n`).requests[0].command).toBe('unknown');
    }
  });
});

const word = fc.oneof(
  fc.constantFrom(...COMMAND_NAMES, 'noreply', '0', '1', '5', '-1', '30', 'q', 'v', 'Oz', 'YWJj'),
  fc.string({ minLength: 1, maxLength: 12 }),
);
const line = fc
  .tuple(fc.array(word, { maxLength: 30 }), fc.constantFrom('\r\n', '\n'))
  .map(([words, end]) => words.join(' ') + end);
const store = fc
  .tuple(fc.constantFrom('set', 'add', 'append', 'cas', 'ms'), fc.string({ maxLength: 20 }), fc.boolean())
  .map(([name, data, good]) => {
    const length = Buffer.from(data, 'latin1').length;
    const args = name === 'ms' ? `${length} c` : name === 'cas' ? `0 0 ${length} 7` : `0 0 ${length}`;
    return `${name} k ${args}\r\n${data}${good ? '\r\n' : 'x'}`;
  });
const stream = fc.array(fc.oneof(line, store), { maxLength: 20 }).map((parts) => encode(parts.join('')));

describe('Tokenizer properties', () => {
  it('any split of the input gives the same requests', () => {
    fc.assert(
      fc.property(stream, fc.array(fc.nat(), { maxLength: 12 }), (bytes, cuts) => {
        const at = cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b);
        const chunks = [0, ...at].map((from, i) => bytes.slice(from, at[i] ?? bytes.length));
        expect(parseChunks(chunks)).toEqual(parseChunks([bytes]));
      }),
      { numRuns: 500 },
    );
  });

  it('byte by byte gives the same requests', () => {
    fc.assert(
      fc.property(stream, (bytes) => {
        expect(parseChunks(Array.from(bytes, (byte) => Uint8Array.of(byte)))).toEqual(parseChunks([bytes]));
      }),
      { numRuns: 50 },
    );
  });

  it('garbage never throws and never stops short of the input', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
        const { pending, left } = parseChunks([bytes]);
        if (pending === Pending.NONE) expect(left).toBe('');
        if (pending === Pending.LINE) expect(left).not.toContain('\n');
      }),
      { numRuns: 500 },
    );
  });
});

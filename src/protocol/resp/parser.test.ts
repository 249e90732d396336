import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Bytes } from '../../layout/bytes.js';
import { protocolErrorText } from './errors.js';
import { BATCH_REQUESTS, ParseStatus, type PartialRequest, Request, RequestParser, RequestSource } from './parser.js';

interface Outcome {
  readonly requests: string[][];
  readonly error: string | null;
  /** Bytes left of an incomplete request. */
  readonly rest: number;
}

/** Feeds `data` cut at the given places, as a connection would deliver it: what was not consumed comes again. */
function run(data: Uint8Array, cuts: readonly number[], authenticated = true): Outcome {
  const parser = new RequestParser();
  const requests: string[][] = [];
  let partial: PartialRequest | null = null;
  let consumed = 0;
  for (const cut of [...cuts, data.length]) {
    // At another place each time, with foreign bytes around: offsets must be relative and bounded.
    const shift = cut % 7;
    const u8 = new Uint8Array(shift + cut - consumed + 3).fill(0x0a);
    u8.set(data.subarray(consumed, cut), shift);
    const input = Bytes.from(u8);
    const end = shift + cut - consumed;
    let position = shift;
    while (true) {
      const status: ParseStatus = parser.parse(input, position, end, BATCH_REQUESTS, authenticated, partial);
      partial = parser.partial;
      for (let i = 0; i < parser.count; i++) requests.push(requestOf(parser, i, input, position, end));
      expect(parser.restOffset).toBeGreaterThanOrEqual(position);
      expect(parser.restOffset).toBeLessThanOrEqual(end);
      position = parser.restOffset;
      if (status === ParseStatus.ERROR) {
        return { requests, error: protocolErrorText(parser.error, parser.errorByte), rest: 0 };
      }
      if (status === ParseStatus.MORE) break;
    }
    consumed += position - shift;
  }
  return { requests, error: null, rest: data.length - consumed };
}

function requestOf(parser: RequestParser, index: number, input: Bytes, offset: number, end: number): string[] {
  const word = index * Request.WORDS;
  const first = parser.requests[word + Request.firstArgument];
  const fromInput = parser.requests[word + Request.source] === RequestSource.INPUT;
  const bytes = fromInput ? input : parser.scratch;
  const argv: string[] = [];
  for (let i = 0; i < parser.requests[word + Request.argumentCount]; i++) {
    const argOffset = parser.args[first + i * 2];
    const length = parser.args[first + i * 2 + 1];
    if (fromInput) {
      expect(argOffset).toBeGreaterThanOrEqual(offset);
      expect(argOffset + length).toBeLessThanOrEqual(end);
    }
    argv.push(Buffer.from(bytes.u8.subarray(argOffset, argOffset + length)).toString('latin1'));
  }
  return argv;
}

const latin1 = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, 'latin1'));
const parse = (text: string, authenticated = true): Outcome => run(latin1(text), [], authenticated);

function multibulk(argv: readonly string[]): string {
  return `*${argv.length}\r\n${argv.map((arg) => `$${arg.length}\r\n${arg}\r\n`).join('')}`;
}

describe('RESP parser: multibulk', () => {
  it('records the arguments of pipelined requests', () => {
    const text = multibulk(['SET', 'key', '']) + multibulk(['GET', 'key']);
    expect(parse(text)).toEqual({
      requests: [
        ['SET', 'key', ''],
        ['GET', 'key'],
      ],
      error: null,
      rest: 0,
    });
  });

  it('ignores empty requests', () => {
    expect(parse(`*0\r\n*-1\r\n\r\n${multibulk(['PING'])}`).requests).toEqual([['PING']]);
  });

  it('parses more requests than a batch holds', () => {
    const text = multibulk(['PING']).repeat(BATCH_REQUESTS * 2 + 5);
    expect(parse(text).requests.length).toBe(BATCH_REQUESTS * 2 + 5);
  });

  it('parses a request of many arguments, cut anywhere, in linear time', () => {
    const argv = Array.from({ length: 5000 }, (_, i) => `argument-${i}`);
    const data = latin1(multibulk(argv));
    const cuts = Array.from({ length: 400 }, (_, i) => Math.floor(((i + 1) * data.length) / 401));
    expect(run(data, cuts).requests).toEqual([argv]);
  });

  it.each([
    ['*x\r\n', 'invalid multibulk length'],
    ['*\r\n', 'invalid multibulk length'],
    ['*01\r\n', 'invalid multibulk length'],
    ['*+1\r\n', 'invalid multibulk length'],
    ['*2147483648\r\n', 'invalid multibulk length'],
    ['*1\r\n:3\r\n', "expected '$', got ':'"],
    ['*1\r\n$x\r\n', 'invalid bulk length'],
    ['*1\r\n$-1\r\n', 'invalid bulk length'],
    ['*1\r\n$03\r\nfoo\r\n', 'invalid bulk length'],
    ['*1\r\n$536870913\r\n', 'invalid bulk length'],
    ['*1\r\n$99999999999999999999\r\n', 'invalid bulk length'],
    [`*${'1'.repeat(70_000)}`, 'too big mbulk count string'],
    [`*1\r\n$${'1'.repeat(70_000)}`, 'too big bulk count string'],
    ['x'.repeat(70_000), 'too big inline request'],
    ['set "foo\r\n', 'unbalanced quotes in request'],
    ['set "foo"bar\r\n', 'unbalanced quotes in request'],
  ])('refuses %j', (text, expected) => {
    expect(parse(text).error).toBe(`ERR Protocol error: ${expected}`);
  });

  it('keeps the requests before an error', () => {
    expect(parse(`${multibulk(['PING'])}*x\r\n`)).toEqual({
      requests: [['PING']],
      error: 'ERR Protocol error: invalid multibulk length',
      rest: 0,
    });
  });

  it('limits clients that have not authenticated', () => {
    const many = multibulk(Array.from({ length: 11 }, () => 'x'));
    expect(parse(many, false).error).toBe('ERR Protocol error: unauthenticated multibulk length');
    expect(parse('*2\r\n$3\r\nGET\r\n$16385\r\n', false).error).toBe('ERR Protocol error: unauthenticated bulk length');
    expect(parse(multibulk(Array.from({ length: 10 }, () => 'x')), false).error).toBeNull();
  });

  it('tells how long the argument is that it waits for', () => {
    const parser = new RequestParser();
    const input = Bytes.from('*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000\r\nabc');
    expect(parser.parse(input, 0, input.length, BATCH_REQUESTS, true, null)).toBe(ParseStatus.MORE);
    expect([parser.pendingCount, parser.pendingDone, parser.pendingLength]).toEqual([3, 2, 100_000]);
    expect(parser.pendingOffset).toBe(input.length - 3);
    expect(parser.restOffset).toBe(0);
  });
});

describe('RESP parser: inline commands', () => {
  it.each([
    ['PING\r\n', ['PING']],
    ['  set \t key   value \n', ['set', 'key', 'value']],
    ['set k "a b\\n\\x41\\q"\r\n', ['set', 'k', 'a b\nAq']],
    ["set k 'it\\'s \\n'\r\n", ['set', 'k', "it's \\n"]],
    ['set k ab"c d"\r\n', ['set', 'k', 'abc d']],
    ['set k ""\r\n', ['set', 'k', '']],
  ])('splits %j', (text, expected) => {
    expect(parse(text)).toEqual({ requests: [expected], error: null, rest: 0 });
  });

  it('opens a new batch when the scratch range is full', () => {
    const line = `set k "${'x'.repeat(60_000)}"\r\n`;
    expect(parse(line.repeat(4)).requests.length).toBe(4);
  });
});

describe('RESP parser: properties', () => {
  const argument = fc.oneof(
    fc.string({ unit: fc.integer({ min: 0, max: 255 }).map((c) => String.fromCharCode(c)), maxLength: 12 }),
    fc.constantFrom('', '\r\n', '$3', '*1\r\n', 'x'.repeat(300)),
  );
  const request = fc.array(argument, { minLength: 1, maxLength: 12 });
  const cutsOf = fc.array(fc.nat(), { maxLength: 20 });
  const at = (cuts: readonly number[], length: number): number[] =>
    cuts.map((cut) => cut % (length + 1)).sort((a, b) => a - b);

  it('gives the same requests however the input is cut', () => {
    fc.assert(
      fc.property(fc.array(request, { maxLength: 90 }), cutsOf, (requests, cuts) => {
        const data = latin1(requests.map(multibulk).join(''));
        expect(run(data, at(cuts, data.length))).toEqual({ requests, error: null, rest: 0 });
      }),
      { numRuns: 300 },
    );
  });

  it('never throws on garbage, reads in range, and is indifferent to cuts', () => {
    const token = fc.constantFrom(
      '*',
      '$',
      '\r\n',
      '\n',
      '\r',
      '1',
      '3',
      '0',
      '-1',
      'GET',
      ' ',
      '"',
      "'",
      '\\x4',
      '\0',
    );
    const garbage = fc.array(fc.oneof(token, argument), { maxLength: 60 }).map((parts) => parts.join(''));
    fc.assert(
      fc.property(garbage, cutsOf, (text, cuts) => {
        const data = latin1(text);
        const whole = run(data, []);
        const cut = run(data, at(cuts, data.length));
        expect(cut.requests).toEqual(whole.requests);
        expect(cut.error).toBe(whole.error);
      }),
      { numRuns: 2000 },
    );
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Lower, MetaFlags, Upper } from './meta-flags.js';
import { Request } from './request.js';
import { Tokenizer } from './tokenizer.js';

function parse(line: string): { flags: MetaFlags; error: string | null } {
  const u8 = Uint8Array.from(Buffer.from(`${line}\r\n`, 'latin1'));
  const tokenizer = new Tokenizer();
  expect(tokenizer.parseLine(u8, 0, u8.length)).toBe(true);
  const flags = new MetaFlags();
  const count = tokenizer.records[Request.tokenCount];
  const reply = flags.parse(u8, tokenizer.tokens, 0, line.startsWith('ms') ? 3 : 2, count);
  return { flags, error: reply === null ? null : Buffer.from(reply).toString().trimEnd() };
}

describe('MetaFlags', () => {
  it('reads flags and their arguments', () => {
    const { flags, error } = parse('mg key v q Oabc T30 N-1 R10 C12 E9007199254740991 F4294967295 MA D5 J6 Lx P');
    expect(error).toBe(null);
    expect(flags.lower).toBe(Lower.v | Lower.q);
    expect(flags.upper & (Upper.O | Upper.T | Upper.P)).toBe(Upper.O | Upper.T | Upper.P);
    expect([flags.ttl, flags.vivifyTtl, flags.recacheTtl]).toEqual([30, -1, 10]);
    expect([flags.compareCas, flags.newCas, flags.clientFlags]).toEqual([12, Number.MAX_SAFE_INTEGER, 4294967295]);
    expect(flags.mode).toBe(65);
    expect([flags.delta.low, flags.initial.low]).toEqual([5, 6]);
  });

  it('has defaults for what was not given', () => {
    const { flags } = parse('ma key');
    expect([flags.lower, flags.upper, flags.mode, flags.clientFlags]).toEqual([0, 0, 0, 0]);
    expect([flags.delta.low, flags.initial.low]).toEqual([1, 0]);
  });

  it.each([
    ['mg', 'CLIENT_ERROR bad command line format'],
    [`mg ${'k'.repeat(251)}`, 'CLIENT_ERROR bad command line format'],
    ['mg k v v', 'CLIENT_ERROR duplicate flag'],
    ['mg k Oa Ob', 'CLIENT_ERROR duplicate flag'],
    ['mg k !', 'CLIENT_ERROR invalid flag'],
    ['mg k a', 'CLIENT_ERROR invalid flag'],
    ['mg k \xff', 'CLIENT_ERROR invalid flag'],
    ['mg k T', 'CLIENT_ERROR bad token in command line format'],
    ['mg k Tx', 'CLIENT_ERROR bad token in command line format'],
    ['mg k N2147483648', 'CLIENT_ERROR bad token in command line format'],
    ['mg k E9007199254740992', 'CLIENT_ERROR bad token in command line format'],
    ['mg k C-1', 'CLIENT_ERROR bad token in command line format'],
    ['ms k 1 F4294967296', 'CLIENT_ERROR bad command line format'],
    ['ms k 1 MAP', 'CLIENT_ERROR incorrect length for M token'],
    ['ma k D', 'CLIENT_ERROR invalid numeric delta value'],
    ['ma k J18446744073709551616', 'CLIENT_ERROR invalid numeric initial value'],
    [`mg k O${'o'.repeat(32)}`, 'CLIENT_ERROR opaque token too long'],
    [`mg k ${'abcdefghijklmnopqrs'.split('').join(' ')}`, 'CLIENT_ERROR options flags are too long'],
  ])('refuses %s', (line, error) => {
    expect(parse(line).error).toBe(error);
  });

  it('never throws', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ maxLength: 40 }), { maxLength: 30 }), (words) => {
        parse(`mg ${words.join(' ').replaceAll('\n', '')}`);
      }),
    );
  });
});

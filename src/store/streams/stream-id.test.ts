/** Ids of streams against big integers. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Bytes } from '../../layout/bytes.js';
import { ID_KEY_BYTES_MAX } from '../../layout/stream.js';
import { StreamId } from './stream-id.js';

const U64_MAX = 2n ** 64n - 1n;
const part = fc.oneof(
  fc.bigInt({ min: 0n, max: 300n }),
  fc.bigInt({ min: 0n, max: U64_MAX }),
  fc.bigInt({ min: 0xfe_ffff_ffff_f0n, max: 0xff_ffff_ffff_ffn }),
  fc.bigInt({ min: 0xfeff_ffff_fff0n, max: 0xff00_0000_0010n }),
  fc.integer({ min: 0, max: 64 }).map((bits) => (2n ** BigInt(bits) - 1n) & U64_MAX),
  fc.integer({ min: 0, max: 63 }).map((bits) => 2n ** BigInt(bits)),
);
const pair = fc.tuple(part, part);

function idOf([ms, seq]: readonly [bigint, bigint]): StreamId {
  const id = new StreamId();
  const text = Bytes.from(`${ms}-${seq}`);
  expect(id.parse(text, 0, text.length)).toBe(true);
  return id;
}

function numberOf(id: StreamId): bigint {
  const [ms, seq] = id.toString().split('-').map(BigInt);
  return (ms << 64n) | seq;
}

function keyOf(id: StreamId): Buffer {
  const bytes = Bytes.allocate(ID_KEY_BYTES_MAX);
  return Buffer.from(bytes.u8.slice(0, id.writeKey(bytes, 0)));
}

it('is read from text and written as text', () => {
  fc.assert(
    fc.property(pair, (drawn) => {
      const id = idOf(drawn);
      const to = Bytes.allocate(41);
      const written = Buffer.from(to.u8.subarray(0, id.writeText(to.u8, 0))).toString();
      expect(written).toBe(`${drawn[0]}-${drawn[1]}`);
      expect(id.toString()).toBe(written);
    }),
  );
});

it('comes back from keys and values, and keys sort as ids do', () => {
  fc.assert(
    fc.property(pair, pair, (a, b) => {
      const [one, other] = [idOf(a), idOf(b)];
      const order = numberOf(one) < numberOf(other) ? -1 : numberOf(one) > numberOf(other) ? 1 : 0;
      expect(Math.sign(one.compare(other))).toBe(order);
      expect(Math.sign(Buffer.compare(keyOf(one), keyOf(other)))).toBe(order);
      const key = Bytes.from(keyOf(one));
      expect(other.readKey(key, 0)).toBe(key.length);
      expect(other.compare(one)).toBe(0);
      const view = new DataView(new ArrayBuffer(16));
      one.writeWords(view, 0);
      other.setZero();
      other.readWords(view, 0);
      expect(other.compare(one)).toBe(0);
    }),
  );
});

it('has the bytes of its layout', () => {
  expect(keyOf(idOf([1526919030474n, 0n])).toString('hex')).toBe('0163837766ca00');
});

it('counts up and down', () => {
  fc.assert(
    fc.property(pair, (drawn) => {
      const id = idOf(drawn);
      const before = numberOf(id);
      const isMax = before === (U64_MAX << 64n) + U64_MAX;
      expect(id.increment()).toBe(!isMax);
      expect(numberOf(id)).toBe(isMax ? before : before + 1n);
      id.set(idOf(drawn));
      expect(id.decrement()).toBe(before !== 0n);
      expect(numberOf(id)).toBe(before === 0n ? before : before - 1n);
    }),
  );
});

it('is not read from anything else', () => {
  const bad = [
    '',
    '-',
    '1-',
    '-1',
    '1--1',
    'a',
    '1-a',
    '18446744073709551616',
    '1-18446744073709551616',
    '1-1-1',
    '1 ',
    '*',
  ];
  for (const each of bad) {
    const bytes = Bytes.from(each);
    expect(new StreamId().parse(bytes, 0, bytes.length), each).toBe(false);
  }
});

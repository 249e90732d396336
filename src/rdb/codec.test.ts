import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Bytes } from '../layout/bytes.js';
import { Crc64 } from './crc64.js';
import { decimal, readDecimal, writeDecimal64 } from './decimal.js';
import { RdbError } from './format.js';
import { packLzf, unpackLzf } from './lzf.js';
import { IntsetReader, IntsetWriter } from './packed/intset.js';
import { entryBytes, ListpackReader, ListpackWriter } from './packed/listpack.js';
import { RdbReader, StringSlot } from './reader.js';
import { scoreText } from './score-text.js';
import { RdbWriter } from './writer.js';

const text = (slot: StringSlot): string =>
  Buffer.from(slot.bytes.u8.slice(slot.offset, slot.offset + slot.length)).toString('latin1');
const bytesOf = (value: string): Bytes => Bytes.from(Buffer.from(value, 'latin1'));
const blobOf = (bytes: Bytes, length: number): StringSlot => {
  const slot = new StringSlot();
  slot.bytes = bytes;
  slot.offset = 0;
  slot.length = length;
  return slot;
};

/** Strings as they come in listpacks: numbers of all widths, and anything else. */
const element = fc.oneof(
  fc.string({ unit: 'binary-ascii', maxLength: 200 }),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String),
  fc.integer({ min: -10_000, max: 10_000 }).map(String),
  fc.constantFrom('-0', '00', '01', '-', '', '9223372036854775808', '-9223372036854775809', '+1', '1 '),
);

describe('CRC-64', () => {
  it('is the one of Redis', () => {
    const crc = new Crc64();
    crc.update(Buffer.from('123456789'), 0, 9);
    const bytes = Bytes.allocate(8);
    crc.writeTo(bytes.view, 0);
    expect(bytes.view.getBigUint64(0, true)).toBe(0xe9c6d914c4b8d9can);
    expect(crc.equals(bytes.view, 0)).toBe(true);
  });

  it('is the same in parts', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), fc.nat(100), (data, cut) => {
        const [whole, parts] = [new Crc64(), new Crc64()];
        const at = Math.min(cut, data.length);
        whole.update(data, 0, data.length);
        parts.update(data, 0, at);
        parts.update(data, at, data.length);
        expect([parts.high, parts.low]).toEqual([whole.high, whole.low]);
      }),
    );
  });
});

describe('decimals', () => {
  it('are what BigInt says', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (value) => {
        const written = value.toString();
        expect(readDecimal(bytesOf(written), 0, written.length)).toBe(true);
        expect((BigInt(decimal.high) << 32n) | BigInt(decimal.low >>> 0)).toBe(value);
        const bytes = Bytes.allocate(20);
        const length = writeDecimal64(bytes, 0, decimal.high, decimal.low);
        expect(text(blobOf(bytes, length))).toBe(written);
      }),
    );
  });
});

describe('LZF', () => {
  it('gives back what went in', () => {
    const data = fc.oneof(
      fc.uint8Array({ maxLength: 600 }),
      fc.array(fc.constantFrom(1, 2, 3), { maxLength: 3000 }).map((list) => Uint8Array.from(list)),
      fc.nat(20_000).map((length) => new Uint8Array(length)),
    );
    fc.assert(
      fc.property(data, (plain) => {
        const packed = new Uint8Array(plain.length + 100);
        const length = packLzf(plain, 0, plain.length, packed, 0, plain.length - 4);
        if (length === 0) return;
        expect(length).toBeLessThanOrEqual(plain.length - 4);
        const out = new Uint8Array(plain.length);
        expect(unpackLzf(packed, 0, length, out, 0, plain.length)).toBe(true);
        expect(Buffer.from(out).equals(plain)).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  it('packs what repeats', () => {
    const plain = Buffer.from('the same words again and again, '.repeat(100));
    const packed = new Uint8Array(plain.length);
    const length = packLzf(plain, 0, plain.length, packed, 0, plain.length);
    expect(length).toBeGreaterThan(0);
    expect(length).toBeLessThan(200);
  });

  it('writes nothing beyond its room, whatever it is given', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), fc.nat(300), (packed, length) => {
        const out = new Uint8Array(length + 16).fill(0xaa);
        unpackLzf(packed, 0, packed.length, out, 8, length);
        expect(out.subarray(0, 8).every((byte) => byte === 0xaa)).toBe(true);
        expect(out.subarray(length + 8).every((byte) => byte === 0xaa)).toBe(true);
      }),
    );
  });
});

describe('listpacks', () => {
  it('are as in the example', () => {
    const writer = new ListpackWriter();
    writer.begin();
    writer.add(bytesOf('a'), 0, 1);
    writer.add(bytesOf('5'), 0, 1);
    writer.finish();
    expect(Buffer.from(writer.bytes.u8.slice(0, writer.length)).toString('hex')).toBe('0c00000002008161020501ff');
  });

  it('give back what went in, and take as many bytes as reckoned', () => {
    fc.assert(
      fc.property(fc.array(element, { maxLength: 40 }), (elements) => {
        const writer = new ListpackWriter();
        writer.begin();
        let reckoned = 7;
        for (const one of elements) {
          writer.add(bytesOf(one), 0, one.length);
          reckoned += entryBytes(bytesOf(one), 0, one.length);
        }
        writer.finish();
        expect(writer.length).toBe(reckoned);
        const reader = new ListpackReader();
        const slot = new StringSlot();
        reader.open(blobOf(writer.bytes, writer.length));
        const read: string[] = [];
        while (reader.next(slot)) read.push(text(slot));
        expect(read).toEqual(elements);
      }),
    );
  });
});

describe('intsets', () => {
  it('give back what went in', () => {
    const values = fc.uniqueArray(
      fc.oneof(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), fc.bigInt({ min: -40_000n, max: 40_000n })),
      { minLength: 1, maxLength: 200 },
    );
    fc.assert(
      fc.property(values, (list) => {
        const sorted = list.sort((a, b) => (a < b ? -1 : 1)).map(String);
        const writer = new IntsetWriter();
        writer.begin();
        for (const one of sorted) writer.add(bytesOf(one), 0, one.length);
        writer.finish();
        const reader = new IntsetReader();
        const slot = new StringSlot();
        reader.open(blobOf(writer.bytes, writer.length));
        const read: string[] = [];
        while (reader.next(slot)) read.push(text(slot));
        expect(read).toEqual(sorted);
      }),
    );
  });

  it('are refused when they are not in order', () => {
    const bytes = Bytes.from(Uint8Array.from([2, 0, 0, 0, 2, 0, 0, 0, 3, 0, 1, 0]));
    const reader = new IntsetReader();
    reader.open(blobOf(bytes, 12));
    const slot = new StringSlot();
    expect(reader.next(slot)).toBe(true);
    expect(() => reader.next(slot)).toThrow(RdbError);
  });
});

describe('strings and lengths', () => {
  it('give back what went in, from memory and through a window', () => {
    const strings = fc.array(
      fc.oneof(
        element,
        fc.nat(5000).map((n) => 'ab'.repeat(n)),
      ),
      { maxLength: 20 },
    );
    fc.assert(
      fc.property(strings, fc.array(fc.maxSafeNat(), { maxLength: 10 }), (list, lengths) => {
        const writer = new RdbWriter();
        for (const one of list) writer.string(bytesOf(one), 0, one.length);
        for (const one of lengths) writer.lengthOf(one);
        const reader = new RdbReader();
        const slot = new StringSlot();
        const { bytes, length } = writer;
        let at = 0;
        const fill = (u8: Uint8Array, offset: number, wanted: number): number => {
          const part = Math.min(wanted, 7);
          u8.set(bytes.u8.subarray(at, at + part), offset);
          at += part;
          return part;
        };
        for (const open of [() => reader.openMemory(bytes, 0, length), () => reader.openFile(fill, length)]) {
          open();
          for (const one of list) {
            reader.string(slot);
            expect(text(slot)).toBe(one);
          }
          for (const one of lengths) expect(reader.length()).toBe(one);
          expect(reader.left).toBe(0);
          expect(reader.offset).toBe(length);
        }
      }),
    );
  });

  it('refuses lengths that nothing stands behind, without taking memory for them', () => {
    for (const hex of [
      '80ffffffff',
      '810000001000000000',
      '81ffffffffffffffff',
      'c301c0',
      'c30180ffffffff00',
      '40',
      'c4',
    ]) {
      const reader = new RdbReader();
      const bytes = Bytes.from(Buffer.from(hex, 'hex'));
      reader.openMemory(bytes, 0, bytes.length);
      expect(() => reader.string(new StringSlot()), hex).toThrow(RdbError);
    }
  });
});

describe('scores as text', () => {
  it('with 17 digits as C writes them', () => {
    const cases: [number, string][] = [
      [0.1, '0.10000000000000001'],
      [3.5, '3.5'],
      [-0.5, '-0.5'],
      [1e300, '1.0000000000000001e+300'],
      [1e-7, '9.9999999999999995e-08'],
      [2 ** -25, '2.9802322387695312e-08'],
      [123_456_789_012_345.67, '123456789012345.67'],
      [1e-4, '0.0001'],
      [Number.POSITIVE_INFINITY, 'inf'],
      [Number.MIN_VALUE, '4.9406564584124654e-324'],
    ];
    for (const [score, wanted] of cases) expect(scoreText(score, false)).toBe(wanted);
  });
});

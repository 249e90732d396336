import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AofItem, AofReader } from './aof-reader.js';
import { RdbError } from './format.js';
import { RdbReader } from './reader.js';

/** A reader whose file comes in pieces of at most `piece` bytes. */
function open(bytes: Uint8Array, piece: number): AofReader {
  let at = 0;
  const reader = new RdbReader();
  reader.openFile((u8, to, length) => {
    const count = Math.min(length, piece, bytes.length - at);
    u8.set(bytes.subarray(at, at + count), to);
    at += count;
    return count;
  }, bytes.length);
  reader.checksums = false;
  return new AofReader(reader);
}

/** All commands, and how it ended. */
function readAll(aof: AofReader): { readonly commands: string[][]; readonly end: AofItem; readonly begin: number } {
  const commands: string[][] = [];
  for (;;) {
    const item = aof.next();
    if (item !== AofItem.COMMAND) return { commands, end: item, begin: aof.begin };
    const words: string[] = [];
    for (let i = 0; i < aof.argc; i++) {
      const [offset, length] = [aof.args[i * 2], aof.args[i * 2 + 1]];
      words.push(Buffer.from(aof.bytes.u8.subarray(offset, offset + length)).toString('latin1'));
    }
    commands.push(words);
  }
}

function encode(words: readonly string[]): Buffer {
  const parts = words.map((word) => `$${word.length}\r\n${word}\r\n`);
  return Buffer.from(`*${words.length}\r\n${parts.join('')}`, 'latin1');
}

const word = fc.string({
  unit: fc.integer({ min: 0, max: 255 }).map((byte) => String.fromCharCode(byte)),
  maxLength: 40,
});
const commandList = fc.array(fc.array(word, { minLength: 1, maxLength: 6 }), { maxLength: 8 });

describe('the commands of an append-only file', () => {
  it('come out as they went in, however the file comes and wherever it ends', () => {
    fc.assert(
      fc.property(commandList, fc.integer({ min: 1, max: 50 }), fc.nat(), (commands, piece, where) => {
        const parts = commands.flatMap((words, i) =>
          i % 3 === 1 ? [Buffer.from('#TS:17\r\n'), encode(words)] : [encode(words)],
        );
        const whole = Buffer.concat(parts);
        expect(readAll(open(whole, piece))).toMatchObject({ commands, end: AofItem.END });
        const length = where % (whole.length + 1);
        const { commands: found, end, begin } = readAll(open(whole.subarray(0, length), piece));
        expect(found).toEqual(commands.slice(0, found.length));
        expect(end === AofItem.END || end === AofItem.CUT).toBe(true);
        // What stands in front of the cut is whole.
        if (end === AofItem.CUT)
          expect(readAll(open(whole.subarray(0, begin), piece))).toMatchObject({ commands: found, end: AofItem.END });
      }),
    );
  });

  it('that are damaged are an RdbError, or other commands', () => {
    fc.assert(
      fc.property(commandList, fc.nat(), fc.integer({ min: 0, max: 255 }), (commands, where, byte) => {
        const whole = Buffer.concat(commands.map(encode));
        if (whole.length > 0) whole[where % whole.length] = byte;
        try {
          readAll(open(whole, 1000));
        } catch (error) {
          expect(error).toBeInstanceOf(RdbError);
        }
      }),
    );
  });

  it.each([
    ['*1\r\n$x\r\n', 'a length is none'],
    ['*0\r\n', 'a command has no words'],
    ['*1\r\n$4\r\nPING..', 'a word does not end where its length says'],
    ['*1\r\n:4\r\n', "a word begins with '$', not with ':'"],
    ['PING\r\n', "a command begins with '*', not with 'P'"],
    ['#'.repeat(2000), 'an annotation does not end'],
  ])('refuses %j', (text, reason) => {
    expect(() => readAll(open(Buffer.from(text), 7))).toThrow(reason);
  });

  it('may be longer than the window', () => {
    const words = ['RPUSH', ...Array.from({ length: 300_000 }, (_, i) => `element ${i}`)];
    const large = ['SET', 'k', 'x'.repeat(5_000_000)];
    expect(readAll(open(Buffer.concat([encode(words), encode(large)]), 1 << 20)).commands).toEqual([words, large]);
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Bytes } from '../../layout/bytes.js';
import { Send } from '../../native/addon.js';
import { Output } from '../output.js';
import { formatDouble, Reply, ReplyType } from './reply.js';

function render(write: (reply: Reply) => void, protocol = 2): string {
  const sends = new Int32Array(64 * Send.WORDS);
  const parts: string[] = [];
  const take = (count: number): void => {
    for (let i = 0; i < count; i++) {
      const offset = sends[i * Send.WORDS + Send.offset];
      const bytes = output.u8.subarray(offset, offset + sends[i * Send.WORDS + Send.length]);
      parts.push(Buffer.from(bytes).toString('latin1'));
    }
  };
  const output = new Output(Bytes.allocate(8192), sends, take);
  const reply = new Reply(output);
  reply.protocol = protocol;
  output.begin(1);
  write(reply);
  output.end();
  take(output.sendCount);
  return parts.join('');
}

describe('replies', () => {
  it.each<[string, (reply: Reply) => void, string, string]>([
    ['OK', (r) => r.ok(), '+OK\r\n', '+OK\r\n'],
    ['a simple string', (r) => r.simple('PONG'), '+PONG\r\n', '+PONG\r\n'],
    ['an error', (r) => r.error('ERR a\r\nb'), '-ERR a  b\r\n', '-ERR a  b\r\n'],
    ['an integer', (r) => r.integer(-42), ':-42\r\n', ':-42\r\n'],
    ['a 64-bit integer', (r) => r.integer64(2n ** 63n - 1n), ':9223372036854775807\r\n', ':9223372036854775807\r\n'],
    ['true', (r) => r.boolean(true), ':1\r\n', '#t\r\n'],
    ['false', (r) => r.boolean(false), ':0\r\n', '#f\r\n'],
    ['a double', (r) => r.double(3.5), '$3\r\n3.5\r\n', ',3.5\r\n'],
    ['an infinity', (r) => r.double(Number.NEGATIVE_INFINITY), '$4\r\n-inf\r\n', ',-inf\r\n'],
    ['a big number', (r) => r.bigNumber(10n ** 20n), '$21\r\n100000000000000000000\r\n', '(100000000000000000000\r\n'],
    ['a bulk string', (r) => r.bulk(Bytes.from('xabcx'), 1, 3), '$3\r\nabc\r\n', '$3\r\nabc\r\n'],
    ['an empty bulk string', (r) => r.bulkString(''), '$0\r\n\r\n', '$0\r\n\r\n'],
    ['a UTF-8 string', (r) => r.bulkUtf8('é'), '$2\r\n\xc3\xa9\r\n', '$2\r\n\xc3\xa9\r\n'],
    ['a verbatim string', (r) => r.verbatim('txt', 'hi'), '$2\r\nhi\r\n', '=6\r\ntxt:hi\r\n'],
    ['a null', (r) => r.nil(), '$-1\r\n', '_\r\n'],
    ['a null array', (r) => r.nilArray(), '*-1\r\n', '_\r\n'],
    ['an array', (r) => r.array(12), '*12\r\n', '*12\r\n'],
    ['a map', (r) => r.map(2), '*4\r\n', '%2\r\n'],
    ['a set', (r) => r.set(3), '*3\r\n', '~3\r\n'],
    ['a push', (r) => r.push(3), '*3\r\n', '>3\r\n'],
  ])('%s', (_name, write, resp2, resp3) => {
    expect(render(write, 2)).toBe(resp2);
    expect(render(write, 3)).toBe(resp3);
  });

  it('an attribute before a reply', () => {
    const write = (r: Reply): void => {
      r.attribute(1);
      r.bulkString('ttl');
      r.integer(5);
      r.ok();
    };
    expect(render(write, 3)).toBe('|1\r\n$3\r\nttl\r\n:5\r\n+OK\r\n');
  });

  it('collections whose length is known at the end', () => {
    const write = (r: Reply): void => {
      r.deferred();
      r.bulkString('k');
      r.bulkString('v');
      r.endDeferred(ReplyType.MAP, 1);
    };
    expect(render(write, 2)).toBe('*2\r\n$1\r\nk\r\n$1\r\nv\r\n');
    expect(render(write, 3)).toBe('%1\r\n$1\r\nk\r\n$1\r\nv\r\n');
  });

  it('counts errors by code', () => {
    render((r) => {
      r.error('ERR one');
      r.error('WRONGTYPE two');
      r.error('UNHEARD of');
      r.error('oneword');
      expect([r.errorsByCode[0], r.errorsByCode[1]]).toEqual([2, 1]);
      expect([...r.otherErrors]).toEqual([['UNHEARD', 1]]);
      expect(r.errorCount).toBe(4);
    });
  });

  it('writes every integer as JavaScript does', () => {
    fc.assert(
      fc.property(fc.maxSafeInteger(), (value) => {
        expect(render((r) => r.integer(value))).toBe(`:${value}\r\n`);
      }),
    );
    for (const value of [0, 9, 10, 99, 100, 999, 1000, 2 ** 30 - 1, 2 ** 30, 2 ** 31, 2 ** 53 - 1]) {
      expect(render((r) => r.integer(value))).toBe(`:${value}\r\n`);
      expect(render((r) => r.integer(-value))).toBe(`:${-value}\r\n`.replace(':-0', ':0').replace(':0', ':0'));
    }
  });

  it('formats doubles so that they read back the same', () => {
    const values = [0, -0, 3, 0.1, 1e-7, 1.5e-7, 1e17, 2 ** 60, 1e19, 1.5e20, 1.25, -3.0e-5, 12345.678, 1e300, 5e-324];
    expect(values.map(formatDouble)).toEqual([
      '0',
      '-0',
      '3',
      '0.1',
      '1e-7',
      '1.5e-7',
      '100000000000000000',
      '1152921504606846976',
      '1e+19',
      '1.5e+20',
      '1.25',
      '-0.00003',
      '12345.678',
      '1e+300',
      '5e-324',
    ]);
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        expect(Number(formatDouble(value))).toBe(value);
      }),
    );
  });
});

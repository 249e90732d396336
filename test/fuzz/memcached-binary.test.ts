/**
 * A short fuzzing run over a binary memcached connection and over datagrams: requests of every opcode, mutated and cut at random
 * places, against a small real store. What is checked: no handler throws, whatever comes back is whole responses, and the
 * store's invariants hold at the end. FUZZ_RUNS sets the number of mutations; a failure prints its seed.
 */
import { describe, expect, it } from 'vitest';
import { Opcode } from '../../src/protocol/memcached/binary-codes.js';
import { checkInvariants } from '../../src/store/invariants.js';
import { binaryRequest, binaryResponses, extras } from '../helpers/binary-protocol.js';
import { MemcachedSession } from '../helpers/memcached-session.js';
import { openTestStore } from '../helpers/store.js';
import { mutate, random } from './mutate.js';

const RUNS = Number(process.env.FUZZ_RUNS ?? 1500);
const EXTRAS = [extras(), extras(7), extras(7, 100), extras(1n, 5n, 0), extras(1n, 5n, 0xffffffff)];
const INTERESTING = [
  '\x80',
  '\x81',
  '\x00\x00\x00\x00',
  '\xff\xff\xff\xff',
  '\x7f\xff\xff\xff',
  '\x00\xfa',
  '\x08',
  'PLAIN',
  'get a\r\n',
  binaryRequest({ opcode: Opcode.NOOP }).toString('latin1'),
  binaryRequest({ opcode: Opcode.GETK, key: 'a' }).toString('latin1'),
];

/** A few requests of random opcodes, most of them well formed for some opcode. */
function requests(next: (limit: number) => number): Buffer {
  const parts: Buffer[] = [];
  for (let i = next(6); i >= 0; i--) {
    parts.push(
      binaryRequest({
        opcode: next(0x28),
        key: ['a', 'b', '', 'k'.repeat(250), 'k'.repeat(251), 'detail dump'][next(6)],
        value: ['', '5', 'text', 'v'.repeat(20_000), '\0default\0x'][next(5)],
        extras: EXTRAS[next(EXTRAS.length)],
        cas: BigInt(next(4)),
      }),
    );
  }
  return Buffer.concat(parts);
}

describe('binary memcached connection under fuzz', () => {
  it(`takes ${RUNS} mutations`, () => {
    const store = openTestStore({ dramBytes: 16 * 1024 * 1024, policy: 'allkeys-lru' });
    const session = new MemcachedSession(store);
    const base = Number(process.env.FUZZ_SEED ?? (Math.random() * 2 ** 31) | 0);
    let responses = 0;
    for (let run = 0; run < RUNS; run++) {
      const next = random(base + run * 7919);
      const plain = requests(next);
      const bytes = next(4) === 0 ? plain : mutate(plain, requests(next), INTERESTING, next);
      session.settings.requirepass = next(8) === 0 ? 'x' : '';
      session.client = session.connect();
      try {
        if (run % 8 === 0) session.datagram(Buffer.concat([Buffer.from([1, 2, 0, 0, 0, 1, 0, 0]), bytes]));
        let reply = '';
        for (let at = 0; at < bytes.length && !session.isClosed; ) {
          const end = at + 1 + next(next(3) === 0 ? 40 : 30_000);
          reply += session.send(bytes.subarray(at, end));
          at = end;
        }
        session.close();
        if (bytes[0] === 0x80) responses += binaryResponses(Buffer.from(reply, 'latin1')).length;
      } catch (error) {
        throw new Error(`FUZZ_SEED=${base} run ${run}: ${bytes.toString('hex')}`, { cause: error });
      }
    }
    checkInvariants(store);
    expect(responses).toBeGreaterThan(RUNS / 2);
  });
});

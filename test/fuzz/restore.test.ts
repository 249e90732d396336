/**
 * A short fuzzing run over RESTORE: payloads of all types and encodings, mutated and sealed anew, so that what is inside is looked at.
 *
 * What is checked: no handler throws, the reply is OK or Redis's error, what was restored can be dumped and restored again with the same
 * outcome, no memory is taken beyond what so few bytes can hold, and the store's invariants hold. FUZZ_RUNS sets the number of mutations
 * (default 4,000); a failure prints its seed and the payload.
 */
import { describe, expect, it } from 'vitest';
import { Bytes } from '../../src/layout/bytes.js';
import { RdbType, TRAILER_BYTES } from '../../src/rdb/format.js';
import { sealPayload } from '../../src/rdb/payload.js';
import { checkInvariants } from '../../src/store/invariants.js';
import { Session } from '../helpers/session.js';
import { openTestStore } from '../helpers/store.js';
import { mutate, random } from './mutate.js';

const RUNS = Number(process.env.FUZZ_RUNS ?? 4000);
const INVARIANTS_EVERY = 200;

const OK = '+OK\r\n';
const BAD_DATA = '-ERR Bad data format\r\n';

/** Lengths, codes and ends as they stand in the formats. */
const INTERESTING = [
  '\x80\x7f\xff\xff\xff',
  '\x80\xff\xff\xff\xff',
  '\x81\x00\x00\x00\x00\xff\xff\xff\xff',
  '\x81\xff\xff\xff\xff\xff\xff\xff\xff',
  '\xc0\xff',
  '\xc2\xff\xff\xff\x7f',
  '\xc3\x05\x0b\x00a\xe0\x01\x00',
  '\xc3\x80\x00\x00\x00\x05\x80\x3f\xff\xff\xff',
  '\xf0\xff\xff\xff\xff',
  '\xf4\xff\xff\xff\xff\xff\xff\xff\x7f',
  '\xe0\x00\x01',
  '\xfe\xff\xff\xff\xff',
  '\xff\xff',
  '\xff',
  '\0',
];

function seal(body: Uint8Array, version = 12): Buffer {
  const bytes = Bytes.from(Buffer.concat([body, Buffer.alloc(TRAILER_BYTES)]));
  sealPayload(bytes, 0, body.length, version);
  return Buffer.from(bytes.u8);
}

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');

/** Id 5-1. */
const ID = '0000000000000005 0000000000000001';

/** Forms that only others write. */
const FOREIGN = [
  // A list, a set and a hash string by string; a sorted set with scores as text.
  '01 02 01 61 c0 05',
  '02 02 01 61 01 62',
  '04 01 01 61 01 62',
  '03 02 01 61 03 31 2e 35 01 62 fe',
  // A zipmap, a ziplist as list, hash and sorted set, a quicklist of one.
  '09 09 01 01 61 02 01 62 63 00 ff',
  '0a 14 14000000 0f000000 0300 00 01 61 03 f3 02 c0 e8 03 ff',
  '0e 01 14 14000000 0f000000 0300 00 01 61 03 f3 02 c0 e8 03 ff',
  '0d 10 10000000 0d000000 0200 00 01 61 03 f3 ff',
  '0c 10 10000000 0d000000 0200 00 01 61 03 f3 ff',
  // Listpacks: a set, a node that is one plain element, fields with expiries in both forms.
  '14 0e 0e000000 0200 81 61 02 82 62 63 03 ff',
  '12 02 01 03 61 62 63 02 0b 0b000000 0100 82 62 63 03 ff',
  '19 0000000000000000 17 17000000 0300 81 61 02 81 62 02 f4 0000 0000 0003 0000 09 ff',
  '18 0000000000030000 01 05 01 61 01 62',
  '16 01 81 0000030000000000 01 61 01 62',
  // A stream of before groups had counters: one entry, one group, one consumer that has it.
  `0f 01 10 ${ID} 1d 1d000000 0a00 0101 0001 0101 8161 02 0001 0201 0001 0001 8162 02 0401 ff 01 05 01 01 01 67 05 01 01 ${ID} 0000000000000000 01 01 01 63 0000000000000000 01 ${ID}`,
  '07 81 0102030405060708 02 05 00',
].map(hex);

describe('fuzzing RESTORE', () => {
  const store = openTestStore({ policy: 'noeviction' });
  const session = new Session(store);
  const seeds = [...FOREIGN, ...ownDumps()];

  /** What DUMP says of keys of all types and sizes, without its end. */
  function ownDumps(): Buffer[] {
    const words = (count: number): string[] => Array.from({ length: count }, (_, i) => `word-${i}`);
    const keys: string[][] = [
      ['SET', 's', 'hello'],
      ['SET', 's', '12345'],
      ['SET', 's', 'abc'.repeat(50)],
      ['RPUSH', 'l', 'a', '1', '-70000', 'x'.repeat(100), '9223372036854775807'],
      ['RPUSH', 'l', ...words(700)],
      ['SADD', 'i', '1', '2', '3'],
      ['SADD', 'i', '1', '70000', '5000000000'],
      ['SADD', 's', ...words(5)],
      ['SADD', 's', ...words(200)],
      ['ZADD', 'z', '1', 'a', '2.5', 'b', 'inf', 'c'],
      ['ZADD', 'z', ...words(200).flatMap((word, i) => [String(i / 3), word])],
      ['HSET', 'h', 'a', '1', 'b', 'two', 'c', 'x'.repeat(64)],
      ['HSET', 'h', ...words(1200)],
    ];
    const dumps: Buffer[] = [];
    for (const compression of [true, false]) {
      session.settings.rdbcompression = compression;
      for (const version of [10, 12]) {
        session.settings.rdbVersion = version;
        for (const [name, key, ...rest] of keys) {
          session.send('FLUSHALL');
          expect(session.send([name, key, ...rest])).not.toMatch(/^-/);
          dumps.push(bodyOf(session.send(['DUMP', key])));
        }
        for (let i = 1; i < 250; i++)
          session.send(`XADD x ${i}-${i % 2} ${i % 5 === 0 ? 'other' : 'name'} ${i} b x${i}`);
        dumps.push(bodyOf(session.send('DUMP x')));
        session.send('XGROUP CREATE x g 0');
        session.send('XGROUP CREATE x empty $');
        session.send('XREADGROUP GROUP g one COUNT 20 STREAMS x >');
        session.send('XREADGROUP GROUP g two COUNT 5 STREAMS x >');
        session.send('XTRIM x MAXLEN 30');
        dumps.push(bodyOf(session.send('DUMP x')));
        session.send('HPEXPIRE h 100000000 FIELDS 2 word-2 word-4');
        dumps.push(bodyOf(session.send('DUMP h')));
      }
    }
    return dumps;
  }

  function bodyOf(reply: string): Buffer {
    const bytes = Buffer.from(reply, 'latin1');
    return bytes.subarray(bytes.indexOf('\r\n') + 2, bytes.length - 2 - TRAILER_BYTES);
  }

  function run(body: Buffer, name: string): boolean {
    const payload = seal(body);
    const held = process.memoryUsage().arrayBuffers;
    const reply = session.send(['RESTORE', 'k', '0', payload, 'REPLACE']);
    if (process.memoryUsage().arrayBuffers - held > 64 << 20) throw new Error(`${name} took memory`);
    const shown = `${name}: ${body.toString('hex').slice(0, 2000)}`;
    if (reply !== OK && reply !== BAD_DATA) throw new Error(`${shown} replied ${reply}`);
    if (reply !== OK) return false;
    const dumped = session.send('DUMP k');
    // All its fields had run out.
    if (dumped === '$-1\r\n') return true;
    const again = session.send(['RESTORE', 'copy', '0', seal(bodyOf(dumped)), 'REPLACE']);
    if (again !== OK) throw new Error(`${shown}: its dump was refused: ${again}`);
    const type = bodyOf(dumped)[0];
    const isOrdered = type !== RdbType.HASH && type !== RdbType.SET && type !== RdbType.HASH_METADATA;
    if (isOrdered && session.send('DUMP copy') !== dumped) throw new Error(`${shown}: its dump is another one`);
    return true;
  }

  it('takes its own dumps, and those forms that it knows', () => {
    for (const [i, seed] of seeds.entries()) {
      const isModule = seed[0] === RdbType.MODULE_2;
      expect(run(seed, `seed ${i} (${seed.toString('hex').slice(0, 60)})`), `seed ${i}`).toBe(!isModule);
    }
    checkInvariants(store);
  });

  it('refuses what comes twice, what is out of order, what is empty, and lengths that do not agree', () => {
    for (const bad of [
      '02 02 01 61 01 61',
      '04 02 01 61 01 62 01 61 01 63',
      '05 02 01 61 0000000000000000 01 61 0000000000000000',
      '05 01 01 61 000000000000f87f',
      '14 0d 0d000000 0200 81 61 02 81 61 02 ff',
      '10 13 13000000 0400 81 61 02 01 01 81 61 02 02 01 ff',
      '10 0a 0a000000 0100 81 61 02 ff',
      // An intset that falls, one with equal members, one of another width.
      '0b 0c 02000000 02000000 0300 0100',
      '0b 0c 02000000 02000000 0100 0100',
      '0b 0c 03000000 02000000 0300 0100',
      // Backward lengths that are wrong, too many or too few entries, an end too early.
      '14 0d 0d000000 0200 81 61 03 81 62 02 ff',
      '14 0d 0d000000 0300 81 61 02 81 62 02 ff',
      '14 0d 0d000000 0100 81 61 02 81 62 02 ff',
      '14 0d 0c000000 0200 81 61 02 81 62 02 ff',
      '14 0d 0d000000 0200 81 61 02 bf 62 02 ff',
      '0a 14 14000000 0f000000 0300 00 01 61 04 f3 02 c0 e8 03 ff',
      '0a 14 14000000 0e000000 0300 00 01 61 03 f3 02 c0 e8 03 ff',
      '01 00',
      '02 00',
      '04 00',
      '05 00',
      '0b 08 02000000 00000000',
      '12 00',
      '12 01 02 07 07000000 0000 ff',
      '12 01 03 01 61',
      '01 81 00 00 10 00 00 00 00 00',
      '00 80 1f ff ff ff',
      '08 01',
      'ff',
      '',
    ]) {
      expect(run(hex(bad), bad), bad).toBe(false);
    }
  });

  it(`survives ${RUNS} mutations`, { timeout: 120_000 + RUNS * 50 }, () => {
    const first = Date.now() & 0x7fffffff;
    let taken = 0;
    for (let i = 0; i < RUNS; i++) {
      const seed = first + i;
      const next = random(seed);
      const bytes = mutate(seeds[next(seeds.length)], seeds[next(seeds.length)], INTERESTING, next);
      if (run(bytes, `seed ${seed}`)) taken++;
      if (i % INVARIANTS_EVERY === 0) checkInvariants(store);
    }
    checkInvariants(store);
    // Some must pass, or nothing behind the reader is tried.
    expect(taken).toBeGreaterThan(RUNS / 1000);
  });
});

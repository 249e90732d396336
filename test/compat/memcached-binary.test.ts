/**
 * Random sequences of binary requests to Debian's memcached and to our driver: the responses must be the same, byte by byte
 * but for the cas, of which only counts which are equal. SEED repeats a failure.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Opcode } from '../../src/protocol/memcached/binary-codes.js';
import { random } from '../fuzz/mutate.js';
import {
  type BinaryRequest,
  type BinaryResponse,
  binaryRequest,
  binaryResponses,
  extras,
} from '../helpers/binary-protocol.js';
import { MemcachedSession } from '../helpers/memcached-session.js';
import { RawClient } from '../helpers/raw-client.js';
import { testStore } from '../helpers/store.js';
import { Memcached, memcachedVersion } from './memcached-oracle.js';

const version = memcachedVersion();
const SEQUENCES = 30;
const LENGTH = 60;
const END_OPAQUE = 0xe0e0e0e0;
/**
 * Arithmetic has keys of its own that nothing is appended to: memcached pads a number that gets shorter with spaces or not, as it
 * happens (whether a reply still refers to the item).
 */
const NUMBERS = ['n', 'm'];
const TEXTS = ['a', 'b', 'k'.repeat(250)];
const KEYS = [...TEXTS, ...NUMBERS];
const VALUES = ['', 'x', '5', '18446744073709551615', '007', 'text', ' 12', 'v'.repeat(3000)];
const HOUR = 3600;

type CasChoice = 'none' | 'current' | 'wrong';

interface Step {
  readonly request: BinaryRequest;
  readonly cas: CasChoice;
}

/** Storage, retrieval, arithmetic, touch: whatever has a key. */
function step(next: (limit: number) => number): Step {
  const pick = <T>(list: readonly T[]): T => list[next(list.length)];
  const key = pick(KEYS);
  const cas = pick<CasChoice>(['none', 'none', 'none', 'current', 'wrong']);
  const opaque = next(1_000_000);
  switch (next(6)) {
    case 0: {
      const opcode = pick([
        Opcode.SET,
        Opcode.SET,
        Opcode.ADD,
        Opcode.REPLACE,
        Opcode.SETQ,
        Opcode.ADDQ,
        Opcode.REPLACEQ,
      ]);
      const expiry = pick([0, HOUR, 60 * 60 * 24 * 30 + 1]);
      return { request: { opcode, key, value: pick(VALUES), extras: extras(next(2 ** 31), expiry), opaque }, cas };
    }
    case 1: {
      const opcode = pick([Opcode.APPEND, Opcode.PREPEND, Opcode.APPENDQ, Opcode.PREPENDQ]);
      return { request: { opcode, key: pick(TEXTS), value: pick(VALUES), opaque }, cas };
    }
    case 2: {
      const opcode = pick([Opcode.INCREMENT, Opcode.DECREMENT, Opcode.INCREMENTQ, Opcode.DECREMENTQ]);
      const delta = pick([0n, 1n, 7n, 2n ** 33n, 2n ** 64n - 1n]);
      const expiry = pick([0, HOUR, 0xffffffff]);
      return {
        request: { opcode, key: pick(NUMBERS), extras: extras(delta, pick([0n, 10n, 2n ** 63n]), expiry), opaque },
        cas,
      };
    }
    case 3: {
      const opcode = pick([Opcode.TOUCH, Opcode.GAT, Opcode.GATQ, Opcode.GATK, Opcode.GATKQ]);
      return { request: { opcode, key, extras: extras(pick([0, HOUR])), opaque }, cas: 'none' };
    }
    case 4: {
      const opcode = pick([Opcode.DELETE, Opcode.DELETEQ, Opcode.GETQ, Opcode.GETKQ]);
      const takesCas = opcode === Opcode.DELETE || opcode === Opcode.DELETEQ;
      return { request: { opcode, key, opaque }, cas: takesCas ? cas : 'none' };
    }
    default:
      return {
        request: { opcode: pick([Opcode.GET, Opcode.GETK, Opcode.VERSION, 0x77]), key: '', opaque },
        cas: 'none',
      };
  }
}

/** Retrieval needs a key, VERSION none; an unknown opcode comes bare, since memcached loses count of one with a key. */
function complete({ request, cas }: Step, next: (limit: number) => number): Step {
  if (request.opcode !== Opcode.GET && request.opcode !== Opcode.GETK) return { request, cas };
  return { request: { ...request, key: KEYS[next(KEYS.length)] }, cas };
}

type Exchange = (bytes: Buffer) => Promise<BinaryResponse[]>;

/** Runs the steps; casses as names. The current cas of a key is asked for before a step that uses it. */
async function run(exchange: Exchange, steps: readonly Step[]): Promise<unknown[]> {
  await exchange(binaryRequest({ opcode: Opcode.FLUSH }));
  const names = new Map<string, string>();
  const results: unknown[] = [];
  for (const { request, cas } of steps) {
    let number = 0n;
    if (cas !== 'none') {
      const [now] = await exchange(binaryRequest({ opcode: Opcode.GET, key: request.key }));
      number = cas === 'current' ? now.cas : now.cas + 1_000_000n;
    }
    const responses = await exchange(binaryRequest({ ...request, cas: number }));
    for (const response of responses) {
      const version = response.cas === 0n ? 'none' : String(response.cas);
      if (!names.has(version)) names.set(version, `#${names.size}`);
      results.push({
        ...response,
        extras: response.extras.toString('hex'),
        value: response.value.replace(/(\d) +$/, '$1'),
        cas: names.get(version),
      });
    }
  }
  return results;
}

describe.skipIf(version === null)(`binary requests, the same responses as memcached ${version}`, () => {
  let memcached: Memcached;
  let client: RawClient;

  beforeAll(async () => {
    memcached = await Memcached.start();
    client = await RawClient.connect(memcached.port);
  });

  afterAll(() => {
    client?.destroy();
    memcached?.stop();
  });

  const end = binaryRequest({ opcode: Opcode.NOOP, opaque: END_OPAQUE });

  const theirs: Exchange = async (bytes) => {
    client.write(Buffer.concat([bytes, end]));
    await client.until(
      () => client.text.endsWith('\0'.repeat(8)) && client.text.includes('\xe0\xe0\xe0\xe0'),
      'a noop',
    );
    const responses = binaryResponses(await client.read(client.receivedBytes));
    expect(responses.pop()!.opaque).toBe(END_OPAQUE);
    return responses;
  };

  it(`${SEQUENCES} random sequences of ${LENGTH}`, async () => {
    const base = Number(process.env.SEED ?? (Math.random() * 2 ** 31) | 0);
    for (let i = 0; i < SEQUENCES; i++) {
      const next = random(base + i * 7919);
      const steps = Array.from({ length: LENGTH }, () => complete(step(next), next));
      const session = new MemcachedSession(testStore());
      const ours: Exchange = async (bytes) => binaryResponses(Buffer.from(session.send(bytes), 'latin1'));
      const expected = await run(theirs, steps);
      expect(await run(ours, steps), `SEED=${base} sequence ${i}`).toEqual(expected);
    }
  }, 60_000);
});

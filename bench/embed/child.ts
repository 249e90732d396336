/**
 * One process of the embedded comparison: opens a store, fills it unless it attaches to one already filled, times gets by
 * string key in random order, prints one JSON line, and (role `hold`) stays until it is told to end.
 *
 * Keys, the same for every store. `built`: joined from a prefix and an identifier for each get, as programs do with what a
 * request brings; joining and hashing count. `same`: string objects made before the clock starts, whose hashes the engine
 * has at hand after the first use: the best case for a JavaScript Map.
 */
import { openStore, type StoreOrder } from './stores.js';

export interface ChildOrder extends StoreOrder {
  readonly role: 'measure' | 'hold' | 'attach';
  readonly keys: 'built' | 'same';
  readonly gets: number;
}

export interface ChildAnswer {
  readonly nanosecondsPerGet: number;
}

const SLICES = 5;

const KEY_PREFIX = 'key:00000';

function makeIdentifiers(count: number): string[] {
  return Array.from({ length: count }, (_, index) => String(index).padStart(7, '0'));
}

/** The joined keys as flat strings. */
function makeKeys(identifiers: readonly string[]): string[] {
  return identifiers.map((identifier) => Buffer.from(KEY_PREFIX + identifier).toString('latin1'));
}

function makeOrder(count: number, keyCount: number): Int32Array {
  const order = new Int32Array(count);
  let state = 0x2545f491;
  for (let i = 0; i < count; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    order[i] = (state >>> 0) % keyCount;
  }
  return order;
}

async function main(order: ChildOrder): Promise<void> {
  const store = await openStore(order);
  const identifiers = makeIdentifiers(order.keyCount);
  const keys = makeKeys(identifiers);
  if (order.role !== 'attach') {
    for (let index = 0; index < keys.length; index++) {
      // By way of a buffer: a flat string that shares nothing with its neighbours.
      const value = String.fromCharCode(33 + (index % 90)).repeat(order.valueBytes);
      store.set(keys[index], Buffer.from(value, 'latin1').toString('latin1'));
    }
  }
  const sequence = makeOrder(order.gets, order.keyCount);
  const readSame = (from: number, to: number): number => {
    let bytes = 0;
    for (let i = from; i < to; i++) {
      const value = store.get(keys[sequence[i]]);
      if (value !== undefined) bytes += value.length;
    }
    return bytes;
  };
  const readBuilt = (from: number, to: number): number => {
    let bytes = 0;
    for (let i = from; i < to; i++) {
      const value = store.get(KEY_PREFIX + identifiers[sequence[i]]);
      if (value !== undefined) bytes += value.length;
    }
    return bytes;
  };
  const readAll = order.keys === 'built' ? readBuilt : readSame;
  const sliceCount = Math.floor(order.gets / SLICES);
  readAll(0, sliceCount);
  const times: number[] = [];
  for (let slice = 0; slice < SLICES; slice++) {
    const begin = process.hrtime.bigint();
    const bytes = readAll(slice * sliceCount, (slice + 1) * sliceCount);
    times.push(Number(process.hrtime.bigint() - begin) / sliceCount);
    if (bytes !== sliceCount * order.valueBytes) {
      throw new Error(`${order.store}: ${bytes} bytes read, ${sliceCount * order.valueBytes} expected`);
    }
  }
  times.sort((a, b) => a - b);
  const answer: ChildAnswer = { nanosecondsPerGet: times[SLICES >> 1] };
  console.log(JSON.stringify(answer));
  if (order.role === 'hold') {
    const keepAlive = setInterval(() => {}, 1000);
    await new Promise<void>((resolve) => process.once('SIGTERM', resolve));
    clearInterval(keepAlive);
  }
  await store.close();
}

await main(JSON.parse(process.argv[2]) as ChildOrder);

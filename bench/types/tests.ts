/**
 * What the `types` bench runs: for each test the requests that fill its key beforehand, and the unit that is measured.
 *
 * `elements` is the number of fields, members or entries of a large key.
 */
export interface Filling {
  readonly request: readonly string[];
  /** `units`: as many as one run takes away. */
  readonly times: 'elements' | 'units' | number;
}

export interface TypeTest {
  readonly name: string;
  /** Once, before the first run. */
  readonly fill: readonly Filling[];
  /** Before each run, which takes it away. */
  readonly refill?: Filling;
  readonly unit: readonly (readonly string[])[];
  /** Range of `{random}`: of the elements, or so many. */
  readonly range: 'elements' | number;
  /** Units are this many times as expensive as a simple command: so many fewer are run. */
  readonly weight: number;
  readonly subscribers?: number;
}

const VALUE = 'v'.repeat(100);
const KEYS = 100_000;

function test(
  name: string,
  unit: readonly string[],
  range: TypeTest['range'],
  fill: readonly Filling[] = [],
  weight = 1,
): TypeTest {
  return { name, unit: [unit], range, fill, weight };
}

function words(text: string): string[] {
  return text.split(' ');
}

const script = "redis.call('set', KEYS[1], ARGV[1]) redis.call('incr', KEYS[2]) return redis.call('get', KEYS[1])";
const listOf600: readonly Filling[] = [
  { request: words(`RPUSH range ${'element{next} '.repeat(100).trim()}`), times: 6 },
];
const twentyFields = Array.from({ length: 20 }, (_, field) => [`field:${field}`, 'value of a field']).flat();
const smallHashes: readonly Filling[] = [{ request: ['HSET', 'small:{next}', ...twentyFields], times: 1000 }];
const ranked: readonly Filling[] = [{ request: words('ZADD ranked {random} member:{next}'), times: 'elements' }];

export const typeTests: readonly TypeTest[] = [
  test('incr', words('INCR counter:{random}'), KEYS),
  test('mset', ['MSET', ...Array.from({ length: 10 }, () => ['many:{random}', VALUE]).flat()], KEYS, [], 8),
  test('lpush', ['LPUSH', 'list', VALUE], 1),
  { ...test('rpop', ['RPOP', 'popped'], 1), refill: { request: ['LPUSH', 'popped', VALUE], times: 'units' } },
  ...[100, 300, 500, 600].map((count) =>
    test(`lrange.${count}`, ['LRANGE', 'range', '0', String(count - 1)], 1, listOf600, count / 8),
  ),
  test('sadd', words('SADD set member:{random}'), 'elements'),
  test('sismember', words('SISMEMBER members member:{random}'), 'elements', [
    { request: words('SADD members member:{next}'), times: 'elements' },
  ]),
  test('hset.20', words('HSET small:{random} field:7 another'), 1000, smallHashes),
  test('hget.20', words('HGET small:{random} field:13'), 1000, smallHashes),
  test('hset.large', words('HSET large field:{random} value'), 'elements'),
  test('hget.large', words('HGET fields field:{random}'), 'elements', [
    { request: words('HSET fields field:{next} value'), times: 'elements' },
  ]),
  test('zadd', words('ZADD sorted {random} member:{random}'), 'elements'),
  test('zrange', words('ZRANGE ranked {random} +inf BYSCORE LIMIT 0 10'), 'elements', ranked, 2),
  test('zrank', words('ZRANK ranked member:{random}'), 'elements', ranked),
  test('xadd', words('XADD stream * field value'), 1),
  {
    ...test('xreadgroup', words('XREADGROUP GROUP group consumer COUNT 1 NOACK STREAMS read >'), 1, [
      { request: words('XGROUP CREATE read group 0 MKSTREAM'), times: 1 },
    ]),
    refill: { request: words('XADD read * field value'), times: 'units' },
  },
  test('eval', ['EVAL', script, '2', 'script:{random}', 'calls', VALUE], KEYS, [], 4),
  { ...test('publish.100', words('PUBLISH channel message'), 1, [], 40), subscribers: 100 },
  {
    name: 'multi.10',
    unit: [['MULTI'], ...Array.from({ length: 10 }, () => words('INCR counted:{random}')), ['EXEC']],
    range: KEYS,
    fill: [],
    weight: 8,
  },
];

/** Keys of so many elements whose bytes an element are compared; the last word of the request is of about ten bytes. */
export const largeKeys: readonly { readonly key: string; readonly request: readonly string[] }[] = [
  { key: 'm:list', request: words('RPUSH m:list element:{next}') },
  { key: 'm:set', request: words('SADD m:set member:{next}') },
  { key: 'm:hash', request: words('HSET m:hash field:{next} value:{next}') },
  { key: 'm:sorted', request: words('ZADD m:sorted {random} member:{next}') },
  { key: 'm:stream', request: words('XADD m:stream * field value:{next}') },
];

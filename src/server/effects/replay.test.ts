/**
 * Random histories of commands, written down, with checkpoints that are made while they go on: what is read back is what there was, value,
 * expiry and version.
 */
import { expect, it } from 'vitest';
import { contentOf, LoggedStore, replayFiles } from '../../../test/helpers/logged-store.js';
import { DatabasesChanged } from '../../rdb/snapshot.js';
import { checkInvariants } from '../../store/invariants.js';

const HISTORIES = Number(process.env.ENTRESOL_HISTORIES ?? 6);
const COMMANDS = 400;
const DATABASES = 2;
const KEYS = 6;
const ALL_KEYS = Array.from({ length: KEYS }, (_, i) => `key:${i}`);

let seed = 0;
function random(limit: number): number {
  seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
  return Math.floor((seed / 0x80000000) * limit);
}
const pick = <T>(...from: readonly T[]): T => from[random(from.length)];
const key = (): string => `key:${random(KEYS)}`;
const word = (): string => pick('a', 'b', 'c', '1', '-7', 'x'.repeat(random(400)));
const number = (): string => String(random(40) - 10);
const id = (): string => String(random(30));
const many = (make: () => string): string[] => Array.from({ length: 1 + random(5) }, make);

const COMMAND: readonly (() => readonly string[])[] = [
  () => ['SET', key(), word(), ...pick([], [], ['PX', pick('4', '900000')], ['NX'], ['KEEPTTL'])],
  () => ['APPEND', key(), word()],
  () => ['SETRANGE', key(), String(random(30)), word()],
  () => ['INCRBY', key(), number()],
  () => ['INCRBYFLOAT', key(), '1.5'],
  () => ['SETBIT', key(), String(random(200)), pick('0', '1')],
  () => ['BITFIELD', key(), 'INCRBY', 'u5', String(random(40)), number()],
  () => ['BITOP', pick('AND', 'OR', 'XOR'), key(), key(), key()],
  () => ['PFADD', key(), ...many(word)],
  () => ['GETDEL', key()],
  () => ['GETEX', key(), ...pick(['PERSIST'], ['PX', '5'], ['EX', '1000'])],
  () => ['MSET', key(), word(), key(), word()],
  () => [pick('LPUSH', 'RPUSH', 'LPUSHX', 'RPUSHX'), key(), ...many(word)],
  () => [pick('LPOP', 'RPOP'), key(), ...pick([], [id()])],
  () => ['LINSERT', key(), pick('BEFORE', 'AFTER'), word(), word()],
  () => ['LREM', key(), number(), word()],
  () => ['LSET', key(), number(), word()],
  () => ['LTRIM', key(), id(), number()],
  () => ['LMOVE', key(), key(), pick('LEFT', 'RIGHT'), pick('LEFT', 'RIGHT')],
  () => ['HSET', key(), word(), word(), 'f', number()],
  () => ['HDEL', key(), ...many(word)],
  () => ['HINCRBY', key(), 'f', number()],
  () => ['HPEXPIRE', key(), pick('3', '900000'), 'FIELDS', '1', pick('f', 'a')],
  () => ['SADD', key(), ...many(word)],
  () => ['SREM', key(), ...many(word)],
  () => ['SPOP', key(), ...pick([], ['2'])],
  () => ['SMOVE', key(), key(), word()],
  () => [pick('SUNIONSTORE', 'SINTERSTORE', 'SDIFFSTORE'), key(), key(), key()],
  () => ['ZADD', key(), ...pick([], ['GT'], ['NX'], ['INCR']), number(), word()],
  () => ['ZADD', key(), number(), 'm1', number(), 'm2', number(), 'm3'],
  () => ['ZREM', key(), ...many(word)],
  () => [pick('ZPOPMIN', 'ZPOPMAX'), key(), id()],
  () => ['ZREMRANGEBYRANK', key(), '0', number()],
  () => ['ZUNIONSTORE', key(), '2', key(), key()],
  () => ['XADD', key(), ...pick([], ['MAXLEN', '5'], ['MAXLEN', '~', '5']), '*', 'f', word()],
  () => ['XTRIM', key(), 'MAXLEN', id()],
  () => ['XGROUP', 'CREATE', key(), 'g', pick('0', '$'), 'MKSTREAM'],
  () => ['XREADGROUP', 'GROUP', 'g', pick('c1', 'c2'), 'COUNT', '3', 'STREAMS', key(), '>'],
  () => ['XAUTOCLAIM', key(), 'g', 'c1', '0', '0'],
  () => ['GEOADD', key(), '13.4', '52.5', word()],
  () => ['DEL', key(), key()],
  () => ['DEL', key()],
  () => ['RENAME', key(), key()],
  () => ['COPY', key(), key(), ...pick([], ['DB', '1'], ['REPLACE'])],
  () => ['MOVE', key(), '1'],
  () => ['SORT', key(), 'ALPHA', 'STORE', key()],
  () => ['PEXPIRE', key(), pick('4', '900000', '-1')],
  () => ['PERSIST', key()],
  () => ['GET', key()],
  () => ['SELECT', String(random(DATABASES))],
  () => ['RPUSH', key(), ...Array.from({ length: 300 }, (_, i) => `element ${i}`)],
  () => ['HSET', key(), ...Array.from({ length: 300 }, (_, i) => `${i}`)],
  () => ['ZADD', key(), ...Array.from({ length: 300 }, (_, i) => `${i}`)],
];
const RARE: readonly (() => readonly string[])[] = [() => ['FLUSHDB'], () => ['FLUSHALL'], () => ['SWAPDB', '0', '1']];

/** Something happens, and is written down, or not yet. */
function act({ session, keyspace, writer }: LoggedStore): void {
  const request = random(60) === 0 ? pick(...RARE)() : pick(...COMMAND)();
  if (random(12) !== 0) session.send(request);
  else {
    session.send('MULTI');
    for (const queued of [request, pick(...COMMAND)(), pick(...COMMAND)()]) session.send(queued);
    session.send('EXEC');
  }
  if (random(30) === 0) {
    keyspace.enterBatch();
    keyspace.background(200);
    keyspace.leaveBatch();
  }
  if (random(2) === 0) writer.turn();
}

/** While the history goes on. */
function checkpoint(source: LoggedStore): void {
  const { writer } = source;
  writer.beginCheckpoint();
  let bytes = 0;
  try {
    source.writeDraft(() => {
      if (random(3) === 0) act(source);
    });
  } catch (error) {
    if (!(error instanceof DatabasesChanged)) throw error;
    bytes = -1;
  }
  writer.endCheckpoint(bytes);
}

it('has after a replay what there was', { timeout: 60_000 + HISTORIES * 3000 }, async () => {
  for (let history = 0; history < HISTORIES; history++) {
    seed = Number(process.env.ENTRESOL_SEED ?? 100 + history);
    const what = `seed ${process.env.ENTRESOL_SEED ?? 100 + history}`;
    const source = new LoggedStore(DATABASES);
    for (let i = 0; i < COMMANDS; i++) {
      act(source);
      if (random(150) === 0) checkpoint(source);
    }
    // What was to expire within milliseconds has.
    await new Promise((resolve) => setTimeout(resolve, 10));
    source.writer.close();
    const { keyspace, cutAt } = await replayFiles(source.folder);
    expect(cutAt, what).toBe(-1);
    expect(source.isInDoubt).toBe(false);
    expect(contentOf(keyspace, ALL_KEYS, DATABASES), what).toEqual(contentOf(source.keyspace, ALL_KEYS, DATABASES));
    checkInvariants(keyspace);
  }
});

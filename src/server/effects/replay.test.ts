/**
 * Random histories of commands, written down, with checkpoints that are made while they go on: what is read back is what there was, value,
 * expiry and version.
 */
import { closeSync, mkdirSync, mkdtempSync, openSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { Session } from '../../../test/helpers/session.js';
import { openTestStore } from '../../../test/helpers/store.js';
import { defaultSettings } from '../../config/index.js';
import { Bytes } from '../../layout/bytes.js';
import { Super } from '../../layout/superblock.js';
import { DatabasesChanged, Snapshot } from '../../rdb/snapshot.js';
import { encodeEffects } from '../../rdb/value-encoder.js';
import { checkInvariants } from '../../store/invariants.js';
import type { Keyspace } from '../../store/keyspace.js';
import { CheckpointTarget } from './checkpoint.js';
import { checkpointPath, draftPath, listFiles, removeBefore, segmentPath } from './log-files.js';
import { LogReader } from './log-reader.js';
import { LogWriter } from './log-writer.js';
import { Replay } from './replay.js';

const HISTORIES = Number(process.env.ENTRESOL_HISTORIES ?? 6);
const COMMANDS = 400;
const DATABASES = 2;
const KEYS = 6;

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

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** A store whose changes are written down, and what writes them. */
class Source {
  readonly folder: string;
  readonly keyspace: Keyspace;
  readonly session: Session;
  readonly writer: LogWriter;
  hasChangedDatabases = false;

  constructor() {
    this.folder = join(mkdtempSync(join(tmpdir(), 'entresol-test-')), 'effects');
    folders.push(join(this.folder, '..'));
    mkdirSync(this.folder);
    this.keyspace = openTestStore({ durability: 'durable' });
    encodeEffects(this.keyspace);
    this.keyspace.memory.ctl[Super.EFFECTS_WRITER_WORD] = this.keyspace.memory.self + 1;
    this.session = new Session(this.keyspace);
    this.writer = new LogWriter(this.keyspace, this.folder, 1, 0, {
      log: () => undefined,
      checkpoint: () => undefined,
    });
    this.writer.percentage = 0;
  }

  act(): void {
    const request = random(60) === 0 ? pick(...RARE)() : pick(...COMMAND)();
    if (random(12) !== 0) this.session.send(request);
    else {
      this.session.send('MULTI');
      for (const queued of [request, pick(...COMMAND)(), pick(...COMMAND)()]) this.session.send(queued);
      this.session.send('EXEC');
    }
    if (random(30) === 0) {
      this.keyspace.enterBatch();
      this.keyspace.background(200);
      this.keyspace.leaveBatch();
    }
    if (random(2) === 0) this.writer.turn();
  }

  /** While the history goes on. */
  checkpoint(): void {
    this.writer.beginCheckpoint();
    const { number } = this.writer;
    const fd = openSync(draftPath(this.folder, number), 'w');
    const target = new CheckpointTarget(fd, number);
    const drain = target.drain.bind(target);
    target.drain = () => {
      if (random(3) === 0) this.act();
      drain();
    };
    try {
      new Snapshot(this.keyspace, target, () => false).write(DATABASES);
      target.end(this.keyspace.memory.ctl[Super.EFFECTS_NUMBER_WORD]);
      renameSync(draftPath(this.folder, number), checkpointPath(this.folder, number));
      removeBefore(this.folder, number);
    } catch (error) {
      if (!(error instanceof DatabasesChanged)) throw error;
    } finally {
      closeSync(fd);
    }
    this.writer.endCheckpoint(0);
  }
}

function replay(folder: string): { keyspace: Keyspace; replayed: Replay } {
  const keyspace = openTestStore({ durability: 'durable' });
  keyspace.feed.effects = null;
  const replayed = new Replay(keyspace, defaultSettings());
  const reader = new LogReader(replayed);
  const { checkpoint, segments } = listFiles(folder);
  keyspace.enterBatch();
  if (checkpoint > 0) {
    replayed.strictFrom = reader.read(checkpointPath(folder, checkpoint), checkpoint, true).endCut;
    expect(replayed.strictFrom).not.toBeNull();
  }
  for (const number of segments) {
    const { cutAt } = reader.read(segmentPath(folder, number), number, number === segments.at(-1));
    expect(cutAt).toBe(-1);
  }
  replayed.end();
  keyspace.leaveBatch();
  return { keyspace, replayed };
}

/** What a store holds: digest, expiry and version of each key. */
function contentOf(keyspace: Keyspace): Record<string, string> {
  const session = new Session(keyspace);
  const content: Record<string, string> = {};
  for (let db = 0; db < DATABASES; db++) {
    session.send(`SELECT ${db}`);
    for (let i = 0; i < KEYS; i++) {
      const name = `key:${i}`;
      const type = session.send(['TYPE', name]);
      if (type === '+none\r\n') continue;
      const bytes = Bytes.from(name);
      const hash = keyspace.hash(db, bytes, 0, bytes.length);
      keyspace.lock(hash);
      const version = keyspace.find(hash, db, bytes, 0, bytes.length) ? keyspace.version : -1;
      keyspace.unlock(hash);
      const digest = session.send(['DEBUG', 'DIGEST-VALUE', name]);
      content[`${db} ${name}`] = `${type} ${digest} ${session.send(['PEXPIRETIME', name])} ${version}`;
    }
  }
  return content;
}

it('has after a replay what there was', { timeout: 60_000 + HISTORIES * 3000 }, async () => {
  for (let history = 0; history < HISTORIES; history++) {
    seed = Number(process.env.ENTRESOL_SEED ?? 100 + history);
    const what = `seed ${process.env.ENTRESOL_SEED ?? 100 + history}`;
    const source = new Source();
    for (let i = 0; i < COMMANDS; i++) {
      source.act();
      if (random(150) === 0) source.checkpoint();
    }
    // What was to expire within milliseconds has.
    await new Promise((resolve) => setTimeout(resolve, 10));
    source.writer.close();
    const { keyspace, replayed } = replay(source.folder);
    expect(replayed.failure, what).toBe('');
    expect(source.keyspace.memory.ctl[Super.EFFECTS_DOUBT_WORD]).toBe(0);
    expect(contentOf(keyspace), what).toEqual(contentOf(source.keyspace));
    checkInvariants(keyspace);
  }
});

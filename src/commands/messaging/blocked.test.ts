import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openParticipants, type Participant } from '../../../test/helpers/participants.js';
import { Bytes } from '../../layout/bytes.js';
import { ItemType } from '../../layout/item.js';
import type { Client } from '../clients/client.js';
import type { Context } from '../context.js';
import { families } from '../families.js';
import { Category, type CommandSpec, Flag, KeyUse, keysFrom } from '../spec.js';
import { CommandTable } from '../table.js';
import { WaitReply } from './blocked.js';
import { timeoutSecondsArg } from './wait.js';

/** BPOP key ... timeout: takes the first of its keys that exists; strings stand for what types of their own will block on. */
function pop(context: Context): void {
  const last = context.argc - 1;
  const timeoutMs = timeoutSecondsArg(context, last);
  if (timeoutMs < 0) return;
  for (let k = 0; k < context.keyCount; k++) {
    if (!context.mayUse(k) || !context.find(context.keyHashes[k], k + 1)) continue;
    context.reply.array(2);
    context.reply.bulk(context.input, context.argOffset(k + 1), context.argLength(k + 1));
    context.replyValue();
    context.find(context.keyHashes[k], k + 1);
    context.keyspace.remove();
    return;
  }
  context.block({ type: ItemType.STRING, timeoutMs, onTimeout: WaitReply.NIL_ARRAY });
}

/** BMOVE source destination: the same into another key. */
function move(context: Context): void {
  const { keyspace } = context;
  if (!context.find(context.keyHashes[0], 1)) {
    context.block({ type: ItemType.STRING, timeoutMs: 0, onTimeout: WaitReply.NIL, keys: [0], alone: true });
    return;
  }
  const value = Buffer.from(keyspace.value.u8.slice(keyspace.valueOffset, keyspace.valueOffset + keyspace.valueLength));
  keyspace.remove();
  context.stage(context.keyHashes[1], 2, value.length);
  keyspace.staged.u8.set(value, keyspace.stagedOffset);
  if (context.commitString(0, 0)) context.reply.bulkArray(value);
}

const blocking: readonly CommandSpec[] = [
  { name: 'bpop', arity: -3, keys: [keysFrom(1, KeyUse.RW | KeyUse.DELETE, -2)], run: pop },
  { name: 'bmove', arity: 3, keys: [keysFrom(1, KeyUse.RW | KeyUse.DELETE)], run: move },
].map((spec) => ({
  ...spec,
  flags: Flag.WRITE | Flag.BLOCKING,
  categories: Category.NONE,
  since: '1.0.0',
  group: 'generic',
  summary: '',
  complexity: '',
}));

let one: Participant;
let two: Participant;
let waiter: Client;
let other: Client;

beforeAll(() => {
  [one, two] = openParticipants(2, new CommandTable([...families, blocking]));
});

beforeEach(() => {
  two.send(two.connect(), 'FLUSHALL');
  one.turn();
  two.turn();
  waiter = one.connect();
  other = one.connect();
});

describe('a blocked client', () => {
  it('is served by a command of its own worker, before the next one', () => {
    expect(one.send(waiter, 'BPOP k 0')).toBe('');
    expect(waiter.suspended).toBe(true);
    expect(one.session.driver.describe(waiter).flags).toBe('b');
    one.session.client = other;
    expect(one.session.raw('SET k v\r\nGET k\r\n')).toBe('+OK\r\n$-1\r\n');
    expect(one.got(waiter)).toBe('*2\r\n$1\r\nk\r\n$1\r\nv\r\n');
    expect(waiter.suspended).toBe(false);
    expect(waiter.blocked).toBe(null);
  });

  it('is served by another worker, which keeps nothing for itself', () => {
    one.send(waiter, 'BPOP a b 0');
    const far = two.connect();
    expect(two.send(far, 'SET b v')).toBe('+OK\r\n');
    expect(two.send(far, 'GET b')).toBe('$-1\r\n');
    expect(one.got(waiter)).toBe('');
    one.turn();
    expect(one.got(waiter)).toBe('*2\r\n$1\r\nb\r\n$1\r\nv\r\n');
    // Its other key is nobody's any more.
    two.send(far, 'SET a v');
    expect(two.send(far, 'GET a')).toBe('$1\r\nv\r\n');
  });

  it('is served in the order of waiting, over all workers', () => {
    const far = two.connect();
    one.send(waiter, 'BPOP k 0');
    two.send(far, 'BPOP k 0');
    one.send(other, 'BPOP k 0');
    const pusher = two.connect();
    for (const value of ['1', '2', '3', '4']) two.send(pusher, `SET k ${value}`);
    one.turn();
    expect(one.got(waiter)).toContain('$1\r\n1\r\n');
    expect(two.got(far)).toContain('$1\r\n2\r\n');
    expect(one.got(other)).toContain('$1\r\n3\r\n');
    expect(two.send(pusher, 'GET k')).toBe('$1\r\n4\r\n');
  });

  it('gets what a transaction leaves, not what it shows in between', () => {
    one.send(waiter, 'BPOP k 0');
    one.session.client = other;
    expect(one.session.raw('MULTI\r\nSET k 1\r\nDEL k\r\nEXEC\r\n')).toContain(':1\r\n');
    expect(one.got(waiter)).toBe('');
    expect(one.session.raw('MULTI\r\nSET k 1\r\nSET k 2\r\nGET k\r\nEXEC\r\n')).toContain('$1\r\n2\r\n');
    expect(one.got(waiter)).toContain('$1\r\n2\r\n');
  });

  it('is served by what renames, copies or moves into its database', () => {
    for (const request of ['RENAME x k', 'COPY x k']) {
      one.send(other, 'SET x v');
      one.send(waiter, 'BPOP k 0');
      one.send(other, request);
      expect(one.got(waiter)).toContain('$1\r\nv\r\n');
    }
    one.send(other, 'SELECT 1');
    one.send(other, 'SET k w');
    one.send(waiter, 'BPOP k 0');
    one.send(other, 'SET k ww');
    expect(one.got(waiter)).toBe('');
    one.send(other, 'MOVE k 0');
    expect(one.got(waiter)).toContain('$2\r\nww\r\n');
  });

  it('keeps waiting when what it waits for has been taken', () => {
    one.send(waiter, 'BPOP k 0');
    one.session.client = other;
    one.session.raw('MULTI\r\nSET k 1\r\nGETDEL k\r\nEXEC\r\n');
    expect(one.got(waiter)).toBe('');
    two.send(two.connect(), 'SET k v');
    one.turn();
    expect(one.got(waiter)).toContain('$1\r\nv\r\n');
  });

  it('is served at once, too, when that changes another key', () => {
    const far = two.connect();
    for (const request of ['SET k v', 'MSET x 1 k v', 'RENAME from k']) {
      two.send(far, 'SET from v');
      one.send(waiter, 'BMOVE k to');
      two.send(far, request);
      expect(two.send(far, 'MGET k to')).toBe('*2\r\n$-1\r\n$1\r\nv\r\n');
      two.send(far, 'DEL to');
      one.turn();
      expect(one.got(waiter)).toBe('$1\r\nv\r\n');
    }
    one.send(waiter, 'BMOVE k to');
    two.session.client = far;
    two.session.raw('MULTI\r\nSET k w\r\nEXEC\r\n');
    expect(two.send(far, 'MGET k to')).toBe('*2\r\n$-1\r\n$1\r\nw\r\n');
    one.turn();
    expect(one.got(waiter)).toBe('$1\r\nw\r\n');
  });

  it('is served by its own worker when a change outside any command makes its key ready', () => {
    one.send(waiter, 'BMOVE k to');
    const { keyspace } = two;
    const key = Bytes.from('k');
    keyspace.enterBatch();
    const hash = keyspace.hash(0, key, 0, 1);
    keyspace.stage(hash, 0, key, 0, 1, 1);
    keyspace.staged.u8[keyspace.stagedOffset] = 0x76;
    keyspace.lock(hash);
    keyspace.commit(ItemType.STRING, 0, 0, 0);
    keyspace.unlock(hash);
    keyspace.leaveBatch();
    one.turn();
    expect(one.got(waiter)).toBe('$1\r\nv\r\n');
    expect(one.send(other, 'MGET k to')).toBe('*2\r\n$-1\r\n$1\r\nv\r\n');
  });

  it('passes things on through chains of waiters', () => {
    const last = one.connect();
    one.send(waiter, 'BMOVE k to');
    one.send(other, 'BMOVE to then');
    one.send(last, 'BPOP then 0');
    one.send(one.connect(), 'SET k v');
    one.turn();
    expect([waiter, other].map((client) => one.got(client))).toEqual(['$1\r\nv\r\n', '$1\r\nv\r\n']);
    expect(one.got(last)).toBe('*2\r\n$4\r\nthen\r\n$1\r\nv\r\n');
  });

  it('gets a value that is longer than a ring', () => {
    one.send(waiter, 'BPOP k 0');
    const value = 'x'.repeat(3_000_000);
    const pusher = two.connect();
    expect(two.send(pusher, ['SET', 'k', value])).toBe('+OK\r\n');
    for (let i = 0; i < 10; i++) {
      one.turn();
      two.turn();
    }
    expect(one.got(waiter)).toBe(`*2\r\n$1\r\nk\r\n$3000000\r\n${value}\r\n`);
  });
});

describe('the end of a wait', () => {
  it('comes with the time-out', () => {
    one.send(waiter, 'BPOP k 0.05');
    one.send(other, 'BPOP k 0.02');
    one.turn(19);
    expect(one.got(other)).toBe('');
    one.turn(2);
    expect(one.got(other)).toBe('*-1\r\n');
    one.turn(30);
    expect(one.got(waiter)).toBe('*-1\r\n');
    // Neither takes what comes now.
    two.send(two.connect(), 'SET k v');
    expect(one.send(other, 'GET k')).toBe('$1\r\nv\r\n');
  });

  it('is at once inside MULTI', () => {
    one.session.client = waiter;
    expect(one.session.raw('MULTI\r\nBPOP k 0\r\nEXEC\r\n')).toBe('+OK\r\n+QUEUED\r\n*1\r\n*-1\r\n');
  });

  it('comes with the connection', () => {
    one.send(waiter, 'BPOP k 0');
    one.close(waiter);
    two.send(two.connect(), 'SET k v');
    expect(one.send(other, 'GET k')).toBe('$1\r\nv\r\n');
  });

  it('is asked for', () => {
    one.send(waiter, 'BPOP k 0');
    expect(one.session.executor.hub.unblock(waiter, true)).toBe(true);
    expect(one.got(waiter)).toBe('-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n');
    expect(one.session.executor.hub.unblock(waiter, true)).toBe(false);
    one.send(waiter, 'BPOP k 0');
    one.session.executor.hub.unblock(waiter, false);
    expect(one.got(waiter)).toBe('*-1\r\n');
  });

  it('refuses time-outs that are none', () => {
    expect(one.send(waiter, 'BPOP k x')).toBe('-ERR timeout is not a float or out of range\r\n');
    expect(one.send(waiter, 'BPOP k -1')).toBe('-ERR timeout is negative\r\n');
    expect(one.send(waiter, 'BPOP k inf')).toBe('-ERR timeout is out of range\r\n');
  });
});

describe('WAIT', () => {
  it('answers 0: at once for no replicas, else with the time-out', () => {
    expect(one.send(waiter, 'WAIT 0 0')).toBe(':0\r\n');
    expect(one.send(waiter, 'WAIT 1 100')).toBe('');
    one.turn(99);
    expect(one.got(waiter)).toBe('');
    one.turn(1);
    expect(one.got(waiter)).toBe(':0\r\n');
  });
});

/** Blocking list commands over two workers; errors and replies without a wait are compared with redis-server in test/compat. */
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openParticipants, type Participant } from '../../../test/helpers/participants.js';
import type { Client } from '../clients/client.js';
import { createCommandTable } from '../families.js';

let one: Participant;
let two: Participant;
let waiter: Client;
let other: Client;

beforeAll(() => {
  [one, two] = openParticipants(2, createCommandTable());
});

beforeEach(() => {
  two.send(two.connect(), 'FLUSHALL');
  one.turn();
  two.turn();
  waiter = one.connect();
  other = one.connect();
});

describe('a client that waits for a list', () => {
  it('gets what is pushed, from its own worker or another', () => {
    expect(one.send(waiter, 'BLPOP a b 0')).toBe('');
    expect(one.send(other, 'RPUSH b 1 2')).toBe(':2\r\n');
    expect(one.got(waiter)).toBe('*2\r\n$1\r\nb\r\n$1\r\n1\r\n');
    expect(one.send(waiter, 'BRPOP c 0')).toBe('');
    const far = two.connect();
    expect(two.send(far, 'RPUSH c 1 2')).toBe(':2\r\n');
    one.turn();
    expect(one.got(waiter)).toBe('*2\r\n$1\r\nc\r\n$1\r\n2\r\n');
    expect(two.send(far, 'LRANGE c 0 -1')).toBe('*1\r\n$1\r\n1\r\n');
  });

  it('is served in the order of waiting, one element each', () => {
    const third = one.connect();
    one.send(waiter, 'BLPOP k 0');
    one.send(third, 'BLMPOP 0 1 k LEFT COUNT 2');
    one.send(other, 'RPUSH k 1 2 3 4');
    expect(one.got(waiter)).toBe('*2\r\n$1\r\nk\r\n$1\r\n1\r\n');
    expect(one.got(third)).toBe('*2\r\n$1\r\nk\r\n*2\r\n$1\r\n2\r\n$1\r\n3\r\n');
    expect(one.send(other, 'LRANGE k 0 -1')).toBe('*1\r\n$1\r\n4\r\n');
  });

  it('gets nothing of a key that has become something else', () => {
    one.send(waiter, 'BLPOP k 0');
    one.send(other, 'SADD k 1');
    expect(one.got(waiter)).toBe('');
    one.send(other, 'DEL k');
    one.send(other, 'LPUSH k v');
    expect(one.got(waiter)).toBe('*2\r\n$1\r\nk\r\n$1\r\nv\r\n');
  });

  it('has its element moved on, from worker to worker', () => {
    for (const request of ['BLMOVE k to RIGHT LEFT 0', 'BRPOPLPUSH k to 0']) {
      expect(one.send(waiter, request)).toBe('');
      const far = two.connect();
      two.send(far, 'RPUSH k v');
      one.turn();
      expect(one.got(waiter)).toBe('$1\r\nv\r\n');
      expect(two.send(far, 'EXISTS k')).toBe(':0\r\n');
      expect(two.send(far, 'LPOP to')).toBe('$1\r\nv\r\n');
    }
  });

  it('serves the next in a chain of moves', () => {
    const third = one.connect();
    one.send(waiter, 'BLMOVE a b LEFT LEFT 0');
    one.send(third, 'BLPOP b 0');
    one.send(other, 'LPUSH a v');
    one.turn();
    expect(one.got(waiter)).toBe('$1\r\nv\r\n');
    expect(one.got(third)).toBe('*2\r\n$1\r\nb\r\n$1\r\nv\r\n');
  });

  it('hears of a destination that holds something else, and the element stays', () => {
    one.send(other, 'SET to v');
    one.send(waiter, 'BLMOVE k to LEFT LEFT 0');
    one.send(other, 'SADD k member');
    expect(one.got(waiter)).toBe('');
    one.send(other, 'DEL k');
    one.send(other, 'RPUSH k 1');
    expect(one.got(waiter)).toMatch(/^-WRONGTYPE/);
    expect(one.send(other, 'LRANGE k 0 -1')).toBe('*1\r\n$1\r\n1\r\n');
  });
});

/** XREAD and XREADGROUP that wait, over two workers, and what 7.2 does otherwise than the 7.0 that test/compat compares with. */
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openParticipants, type Participant } from '../../../test/helpers/participants.js';
import { parseReply } from '../../../test/helpers/resp-reply.js';
import type { Client } from '../clients/client.js';
import { createCommandTable } from '../families.js';

let one: Participant;
let two: Participant;
let waiter: Client;
let other: Client;
let far: Client;

beforeAll(() => {
  [one, two] = openParticipants(2, createCommandTable());
});

beforeEach(() => {
  two.send(two.connect(), 'FLUSHALL');
  one.turn();
  two.turn();
  waiter = one.connect();
  other = one.connect();
  far = two.connect();
});

/** What the waiter has got, from its own worker or the other one. */
function got(client = waiter): unknown {
  one.turn();
  const reply = one.got(client);
  return reply === '' ? '' : parseReply(reply);
}

describe('XREAD BLOCK', () => {
  it('gets what comes, from its own worker or another', () => {
    expect(one.send(waiter, 'XREAD BLOCK 0 STREAMS a b 0 $')).toBe('');
    one.send(other, 'XADD b 1-1 f v');
    expect(got()).toEqual([['b', [['1-1', ['f', 'v']]]]]);
    expect(one.send(waiter, 'XREAD BLOCK 0 COUNT 1 STREAMS b $')).toBe('');
    two.send(far, 'XADD b 1-2 f w');
    expect(got()).toEqual([['b', [['1-2', ['f', 'w']]]]]);
  });

  it('reads what comes behind its id only', () => {
    one.send(other, 'XADD s 5-0 f v');
    one.send(waiter, 'XREAD BLOCK 0 STREAMS s 7');
    one.send(other, 'XADD s 6-0 f v');
    two.send(far, 'XADD s 7-0 f v');
    expect(got()).toBe('');
    two.send(far, 'XADD s 7-1 f v');
    expect(got()).toEqual([['s', [['7-1', ['f', 'v']]]]]);
  });

  it('serves all that wait, each what it asked for', () => {
    const third = one.connect();
    const fourth = two.connect();
    one.send(waiter, 'XREAD BLOCK 0 STREAMS s $');
    one.send(third, 'XREAD BLOCK 0 STREAMS s 10');
    two.send(fourth, 'XREAD BLOCK 0 STREAMS s 0');
    one.send(other, 'XADD s 3-0 f v');
    expect(got()).toEqual([['s', [['3-0', ['f', 'v']]]]]);
    expect(got(third)).toBe('');
    two.turn();
    expect(parseReply(two.got(fourth))).toEqual([['s', [['3-0', ['f', 'v']]]]]);
    one.send(other, 'XADD s 11-0 f v');
    expect(got(third)).toEqual([['s', [['11-0', ['f', 'v']]]]]);
  });

  it('sees all entries of a transaction', () => {
    one.send(waiter, 'XREAD BLOCK 0 STREAMS s $');
    for (const request of ['MULTI', 'XADD s 1-1 a 1', 'XADD s 1-2 b 2', 'EXEC']) two.send(far, request);
    expect(got()).toEqual([
      [
        's',
        [
          ['1-1', ['a', '1']],
          ['1-2', ['b', '2']],
        ],
      ],
    ]);
  });

  it('goes on when its key vanishes or becomes something else', () => {
    one.send(other, 'XADD s 1-1 a 1');
    one.send(waiter, 'XREAD BLOCK 0 STREAMS s $');
    one.send(other, 'DEL s');
    one.send(other, 'SET s v');
    two.send(far, 'FLUSHALL');
    expect(got()).toBe('');
    two.send(far, 'XADD s 2-1 a 1');
    expect(got()).toEqual([['s', [['2-1', ['a', '1']]]]]);
  });

  it('is not woken by an empty stream, and ends with its time', () => {
    one.send(waiter, 'XREAD BLOCK 1000 STREAMS s 0');
    one.send(other, 'XGROUP CREATE s g 0 MKSTREAM');
    one.send(other, 'XADD s MAXLEN 0 1-1 a b');
    expect(got()).toBe('');
    one.turn(1001);
    expect(one.got(waiter)).toBe('*-1\r\n');
  });

  it('finds a stream that another key or database brings', () => {
    one.send(other, 'XADD from 1-1 a 1');
    one.send(waiter, 'XREAD BLOCK 0 STREAMS to 0');
    two.send(far, 'RENAME from to');
    expect(got()).toEqual([['to', [['1-1', ['a', '1']]]]]);
    one.send(waiter, 'XREAD BLOCK 0 STREAMS swapped 0');
    two.send(far, 'SELECT 1');
    two.send(far, 'XADD swapped 1-1 a 1');
    expect(got()).toBe('');
    two.send(far, 'SWAPDB 0 1');
    expect(got()).toEqual([['swapped', [['1-1', ['a', '1']]]]]);
  });

  it('is answered in its own protocol', () => {
    one.send(waiter, 'HELLO 3');
    one.send(waiter, 'XREAD BLOCK 0 STREAMS s $');
    two.send(far, 'XADD s 1-1 a 1');
    one.turn();
    expect(one.got(waiter)).toBe('%1\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\na\r\n$1\r\n1\r\n');
  });
});

describe('XREADGROUP BLOCK', () => {
  beforeEach(() => {
    one.send(other, 'XGROUP CREATE s g $ MKSTREAM');
    one.send(other, 'XGROUP CREATE t g $ MKSTREAM');
  });

  it('gives each entry to one consumer, in the order of waiting', () => {
    const third = one.connect();
    one.send(waiter, 'XREADGROUP GROUP g x BLOCK 0 STREAMS s t > >');
    one.send(third, 'XREADGROUP GROUP g y BLOCK 0 STREAMS s >');
    two.send(far, 'XADD s 1-1 a 1');
    expect(got()).toEqual([['s', [['1-1', ['a', '1']]]]]);
    expect(got(third)).toBe('');
    two.send(far, 'XADD s 1-2 a 2');
    expect(got(third)).toEqual([['s', [['1-2', ['a', '2']]]]]);
    expect(parseReply(two.send(far, 'XPENDING s g'))).toEqual([
      2,
      '1-1',
      '1-2',
      [
        ['x', '1'],
        ['y', '1'],
      ],
    ]);
    expect(parseReply(two.send(far, 'XPENDING t g'))).toEqual([0, null, null, null]);
  });

  it('serves readers of several groups', () => {
    const third = one.connect();
    one.send(other, 'XGROUP CREATE s h $');
    one.send(waiter, 'XREADGROUP GROUP g x BLOCK 0 STREAMS s >');
    one.send(third, 'XREADGROUP GROUP h x BLOCK 0 NOACK STREAMS s >');
    two.send(far, 'XADD s 1-1 a 1');
    expect(got()).toEqual([['s', [['1-1', ['a', '1']]]]]);
    expect(got(third)).toEqual([['s', [['1-1', ['a', '1']]]]]);
    expect(parseReply(two.send(far, 'XPENDING s h'))).toEqual([0, null, null, null]);
  });

  it.each([
    ['its key is deleted', ['DEL s']],
    ['its key expires', ['PEXPIRE s -1']],
    ['its group is destroyed', ['XGROUP DESTROY s g']],
    ['its database is emptied', ['FLUSHALL']],
    ['its database is exchanged', ['SWAPDB 0 1']],
    ['another stream takes its place', ['XADD u 1-1 a b', 'RENAME u s']],
    ['its key is moved', ['MOVE s 3']],
  ])('ends with NOGROUP when %s', (_, requests) => {
    one.send(waiter, 'XREADGROUP GROUP g x BLOCK 0 STREAMS s >');
    for (const request of requests) two.send(far, request);
    expect(got()).toBe("-NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option");
  });

  it('ends with NOGROUP when its key is found to have expired', async () => {
    one.send(waiter, 'XREADGROUP GROUP g x BLOCK 0 STREAMS s >');
    two.send(far, 'PEXPIRE s 5');
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(two.send(far, 'EXISTS s')).toBe(':0\r\n');
    expect(got()).toMatch(/^-NOGROUP/);
  });

  it.each([
    ['SET s v', 'SADD s v'],
    ['DEL s', 'SET s v'],
  ])('ends with an error when its key becomes something else: %s, %s', (...requests) => {
    one.send(waiter, 'XREADGROUP GROUP g x BLOCK 0 STREAMS s >');
    for (const request of ['MULTI', ...requests, 'EXEC']) two.send(far, request);
    expect(got()).toMatch(/^-(WRONGTYPE|NOGROUP)/);
  });

  it('goes on when a stream with the group takes its place', () => {
    one.send(other, 'XGROUP CREATE u g 0 MKSTREAM');
    one.send(waiter, 'XREADGROUP GROUP g x BLOCK 0 STREAMS s >');
    two.send(far, 'XADD u 1-1 a b');
    two.send(far, 'RENAME u s');
    expect(got()).toEqual([['s', [['1-1', ['a', 'b']]]]]);
  });

  it('is not woken by what is no news', () => {
    one.send(waiter, 'XREADGROUP GROUP g x BLOCK 2000 STREAMS s >');
    two.send(far, 'XGROUP CREATE s h 0');
    two.send(far, 'XADD s MAXLEN 0 1-1 a b');
    two.send(far, 'XREADGROUP GROUP g y BLOCK 1 STREAMS s >');
    two.send(far, 'XGROUP SETID s g 9');
    two.send(far, 'XADD s 2-1 a b');
    expect(got()).toBe('');
    two.send(far, 'XADD s 9-1 a b');
    expect(got()).toEqual([['s', [['9-1', ['a', 'b']]]]]);
  });

  it('answers the history at once, and makes its consumer before it waits', () => {
    expect(parseReply(one.send(waiter, 'XREADGROUP GROUP g x BLOCK 0 STREAMS s 0'))).toEqual([['s', []]]);
    one.send(waiter, 'XREADGROUP GROUP g new BLOCK 0 STREAMS s >');
    const consumers = parseReply(two.send(far, 'XINFO CONSUMERS s g')) as string[][];
    expect(consumers.map((consumer) => consumer[1])).toEqual(['new', 'x']);
    two.send(far, 'XGROUP DELCONSUMER s g new');
    two.send(far, 'XADD s 1-1 a b');
    expect(got()).toEqual([['s', [['1-1', ['a', 'b']]]]]);
    expect(parseReply(two.send(far, 'XPENDING s g'))).toEqual([1, '1-1', '1-1', [['new', '1']]]);
  });
});

describe('consumers', () => {
  const numbers = (reply: string): number[] => {
    const [fields] = parseReply(reply) as (string | number)[][];
    return ['idle', 'inactive'].map((name) => fields[fields.indexOf(name) + 1] as number);
  };

  it('are seen when they ask, and active when they get something', () => {
    one.send(other, 'XGROUP CREATE s g 0 MKSTREAM');
    one.send(other, 'XREADGROUP GROUP g x STREAMS s >');
    expect(numbers(one.send(other, 'XINFO CONSUMERS s g'))[1]).toBe(-1);
    one.send(other, 'XADD s 1-1 a b');
    one.send(other, 'XREADGROUP GROUP g x NOACK STREAMS s >');
    expect(numbers(one.send(other, 'XINFO CONSUMERS s g'))[1]).toBe(-1);
    one.send(other, 'XADD s 1-2 a b');
    one.send(other, 'XREADGROUP GROUP g x STREAMS s >');
    const [idle, inactive] = numbers(one.send(other, 'XINFO CONSUMERS s g'));
    expect(idle).toBeGreaterThanOrEqual(0);
    expect(inactive).toBeGreaterThanOrEqual(0);
    const full = one.send(other, 'XINFO STREAM s FULL');
    expect(full).toMatch(/seen-time\r\n:\d{13}\r\n\$11\r\nactive-time\r\n:\d{13}\r\n\$9\r\npel-count\r\n:1\r\n/);
  });

  it('are made by claims that claim nothing', () => {
    one.send(other, 'XGROUP CREATE s g 0 MKSTREAM');
    one.send(other, 'XCLAIM s g x 0 1-1');
    one.send(other, 'XAUTOCLAIM s g y 0 0');
    const consumers = parseReply(one.send(other, 'XINFO CONSUMERS s g')) as string[][];
    expect(consumers.map((consumer) => consumer[1])).toEqual(['x', 'y']);
  });

  it('have names of at most 256 KiB', () => {
    one.send(other, 'XGROUP CREATE s g 0 MKSTREAM');
    const create = (length: number) => one.send(other, ['XGROUP', 'CREATECONSUMER', 's', 'g', 'c'.repeat(length)]);
    expect(create(250_000)).toBe(':1\r\n');
    expect(create(300_000)).toMatch(/^-OOM/);
    expect(one.send(other, 'XGROUP DESTROY s g')).toBe(':1\r\n');
  });
});

describe('XSETID', () => {
  it('stays above what was deleted', () => {
    one.send(other, 'XADD s 5-0 a b');
    one.send(other, 'XDEL s 5-0');
    expect(one.send(other, 'XSETID s 4-0')).toBe(
      '-ERR The ID specified in XSETID is smaller than current max_deleted_entry_id\r\n',
    );
  });
});

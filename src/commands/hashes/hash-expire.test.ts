import { describe, expect, it } from 'vitest';
import { Session } from '../../../test/helpers/session.js';
import { testStore } from '../../../test/helpers/store.js';
import { checkInvariants } from '../../store/invariants.js';

/** Replies as text without the framing. */
function talk(keyspace = testStore()) {
  const session = new Session(keyspace);
  return (request: string | readonly string[]) => session.send(request).trimEnd().split('\r\n').join(' ');
}

describe('expiry of hash fields', () => {
  it('HEXPIRE replies for each field; HTTL and HPERSIST see it', () => {
    const send = talk();
    send('HSET h a 1 b 2 c 3');
    expect(send('HEXPIRE h 100 FIELDS 3 a nope b')).toBe('*3 :1 :-2 :1');
    expect(send('HTTL h FIELDS 4 a b c nope')).toBe('*4 :100 :100 :-1 :-2');
    expect(send('HPERSIST h FIELDS 3 a c nope')).toBe('*3 :1 :-1 :-2');
    expect(send('HTTL h FIELDS 1 a')).toBe('*1 :-1');
    expect(send('HPEXPIREAT h 2000000000123 FIELDS 1 a')).toBe('*1 :1');
    expect(send('HPEXPIRETIME h FIELDS 2 a c')).toBe('*2 :2000000000123 :-1');
    expect(send('HEXPIRETIME h FIELDS 1 a')).toBe('*1 :2000000001');
    expect(send('HEXPIREAT h 2000000000 FIELDS 1 a')).toBe('*1 :1');
    expect(send('HGETALL h')).toBe('*6 $1 a $1 1 $1 b $1 2 $1 c $1 3');
  });

  it('of a key that does not exist, every field is missing', () => {
    const send = talk();
    expect(send('HEXPIRE nope 1 FIELDS 2 a b')).toBe('*2 :-2 :-2');
    expect(send('HTTL nope FIELDS 1 a')).toBe('*1 :-2');
    expect(send('HPERSIST nope FIELDS 1 a')).toBe('*1 :-2');
  });

  it('obeys NX, XX, GT and LT', () => {
    const send = talk();
    send('HSET h a 1 b 2');
    expect(send('HEXPIRE h 100 XX FIELDS 1 a')).toBe('*1 :0');
    expect(send('HEXPIRE h 100 GT FIELDS 1 a')).toBe('*1 :0');
    expect(send('HEXPIRE h 100 LT FIELDS 1 b')).toBe('*1 :1');
    expect(send('HEXPIRE h 100 NX FIELDS 2 a b')).toBe('*2 :1 :0');
    expect(send('HEXPIRE h 50 gt FIELDS 1 a')).toBe('*1 :0');
    expect(send('HEXPIRE h 200 GT FIELDS 1 a')).toBe('*1 :1');
    expect(send('HEXPIRE h 50 LT FIELDS 1 a')).toBe('*1 :1');
    expect(send('HTTL h FIELDS 2 a b')).toBe('*2 :50 :100');
  });

  it('deletes fields at once when the time is past, and the hash with the last of them', () => {
    const send = talk();
    send('HSET h a 1 b 2');
    expect(send('HEXPIRE h 0 FIELDS 1 a')).toBe('*1 :2');
    expect(send('HGETALL h')).toBe('*2 $1 b $1 2');
    expect(send('HEXPIREAT h 1 FIELDS 2 a b')).toBe('*2 :-2 :2');
    expect(send('EXISTS h')).toBe(':0');
  });

  it('HDEL counts a field whose time has come, as any other', () => {
    const keyspace = testStore();
    const send = talk(keyspace);
    send('HSET h a 1 b 2');
    send('HPEXPIRE h 1 FIELDS 2 a b');
    const end = Date.now() + 3;
    while (Date.now() < end);
    expect(send('HDEL h a nope')).toBe(':1');
    expect(send('HDEL h b')).toBe(':1');
    expect(send('EXISTS h')).toBe(':0');
    checkInvariants(keyspace);
  });

  it("answers wrong requests in Redis's words", () => {
    const send = talk();
    send('HSET h a 1');
    send('SET s 1');
    expect(send('HEXPIRE s 1 FIELDS 1 a')).toMatch(/^-WRONGTYPE/);
    expect(send('HEXPIRE h x FIELDS 1 a')).toBe('-ERR value is not an integer or out of range');
    expect(send('HEXPIRE h -1 FIELDS 1 a')).toBe('-ERR invalid expire time, must be >= 0');
    expect(send('HEXPIRE h 99999999999999 FIELDS 1 a')).toBe("-ERR invalid expire time in 'hexpire' command");
    expect(send('HEXPIRE h 1 FOO 1 a')).toMatch(/^-ERR Mandatory argument FIELDS is missing/);
    expect(send('HEXPIRE h 1 FIELDS 0 a')).toBe('-ERR Parameter `numFields` should be greater than 0');
    expect(send('HEXPIRE h 1 FIELDS 2 a')).toBe('-ERR The `numfields` parameter must match the number of arguments');
    expect(send('HTTL h FIELDS x a')).toBe('-ERR Number of fields must be a positive integer');
    expect(send('HEXPIRE h 1 FIELDS')).toMatch(/^-ERR wrong number of arguments/);
  });

  it.each([
    ['a packed hash', 3],
    ['a tree', 2000],
  ])('the background removes fields of %s that nobody looks at', (_, fields) => {
    const keyspace = testStore();
    const session = new Session(keyspace);
    for (let i = 0; i < fields; i++) session.send(`HSET h f${i} ${i}`);
    for (let i = 0; i < fields - 1; i++) session.send(`HPEXPIRE h 1 FIELDS 1 f${i}`);
    const end = Date.now() + 3;
    while (Date.now() < end);
    for (let rounds = 0; rounds < 4000 && session.send('HLEN h') !== ':1\r\n'; rounds++) {
      keyspace.refreshClock();
      keyspace.enterBatch();
      keyspace.background(100);
      keyspace.leaveBatch();
    }
    expect(session.send('HLEN h')).toBe(':1\r\n');
    checkInvariants(keyspace);
  });

  it.each([
    ['a packed hash', 3],
    ['a tree', 2000],
  ])('fields of %s are gone when their time has come', (_, fields) => {
    const keyspace = testStore();
    const session = new Session(keyspace);
    const send = (request: string) => session.send(request).trimEnd().split('\r\n').join(' ');
    for (let i = 0; i < fields; i++) session.send(`HSET h f${i} ${i}`);
    session.send('HPEXPIRE h 1 FIELDS 2 f0 f1');
    session.send('HEXPIRE h 1000 FIELDS 1 f2');
    const end = Date.now() + 3;
    while (Date.now() < end);
    expect(send('HGET h f0')).toBe('$-1');
    expect(send('HEXISTS h f1')).toBe(':0');
    expect(send('HGET h f2')).toBe('$1 2');
    expect(send('HSETNX h f1 new')).toBe(':1');
    expect(send('HTTL h FIELDS 2 f1 f2')).toBe('*2 :-1 :1000');
    expect(send('HLEN h')).toBe(`:${fields - 1}`);
    // A set takes the expiry away, an increment keeps it.
    expect(send('HINCRBY h f2 5')).toBe(':7');
    expect(send('HTTL h FIELDS 1 f2')).toBe('*1 :1000');
    expect(send('HSET h f2 x')).toBe(':0');
    expect(send('HTTL h FIELDS 1 f2')).toBe('*1 :-1');
    session.send('HPEXPIRE h 1 FIELDS 1 f1');
    const later = Date.now() + 3;
    while (Date.now() < later);
    expect(send('HKEYS h')).not.toContain(' f1 ');
    expect(session.send('HGETALL h').startsWith(`*${(fields - 2) * 2}\r\n`)).toBe(true);
    checkInvariants(keyspace);
  });
});

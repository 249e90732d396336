/**
 * What the byte scripts of test/compat cannot ask Debian's memcached: flags of later releases, and what only our side shows.
 */
import { describe, expect, it } from 'vitest';
import { MemcachedSession } from '../../../test/helpers/memcached-session.js';
import { testStore } from '../../../test/helpers/store.js';

const session = () => new MemcachedSession(testStore());

describe('meta flags of later releases', () => {
  it('E: an explicit version, on every command that changes an item', () => {
    const s = session();
    expect(s.send('ms a 1 E1000 c\r\n1\r\n')).toBe('HD c1000\r\n');
    expect(s.send('mg a c\r\n')).toBe('HD c1000\r\n');
    expect(s.send('ms a 1 C1000 E2000 c\r\n2\r\n')).toBe('HD c2000\r\n');
    expect(s.send('ms a 1 MA E3000 c s\r\n3\r\n')).toBe('HD c3000 s2\r\n');
    expect(s.send('ma n N0 J5 E77 c v\r\n')).toBe('VA 1 c77\r\n5\r\n');
    expect(s.send('ma n E78 c v\r\n')).toBe('VA 1 c78\r\n6\r\n');
    expect(s.send('mg new N30 E5 c\r\n')).toBe('HD c5 W\r\n');
    expect(s.send('md a I E4000\r\n')).toBe('HD\r\n');
    expect(s.send('mg a c v\r\n')).toBe('VA 2 c4000 X W\r\n23\r\n');
    expect(s.send('ms a 1 E9007199254740991 c\r\nx\r\n')).toBe('HD c9007199254740991\r\n');
    expect(s.send('gets a\r\n')).toBe('VALUE a 0 1 9007199254740991\r\nx\r\nEND\r\n');
  });

  it('E: refuses what no version here can be; 0 means the next one', () => {
    const s = session();
    expect(s.send('ms a 1 E9007199254740992\r\nx\r\nmn\r\n')).toBe(
      'CLIENT_ERROR bad token in command line format\r\nMN\r\n',
    );
    expect(s.send('ms a 1 E0 c\r\nx\r\n')).toMatch(/^HD c[1-9]\d*\r\n$/);
  });

  it('C on mg: no value when the client has this version already', () => {
    const s = session();
    s.send('ms a 3 E50\r\nabc\r\n');
    expect(s.send('mg a C50 v\r\n')).toBe('HD\r\n');
    expect(s.send('mg a C49 v c\r\n')).toBe('VA 3 c50\r\nabc\r\n');
    expect(s.send('mg a C50 v T60 t\r\n')).toBe('HD t60\r\n');
  });

  it('x on md: the value goes, the item stays', () => {
    const s = session();
    s.send('ms a 3 F7 T60 E50\r\nabc\r\n');
    expect(s.send('md a x\r\n')).toBe('HD\r\n');
    expect(s.send('mg a v f t c\r\n')).toBe('VA 0 f0 t-1 c50\r\n\r\n');
    s.send('ms a 3 E60\r\nabc\r\n');
    expect(s.send('md a x I T30 E61\r\n')).toBe('HD\r\n');
    expect(s.send('mg a v t c\r\n')).toBe('VA 0 t30 c61 X W\r\n\r\n');
    expect(s.send('mg a v t c\r\n')).toBe('VA 0 t30 c61 Z X\r\n\r\n');
  });

  it('N on append and prepend: stores on a miss', () => {
    const s = session();
    expect(s.send('ms a 2 MA N60 T5 F3\r\nbc\r\n')).toBe('HD\r\n');
    expect(s.send('mg a v t f\r\n')).toBe('VA 2 t60 f3\r\nbc\r\n');
    expect(s.send('ms a 1 MP N90 s\r\na\r\n')).toBe('HD s3\r\n');
    expect(s.send('mg a v t\r\n')).toBe('VA 3 t60\r\nabc\r\n');
  });

  it('s on ms: the size of what is stored', () => {
    const s = session();
    expect(s.send('ms a 3 s k\r\nabc\r\n')).toBe('HD s3 ka\r\n');
    expect(s.send('ms a 2 s MA\r\nde\r\n')).toBe('HD s5\r\n');
  });

  it('M takes one character', () => {
    const s = session();
    expect(s.send('ma n MIx\r\n')).toBe('CLIENT_ERROR invalid or duplicate flag\r\n');
    expect(s.send('ms n 1 M\r\nx\r\n')).toBe('CLIENT_ERROR incorrect length for M token\r\n');
  });
});

describe('meta get', () => {
  it('hands the token to recache to one client only, until somebody stores', () => {
    const s = session();
    const other = new MemcachedSession(testStore());
    expect(s.send('mg a N30 v t\r\n')).toBe('VA 0 t30 W\r\n\r\n');
    expect(s.send('mg a N30 v\r\n')).toBe('VA 0 Z\r\n\r\n');
    expect(s.send('ms a 1 T60\r\nx\r\nmg a v\r\n')).toBe('HD\r\nVA 1\r\nx\r\n');
    expect(other.send('mg a v N30 R90\r\n')).toBe('VA 1 W\r\nx\r\n');
    expect(s.send('mg a v N30 R90\r\n')).toBe('VA 1 Z\r\nx\r\n');
  });

  it('tells whether the item has been read, and when, without counting itself', () => {
    const store = testStore();
    const s = new MemcachedSession(store);
    s.send('set a 0 0 1\r\nx\r\n');
    expect(s.send('mg a h l u\r\n')).toBe('HD h0 l0\r\n');
    expect(s.send('mg a h\r\n')).toBe('HD h0\r\n');
    store.setClock(store.nowMs + 7000);
    expect(s.send('mg a h l\r\n')).toBe('HD h1 l7\r\n');
    expect(s.send('mg a h l\r\n')).toBe('HD h1 l0\r\n');
    expect(s.send('set a 0 0 1\r\nx\r\nmg a h\r\n')).toBe('STORED\r\nHD h0\r\n');
  });

  it('shows an item to a human (me)', () => {
    const s = session();
    s.send('ms YWJj 3 b T100 E9\r\nxyz\r\n');
    expect(s.send('me YWJj b\r\n')).toMatch(/^ME YWJj exp=100 la=0 cas=9 fetch=no cls=\d+ size=\d+\r\n$/);
    s.send('get abc\r\n');
    expect(s.send('me abc\r\n')).toMatch(/^ME abc exp=100 la=0 cas=9 fetch=yes cls=\d+ size=\d+\r\n$/);
  });
});

describe('time', () => {
  it('expires items, and counts down what is left', () => {
    const store = testStore();
    const s = new MemcachedSession(store);
    s.send('set a 0 10 1\r\nx\r\nset b 0 0 1\r\nx\r\n');
    const start = store.nowMs;
    store.setClock(start + 9_500);
    expect(s.send('mg a t\r\nmg b t\r\n')).toBe('HD t1\r\nHD t-1\r\n');
    store.setClock(start + 10_000);
    expect(s.send('get a b\r\n')).toBe('VALUE b 0 1\r\nx\r\nEND\r\n');
    expect(s.send(`touch b ${Math.floor(start / 1000) + 100}\r\n`)).toBe('TOUCHED\r\n');
    expect(s.send('mg b t\r\n')).toMatch(/^HD t(89|90)\r\n$/);
  });

  it('flushes at the appointed time what is there by then', () => {
    const store = testStore();
    const s = new MemcachedSession(store);
    expect(s.send('flush_all 5\r\nset a 0 0 1\r\nx\r\nget a\r\n')).toBe('OK\r\nSTORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n');
    store.setClock(store.nowMs + 5001);
    store.enterBatch();
    store.background(1000);
    store.leaveBatch();
    expect(s.send('get a\r\n')).toBe('END\r\n');
    expect(s.send('set a 0 0 1\r\nx\r\nget a\r\n')).toBe('STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n');
  });
});

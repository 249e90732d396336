import { beforeEach, describe, expect, it } from 'vitest';
import { Session } from '../../../test/helpers/session.js';
import { testStore } from '../../../test/helpers/store.js';
import type { Client } from '../clients/client.js';

let session: Session;
let one: Client;
let two: Client;

beforeEach(() => {
  session = new Session(testStore());
  one = session.client;
  two = session.connect();
});

/** Speaks for a client; returns the replies of all requests together. */
function as(client: Client, ...requests: string[]): string {
  session.client = client;
  return requests.map((request) => session.send(request)).join('');
}

describe('transactions', () => {
  it('run as one step', () => {
    expect(as(one, 'MULTI', 'SET k 1', 'GET k')).toBe('+OK\r\n+QUEUED\r\n+QUEUED\r\n');
    expect(as(two, 'GET k')).toBe('$-1\r\n');
    expect(as(one, 'EXEC')).toBe('*2\r\n+OK\r\n$1\r\n1\r\n');
    expect(as(one, 'EXEC')).toBe('-ERR EXEC without MULTI\r\n');
  });

  it('go on after an error of a command, and abort after a refused one', () => {
    expect(as(one, 'MULTI', 'SET k 1 EX x', 'SET k 2', 'EXEC')).toBe(
      '+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n-ERR value is not an integer or out of range\r\n+OK\r\n',
    );
    as(one, 'MULTI', 'SET k', 'SET k 3');
    expect(as(one, 'EXEC')).toBe('-EXECABORT Transaction discarded because of previous errors.\r\n');
    expect(as(one, 'GET k')).toBe('$1\r\n2\r\n');
  });

  it('change databases', () => {
    expect(as(one, 'MULTI', 'SELECT 1', 'SET k 1', 'SELECT 0', 'GET k', 'EXEC')).toMatch(/\*4\r\n.*\$-1\r\n$/s);
    expect(as(one, 'SELECT 1', 'GET k')).toBe('+OK\r\n$1\r\n1\r\n');
  });

  it('may contain commands that run alone', () => {
    expect(as(one, 'SET k 1', 'MULTI', 'FLUSHALL', 'DBSIZE', 'SET j 1', 'DBSIZE', 'EXEC')).toMatch(
      /\*4\r\n\+OK\r\n:0\r\n\+OK\r\n:1\r\n$/,
    );
  });

  it('refuse what must ask other threads', () => {
    expect(as(one, 'MULTI', 'CONFIG REWRITE')).toBe('+OK\r\n-ERR Command not allowed inside a transaction\r\n');
    expect(as(one, 'EXEC')).toMatch(/^-EXECABORT/);
  });

  it('keep large arguments', () => {
    const value = 'x'.repeat(50_000);
    session.client = one;
    session.send('MULTI');
    expect(session.send(['SET', 'k', value])).toBe('+QUEUED\r\n');
    expect(session.send('GET k')).toBe('+QUEUED\r\n');
    expect(session.send('EXEC')).toBe(`*2\r\n+OK\r\n$${value.length}\r\n${value}\r\n`);
  });
});

describe('WATCH', () => {
  const run = (between: string[]): string => {
    as(one, 'SET k 1', 'WATCH k gone', 'MULTI', 'GET k');
    as(two, ...between);
    return as(one, 'EXEC');
  };

  it.each([[['GET k']], [['SET other 1']], [['SELECT 1', 'SET k 2']], [['SET k 2 NX']]])(
    'lets EXEC run after %j',
    (between) => {
      expect(run(between)).toBe('*1\r\n$1\r\n1\r\n');
    },
  );

  it.each([[['SET k 1']], [['SET gone 1']], [['FLUSHALL']], [['FLUSHDB']], [['SWAPDB 0 1']], [['SET k 1 PX 1 GET']]])(
    'stops EXEC after %j',
    (between) => {
      expect(run(between)).toBe('*-1\r\n');
    },
  );

  it('sees a key that appears after the database behind the number has changed', () => {
    as(two, 'SET other 1');
    as(one, 'WATCH gone', 'MULTI', 'PING');
    as(two, 'FLUSHALL', 'SET gone 1');
    expect(as(one, 'EXEC')).toBe('*-1\r\n');
    as(one, 'WATCH nowhere', 'MULTI', 'PING');
    as(two, 'FLUSHALL');
    expect(as(one, 'EXEC')).toBe('*1\r\n+PONG\r\n');
  });

  it('ends with UNWATCH, DISCARD, EXEC and RESET', () => {
    for (const end of [['UNWATCH'], ['MULTI', 'DISCARD'], ['MULTI', 'EXEC'], ['RESET']]) {
      as(one, 'SET k 1', 'WATCH k', ...end);
      as(two, 'SET k 2');
      expect(as(one, 'MULTI', 'PING', 'EXEC')).toMatch(/\*1\r\n\+PONG\r\n$/);
    }
  });
});

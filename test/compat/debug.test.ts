/**
 * DEBUG PROTOCOL and the like, and transactions around settings and full memory, against a real redis-server.
 */
import { it } from 'vitest';
import { describeWithRedis } from '../helpers/redis-oracle.js';

const TYPES = ['string integer double bignum null array set map attrib push true false verbatim nosuch STRING'].flatMap(
  (line) => line.split(' '),
);

describeWithRedis('DEBUG', (peers) => {
  it('PROTOCOL in RESP2', () => peers.compare(TYPES.map((type) => `DEBUG PROTOCOL ${type}`)));

  it('PROTOCOL in RESP3', () =>
    peers.compare(['HELLO 3', ...TYPES.map((type) => `DEBUG PROTOCOL ${type}`)], {
      except: [{ step: /^HELLO/, because: 'ids and versions differ' }],
    }));

  it('ERROR and others', () =>
    peers.compare([
      ['DEBUG', 'ERROR', 'ERR of my own'],
      ['DEBUG', 'ERROR', 'two\r\nlines'],
      'DEBUG CHANGE-REPL-ID',
      'DEBUG LOG hello',
      'DEBUG QUICKLIST-PACKED-THRESHOLD 100b',
      'DEBUG QUICKLIST-PACKED-THRESHOLD 5gb',
      'DEBUG QUICKLIST-PACKED-THRESHOLD x',
      'DEBUG NOSUCH',
      'DEBUG SLEEP 0',
      'DEBUG SET-ACTIVE-EXPIRE 1',
    ]));
});

describeWithRedis('settings and full memory around transactions', (peers) => {
  it('CONFIG SET inside MULTI', () =>
    peers.compare([
      'MULTI',
      'CONFIG SET hz 33',
      'CONFIG GET hz',
      'CONFIG SET nosuch 1',
      'CONFIG SET repl-timeout x',
      'EXEC',
      'CONFIG GET hz',
      'CONFIG SET hz 10',
    ]));

  it('questions to other threads inside MULTI', () =>
    peers.compare([
      'SLOWLOG RESET',
      'MULTI',
      'SLOWLOG LEN',
      'CLIENT UNPAUSE',
      'LATENCY RESET nosuch',
      'CLIENT KILL ID 999999',
      'EXEC',
    ]));

  it('a client may end itself inside MULTI', () =>
    peers.compareUntilClosed('MULTI\r\nPING\r\nCLIENT KILL TYPE normal SKIPME no\r\nEXEC\r\nPING\r\n'));

  it('OOM while queueing, and at EXEC', () =>
    peers.compare([
      'CONFIG SET maxmemory-policy noeviction',
      'SET there 1',
      'CONFIG SET maxmemory 1',
      'MULTI',
      'SET a 1',
      'GET there',
      'EXEC',
      'MULTI',
      'GET there',
      'DEL there',
      'EXEC',
      'CONFIG SET maxmemory 0',
      'MULTI',
      'SET a 1',
      'CONFIG SET maxmemory 0',
      'EXEC',
    ]));

  it('parameters that are kept only', () =>
    peers.compare([
      'CONFIG SET repl-timeout 61 repl-backlog-size 2mb min-slaves-to-write 0',
      'CONFIG GET repl-timeout',
      'CONFIG GET repl-backlog-size',
      'CONFIG SET repl-timeout 0',
      'CONFIG SET activedefrag maybe',
      'CONFIG SET maxmemory-clients 101%',
      'CONFIG SET maxmemory-clients 5%',
      'CONFIG GET maxmemory-clients',
      'CONFIG SET maxmemory-clients 0',
      'CONFIG SET daemonize yes',
      'CONFIG SET slave-priority 7',
      'CONFIG GET replica-priority',
      'CONFIG GET slave-priority',
      'CONFIG GET key-load-delay',
      'CONFIG SET appendfsync sometimes',
      'CONFIG SET repl-timeout 60 repl-backlog-size 1mb replica-priority 100',
    ]));
});

/** The *-lfu policies against redis-server: what counts as a use, and how well the victims are chosen. */
import { it } from 'vitest';
import { describeWithRedis, type Step } from '../helpers/redis-oracle.js';

// Without maxmemory redis-server shares the objects of small integers, and their counters.
const LFU = ['--maxmemory-policy', 'allkeys-lfu', '--lfu-log-factor', '0', '--lfu-decay-time', '0'];

/** Each command after the same preparation, and the counters of the keys after it. */
const COMMANDS: readonly Step[] = [
  'GET k',
  'SET k v',
  'SET k v KEEPTTL',
  'SET k v XX',
  'SET k v NX',
  'SET k v GET',
  'SETNX k v',
  'GETSET k v',
  'GETEX k',
  'GETEX k EX 100',
  'GETRANGE k 0 1',
  'SETRANGE k 1 xx',
  'SETRANGE k 100 xx',
  'APPEND k more',
  'APPEND k ""',
  'STRLEN k',
  'INCR n',
  'INCRBY n 100',
  'DECR n',
  'INCRBYFLOAT n 1.5',
  'MGET k n k',
  'MSET k 1 n 2',
  'MSETNX k 1 m 2',
  'SETBIT k 3 1',
  'GETBIT k 3',
  'BITCOUNT k',
  'BITPOS k 1',
  'BITOP AND d k n',
  'BITFIELD k GET u8 0',
  'BITFIELD k SET u8 0 7',
  'BITFIELD_RO k GET u8 0',
  'LCS k n',
  'EXPIRE k 100',
  'EXPIRE k 100 XX',
  'PEXPIREAT k 99999999999999',
  'PERSIST k',
  'TTL k',
  'PTTL k',
  'EXPIRETIME k',
  'TYPE k',
  'EXISTS k k',
  'TOUCH k n',
  'OBJECT ENCODING k',
  'OBJECT FREQ k',
  'COPY k c',
  'RENAME k r',
  'RENAME k n',
  'RENAMENX k n',
  'SCAN 0 MATCH none',
  'KEYS k',
];

describeWithRedis(
  'what counts as a use',
  (peers) => {
    it.each(COMMANDS)('%s', (command) => {
      const keys = ['k', 'n', 'd', 'c', 'r', 'm'];
      return peers.compare([
        ['SET', 'k', 'some text'],
        'SET n 5',
        command,
        ...keys.map((key) => `OBJECT FREQ ${key}`),
        command,
        command,
        ...keys.map((key) => `OBJECT FREQ ${key}`),
        'OBJECT IDLETIME k',
      ]);
    });

    it('inside MULTI, and after CLIENT NO-TOUCH', () =>
      peers.compare(['SET k v', 'MULTI', 'GET k', 'GET k', 'EXEC', 'OBJECT FREQ k']));

    it('stays at 255', () => peers.compare(['SET k v', ...Array(300).fill('GET k'), 'OBJECT FREQ k']));
  },
  { ours: LFU, theirs: [...LFU, '--maxmemory', '500mb'] },
);

describeWithRedis('without an LFU policy', (peers) => {
  it('OBJECT FREQ is an error, and the settings are read back', () =>
    peers.compare(
      [
        'SET k v',
        'OBJECT FREQ k',
        'OBJECT IDLETIME k',
        'CONFIG SET lfu-log-factor 3 lfu-decay-time 7',
        'CONFIG GET lfu-log-factor',
        'CONFIG GET lfu-decay-time',
        'CONFIG SET lfu-log-factor 10 lfu-decay-time 1',
        'CONFIG SET lfu-decay-time -1',
      ],
      // A second may end between SET and the question.
      { normalize: (reply, step) => (step === 'OBJECT IDLETIME k' ? reply.replace(':1', ':0') : reply) },
    ));
});

/**
 * Users and rights against a real redis-server: the same rules, the same requests, the same replies.
 *
 * The oracle (7.0) shortens rules about commands in its own way; 7.2 keeps them as they were given, so what GETUSER and LIST
 * show of those is tested in src/commands/acl/users.test.ts.
 */
import { it } from 'vitest';
import { type CompareOptions, describeWithRedis, type Step } from '../helpers/redis-oracle.js';

/** The steps run as a user with these rules. */
const as = (rules: string, ...steps: readonly Step[]): Step[] => [
  `ACL SETUSER tester reset on nopass ${rules}`,
  'AUTH tester any',
  ...steps,
  'AUTH default any',
];

/** 7.2 says the same in other words. */
const inWordsOf72 = (reply: string): string =>
  reply
    .replace(/User \S+ has no perm|[Tt]his user has no perm/g, 'USER has no perm')
    .replace('USER has no permissions to access one of the keys used as arguments', 'No permissions to access a key')
    .replace(/^\$\d+\r\nUSER/, 'USER');

describeWithRedis('ACL', (peers) => {
  const compare = (steps: readonly Step[], options: CompareOptions = {}): Promise<void> =>
    peers.compare(steps, { normalize: inWordsOf72, ...options });

  it('rules: what is accepted, and what is said of the rest', () =>
    compare([
      'ACL SETUSER u',
      ['ACL', 'SETUSER', 'a b'],
      ['ACL', 'SETUSER', 'a\0b'],
      'ACL SETUSER u nonsense',
      'ACL SETUSER u +nosuch',
      'ACL SETUSER u -nosuch',
      'ACL SETUSER u +@nosuch',
      'ACL SETUSER u +config|nosuch',
      'ACL SETUSER u +config|get|x',
      'ACL SETUSER u +get|a|b',
      'ACL SETUSER u +select|',
      'ACL SETUSER u +select|0',
      'ACL SETUSER u -select|0',
      'ACL SETUSER u ~* ~more',
      'ACL SETUSER u &* &more',
      'ACL SETUSER u resetkeys %X~a',
      'ACL SETUSER u resetkeys %~a',
      'ACL SETUSER u resetkeys %RR~a',
      'ACL SETUSER u resetkeys %RW~a %r~b %w~c %R~c',
      ['ACL', 'SETUSER', 'u', '~a b'],
      'ACL SETUSER u #1234',
      'ACL SETUSER u !1234',
      'ACL SETUSER u <never',
      'ACL SETUSER u (',
      'ACL SETUSER u )',
      'ACL SETUSER u (+get ~a',
      'ACL SETUSER u (nonsense)',
      ['ACL', 'SETUSER', 'u', ' () '],
      'ACL SETUSER u ON SKIP-SANITIZE-PAYLOAD >one >two >one resetchannels &a &b &a',
      'ACL GETUSER u',
      'ACL SETUSER u <two sanitize-payload nopass',
      'ACL GETUSER u',
      'ACL SETUSER u clearselectors (~a +get) ( %R~b +set )',
      'ACL GETUSER u',
      'ACL SETUSER u reset',
      'ACL GETUSER u',
      'ACL USERS',
      'ACL GETUSER nobody',
      'ACL DELUSER nobody u default',
      'ACL DELUSER nobody u u',
      'ACL USERS',
    ]));

  it('GETUSER in RESP3', () =>
    compare(
      [
        'HELLO 3',
        'ACL SETUSER r3 on sanitize-payload >p ~a %R~b &c +get (~d +set)',
        'ACL GETUSER r3',
        'ACL GETUSER nobody',
        'ACL DELUSER r3',
      ],
      { except: [{ step: /^HELLO/, because: 'ids and versions differ' }] },
    ));

  it('subcommands with wrong arguments', () =>
    compare([
      'ACL',
      'ACL NOSUCH',
      'ACL WHOAMI x',
      'ACL SETUSER',
      'ACL GETUSER',
      'ACL CAT nosuch',
      'ACL CAT a b',
      'ACL GENPASS 0',
      'ACL GENPASS x',
      'ACL GENPASS 5000',
      'ACL GENPASS 1 2',
      'ACL LOG x',
      'ACL LOG -1',
      'ACL LOAD',
      'ACL SAVE',
      'ACL CAT',
      'ACL DRYRUN nobody get a',
      'ACL DRYRUN default nosuch a',
      'ACL DRYRUN default get',
      'ACL DRYRUN default set k v',
    ]));

  it('commands', () =>
    compare([
      ...as('~* +get', 'GET a', 'SET a b', 'PING', 'ACL WHOAMI', 'AUTH default', 'nosuch'),
      ...as('~* +@string -get', 'SET a b', 'GET a', 'GETRANGE a 0 -1', 'DEL a'),
      ...as('~* +@all -@write', 'SET a b', 'GET a', 'PING'),
      ...as('~* +client|id +client|setname', 'CLIENT SETNAME me', 'CLIENT GETNAME', 'CLIENT NOSUCH', 'CLIENT'),
      ...as('~* +@all -client', 'CLIENT ID', 'CLIENT GETNAME', 'ECHO x'),
      ...as('~* +select|0', 'SELECT 0', 'SELECT 1', 'SELECT'),
      ...as('~* -@all +config -config|set', 'CONFIG SET hz 11', 'CONFIG GET hz'),
      ...as('', 'GET a', 'PING', 'HELLO x', 'HELLO 2 AUTH tester'),
    ]));

  it('keys', () =>
    compare([
      'SET read:1 one',
      'SET write:1 two',
      ...as('+@all ~a:*', 'SET a:1 x', 'SET b:1 x', 'MSET a:1 x a:2 y', 'MSET a:1 x b:2 y', 'MGET a:1 a:2 c', 'DBSIZE'),
      ...as(
        '+@all %R~read:* %W~write:* %RW~both:*',
        'GET read:1',
        'GET write:1',
        'SET read:1 x',
        'SET write:1 x',
        'SET write:1 x GET',
        'SET both:1 x GET',
        'COPY read:1 write:2',
        'COPY write:1 write:2',
        'COPY read:1 read:2',
        'EXISTS read:1 write:1',
        'EXISTS other',
        'TYPE write:1',
        'STRLEN write:1',
        'STRLEN other',
        'APPEND write:1 x',
        'GETDEL both:1',
        'GETDEL write:1',
        'BITFIELD read:1 GET u4 0',
        'BITFIELD read:1 SET u4 0 1',
        'BITFIELD write:1 GET u4 0',
        'BITOP AND write:3 read:1 read:2',
        'BITOP AND read:3 read:1',
        'RENAME both:1 both:2',
        'RENAME read:1 write:1',
        'OBJECT ENCODING read:1',
        'OBJECT ENCODING other',
      ),
      ...as('+@all (~a* +get) (~b* +set)', 'GET a', 'GET b', 'SET b 1', 'SET a 1', 'PING'),
      ...as('(~a* +get) (~b* +set)', 'GET a', 'GET b', 'SET b 1', 'SET a 1', 'PING'),
    ]));

  it('large values are checked before they are stored', () =>
    compare([
      ...as('+@all ~a', ['SET', 'b', 'x'.repeat(100_000)], ['SET', 'a', 'y'.repeat(100_000)], 'STRLEN a'),
      'EXISTS b',
    ]));

  it('transactions', () =>
    compare([
      ...as(
        '+@all -incr ~a*',
        'MULTI',
        'SET a 1',
        'INCR a',
        'EXEC',
        'MULTI',
        'SET b 1',
        'EXEC',
        'MULTI',
        'GET a',
        'EXEC',
      ),
    ]));

  it('DRYRUN', () =>
    compare([
      'ACL SETUSER dry reset +@all -append %R~read* %W~write* %RW~rw*',
      ...[
        'get read',
        'get write',
        'set write x',
        'set read x',
        'set rw x get',
        'append rw x',
        'mget read rw write',
      ].map((request) => `ACL DRYRUN dry ${request}`),
      'ACL DRYRUN dry object|encoding read',
      'ACL DRYRUN dry object encoding read',
      'ACL DELUSER dry',
    ]));

  it('logging in', () =>
    compare([
      'AUTH x',
      'AUTH a b c',
      'AUTH nobody x',
      'ACL SETUSER login >right',
      'AUTH login right',
      'ACL SETUSER login on',
      'AUTH login wrong',
      'ACL WHOAMI',
      'AUTH login right',
      'ACL WHOAMI',
      'AUTH default any',
      'HELLO 3 AUTH login wrong',
      'HELLO 3 SETNAME',
      'ACL DELUSER login',
    ]));

  it('requirepass is the password of the default user', () =>
    compare([
      'CONFIG SET requirepass secret',
      'RESET',
      'PING',
      'AUTH default wrong',
      'AUTH secret',
      'CONFIG SET requirepass other',
      'AUTH secret',
      'AUTH other',
      'ACL SETUSER default >third',
      'AUTH third',
      'CONFIG GET requirepass',
      ['CONFIG', 'SET', 'requirepass', ''],
      'AUTH any',
      'ACL SETUSER default off',
      'PING',
      'ACL SETUSER default on',
    ]));
});

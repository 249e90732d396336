/** Keyspace events against redis-server: which commands fire which events, in which order, in which database. */
import { it } from 'vitest';
import { compareConversations, type Line } from '../helpers/conversation.js';
import { describeWithRedis } from '../helpers/redis-oracle.js';

/** The listener hears everything; the requests follow. */
function listening(classes: string, requests: readonly string[]): Line[] {
  return [
    ['l', 'PSUBSCRIBE __key*'],
    ['p', `CONFIG SET notify-keyspace-events ${classes}`],
    ...requests.map((request): Line => ['p', request]),
    ['p', 'CONFIG SET notify-keyspace-events ""'],
    ['p', 'SET unheard 1'],
  ];
}

describeWithRedis('keyspace events', (peers) => {
  it('of strings', () =>
    compareConversations(
      peers,
      listening('KEAmn', [
        'SET a 1',
        'SET a 1 EX 100',
        'SET a 1 NX',
        'SET a 1 XX KEEPTTL',
        'SET a 2 GET',
        'SET g 2 GET PX 100000',
        'SETNX a 1',
        'SETNX b 1',
        'GETSET b 2',
        'GETSET c 2',
        'SETEX c 100 1',
        'PSETEX c 100000 1',
        'MSET x 1 y 2 x 3',
        'MSETNX x 1 z 1',
        'MSETNX u 1 v 1',
        'INCR n',
        'DECRBY n 3',
        'INCRBYFLOAT n 1.5',
        'INCR n',
        'APPEND a bc',
        'SETRANGE a 1 xyz',
        'SETRANGE nothing 0 ""',
        'SETBIT bits 7 1',
        'SETBIT bits 7 0',
        'BITFIELD bits SET u8 0 5',
        'BITFIELD bits GET u8 0',
        'BITOP AND to bits a',
        'BITOP AND to none1 none2',
        'GET missing',
        'GET a',
        'MGET a missing missing2',
        'STRLEN missing',
        'GETRANGE missing 0 1',
        'GETDEL a',
        'GETDEL a',
        'SET e 1',
        'GETEX e EX 100',
        'GETEX e PERSIST',
        'GETEX e PERSIST',
        'GETEX e',
        'GETEX e PXAT 1',
        'GETEX missing EX 1',
      ]),
    ));

  it('of hashes', () =>
    compareConversations(
      peers,
      listening('KEAmn', [
        'HSET h a 1 b 2',
        'HSET h a 1',
        'HMSET h c 3',
        'HSETNX h a 2',
        'HSETNX h d 2',
        'HSETNX fresh a 1',
        'HINCRBY h n 5',
        'HINCRBY h n x',
        'HINCRBYFLOAT h f 1.5',
        'HINCRBY other n 1',
        'HDEL h nope',
        'HDEL h a nope b',
        'HGET nope a',
        'HMGET nope a b',
        'HGETALL nope',
        'HDEL h c d n f x',
        'HDEL h c',
        'HSET h a 1',
      ]),
    ));

  it('of streams', () =>
    compareConversations(
      peers,
      listening('KEAmn', [
        'XADD s 1-1 a b',
        'XADD s 1-2 a b',
        'XADD s 1-2 a b',
        'XADD nope NOMKSTREAM 1-2 a b',
        'XADD s MAXLEN 2 1-3 a b',
        'XADD s MAXLEN 5 1-4 a b',
        'XDEL s 1-3',
        'XDEL s 1-3 9-9',
        'XTRIM s MAXLEN 1',
        'XTRIM s MAXLEN 1',
        'XTRIM nope MAXLEN 1',
        'XSETID s 5-0',
        'XGROUP CREATE s g 0',
        'XGROUP CREATE s g 0',
        'XGROUP CREATE t g 0 MKSTREAM',
        'XGROUP CREATECONSUMER s g a',
        'XGROUP CREATECONSUMER s g a',
        'XGROUP SETID s g 0',
        'XREADGROUP GROUP g a STREAMS s >',
        'XREADGROUP GROUP g new STREAMS s 0',
        'XCLAIM s g b 0 1-4',
        'XAUTOCLAIM s g c 0 0',
        'XACK s g 1-4',
        'XGROUP DELCONSUMER s g a',
        'XGROUP DELCONSUMER s g a',
        'XGROUP DESTROY s g',
        'XGROUP DESTROY s g',
        'XRANGE missing - +',
        'XLEN missing',
        'XINFO STREAM missing',
        'XDEL s 1-4',
        'DEL s',
      ]),
    ));

  it('of sets', () =>
    compareConversations(
      peers,
      listening('KEAn', [
        'SADD s a b c',
        'SADD s a',
        'SREM s nope',
        'SREM s a nope',
        'SMOVE s t b',
        'SMOVE s t nope',
        'SMOVE s s c',
        'SMOVE s t c',
        'SADD u b c x',
        'SMOVE u t b',
        'SINTERSTORE d t u',
        'SUNIONSTORE d t u',
        'SDIFFSTORE d t t',
        'SDIFFSTORE d t t',
        'SPOP t 0',
        'SREM t c',
        'SPOP t 100',
        'SREM u x',
        'SPOP u',
        'SREM nope a',
        'SADD s a',
        'SREM s a',
      ]),
    ));

  it('of lists', () =>
    compareConversations(
      peers,
      listening('KEAn', [
        'RPUSH l a b c d e',
        'LPUSH l a',
        'LPUSHX l z',
        'RPUSHX nope z',
        'LPOP l',
        'RPOP l 2',
        'LPOP l 0',
        'LSET l 0 v',
        'LSET l 100 v',
        'LINSERT l BEFORE b x',
        'LINSERT l BEFORE nope x',
        'LREM l 0 x',
        'LREM l 0 nope',
        'LTRIM l 0 1',
        'LTRIM l 0 -1',
        'LMOVE l m LEFT RIGHT',
        'RPOPLPUSH l m',
        'LMOVE m m LEFT RIGHT',
        'LMPOP 1 m LEFT COUNT 10',
        'RPUSH l a a',
        'LREM l 0 a',
        'RPUSH l a',
        'LTRIM l 5 6',
        'RPUSH l a b',
        'BLPOP l 0',
        'BLMOVE l k LEFT LEFT 0',
      ]),
    ));

  it('of keys', () =>
    compareConversations(
      peers,
      listening('KEAmn', [
        'MSET a 1 b 2 c 3',
        'DEL a nope',
        'UNLINK b nope',
        'RENAME c d',
        'RENAME d d',
        'SET e 1',
        'RENAME e d',
        'RPUSH list 1 2',
        'RENAME list d',
        'RPUSH list 1 2',
        'COPY list d REPLACE',
        'COPY list d DB 3 REPLACE',
        'COPY list d DB 3 REPLACE',
        'RENAMENX d f',
        'SET g 1',
        'RENAMENX f g',
        'COPY f h',
        'COPY f h REPLACE',
        'COPY f h DB 3',
        'MOVE f 2',
        'MOVE h 2',
        'SELECT 2',
        'EXPIRE f 100',
        'EXPIRE nope 100',
        'EXPIRE f 100 NX',
        'PEXPIREAT f 1',
        'SET k 1 PX 100000',
        'PERSIST k',
        'PERSIST k',
        'EXPIRE k -1',
        'EXISTS k',
        'TTL k',
        'TYPE k',
        'TOUCH k',
        'OBJECT ENCODING k',
        'SELECT 0',
        'FLUSHDB',
        'MULTI',
        'SET m 1',
        'DEL m',
        'EXEC',
      ]),
    ));

  it('of one class, to one place', async () => {
    const requests = ['SET a 1 EX 100', 'DEL a', 'GET a', 'EXPIRE b 100'];
    for (const classes of ['K$', 'Eg', 'KE', '$g', 'Em', 'Kn', 'KEx', 'KA']) {
      await compareConversations(peers, listening(classes, requests));
    }
  });

  it('of expiry', () =>
    compareConversations(
      peers,
      [
        ...listening('KEx', []).slice(0, 2),
        ['p', 'SET a 1 PX 40'],
        ['p', 'SELECT 1'],
        ['p', 'SET b 1 PX 40'],
        ['l', 'WAIT A MOMENT'],
        ['p', 'GET b'],
        ['p', 'SELECT 0'],
        ['p', 'GET a'],
        ['p', 'CONFIG SET notify-keyspace-events ""'],
      ],
      (text) => [...text.replace(/\*2[^*]*the-end\r\n$/, '').split('*4\r\n')].sort().join('|'),
    ));

  it('of sorted sets', () =>
    compareConversations(
      peers,
      listening('KEAmn', [
        'ZADD z 1 a 2 b 3 c',
        'ZADD z 1 a',
        'ZADD z 5 a',
        'ZADD z NX 5 a',
        'ZADD z INCR 1 a',
        'ZINCRBY z 1 fresh',
        'ZREM z nope',
        'ZREM z fresh',
        'ZADD z 1 d 2 e 3 f 4 g 5 h 6 i',
        'ZREMRANGEBYRANK z 0 0',
        'ZREMRANGEBYRANK z 50 60',
        'ZREMRANGEBYSCORE z 2 2',
        'ZADD l 0 a 0 b',
        'ZREMRANGEBYLEX l - +',
        'ZPOPMIN z',
        'ZPOPMAX z 2',
        'ZMPOP 2 nope z MAX COUNT 50',
        'ZADD z 1 a 2 b',
        'ZUNIONSTORE d 1 z',
        'ZINTERSTORE d 1 z',
        'ZDIFFSTORE d 2 z z',
        'ZRANGESTORE r z 0 0',
        'ZRANGESTORE r z 5 9',
        'ZRANGESTORE r z 5 9',
        'ZREM z a b',
      ]),
    ));

  it('of geo commands', () =>
    compareConversations(
      peers,
      listening('KEAmn', [
        'GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania',
        'GEOADD g NX 1 2 Palermo',
        'GEOADD g 1 2 Palermo',
        'GEOPOS nope a',
        'GEOSEARCH nope FROMLONLAT 1 2 BYRADIUS 1 km',
        'GEOSEARCHSTORE d g FROMLONLAT 1 2 BYRADIUS 1 km',
        'GEORADIUS g 1 2 1 km STORE d',
        'GEORADIUSBYMEMBER g Palermo 1 km STOREDIST d',
        'GEORADIUS g 100 2 1 km STORE d',
        'GEORADIUS g 100 2 1 km STORE d',
        'GEOSEARCHSTORE d nope FROMLONLAT 1 2 BYRADIUS 1 km',
      ]),
    ));

  it('of SORT', () =>
    compareConversations(
      peers,
      listening('KEAmn', [
        'RPUSH l 3 1 2',
        'MSET w_1 3 w_2 1',
        'SORT l BY w_* GET w_* GET none_*->x',
        'SORT l STORE d',
        'SORT l STORE l',
        'SORT nope STORE d',
        'SORT nope STORE d',
        'SORT nope',
      ]),
    ));

  it('as a setting', () =>
    compareConversations(peers, [
      ...['KEA', 'AKE', '$lshzxetdgKE', 'KEmn', 'Kx', 'K', ''].flatMap((classes): Line[] => [
        ['p', ['CONFIG', 'SET', 'notify-keyspace-events', classes]],
        ['p', 'CONFIG GET notify-keyspace-events'],
      ]),
      ['p', 'CONFIG SET notify-keyspace-events KEy'],
    ]));
});

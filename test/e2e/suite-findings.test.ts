/**
 * What Redis's own test-suite has found here (test/compat/redis-suite.mjs), told in our own words: order of MONITOR's lines, entries of
 * the slow log, tracking and pauses of scripts, ends of transactions.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type InProcessServer, startInProcess } from '../helpers/in-process.js';
import { RawClient } from '../helpers/raw-client.js';
import { parseReply, replyEnd } from '../helpers/resp-reply.js';
import { multibulk } from '../helpers/session.js';

let server: InProcessServer;
let connections: RawClient[] = [];

beforeAll(async () => {
  server = await startInProcess({ memcachedPort: 0 });
}, 60_000);

afterEach(async () => {
  const client = await connect();
  await ask(client, 'CLIENT UNPAUSE');
  await ask(client, 'DEBUG SET-ACTIVE-EXPIRE 1');
  await ask(client, 'CONFIG SET slowlog-log-slower-than 10000 tracking-table-max-keys 1000000');
  await ask(client, 'FLUSHALL');
  for (const connection of connections) connection.destroy();
  connections = [];
});

afterAll(async () => {
  await server.stop();
});

type Request = string | readonly string[];

async function connect(): Promise<RawClient> {
  const connection = await RawClient.connect(server.redisPort);
  connections.push(connection);
  return connection;
}

function send(client: RawClient, request: Request): void {
  client.write(multibulk(typeof request === 'string' ? request.split(' ') : request));
}

async function receive(client: RawClient): Promise<string> {
  await client.until(() => replyEnd(client.text, 0) >= 0, 'a reply');
  return (await client.read(replyEnd(client.text, 0))).toString('latin1');
}

async function ask(client: RawClient, request: Request): Promise<string> {
  send(client, request);
  return receive(client);
}

/** Waits until so many clients are blocked or paused. */
async function blockedClients(client: RawClient, count: number): Promise<void> {
  await expect.poll(() => ask(client, 'INFO clients'), { timeout: 10_000 }).toContain(`blocked_clients:${count}\r\n`);
}

/** The words of the slow log's entries, newest first. */
async function slowCommands(client: RawClient): Promise<string[]> {
  const entries = parseReply(await ask(client, 'SLOWLOG GET')) as [number, number, number, string[]][];
  return entries.map(([, , , words]) => words.join(' '));
}

describe('MONITOR', () => {
  it('shows a script before the commands that it runs, and these as a script’s', async () => {
    const [monitor, client] = [await connect(), await connect()];
    await ask(monitor, 'MONITOR');
    await ask(client, [
      'FUNCTION',
      'LOAD',
      'REPLACE',
      "#!lua name=l\nredis.register_function('f', function() return redis.call('GET', 'b') end)",
    ]);
    expect(await receive(monitor)).toContain('"FUNCTION" "LOAD"');
    await ask(client, ['EVAL', "return redis.call('SET', 'a', 1)", '0']);
    expect(await receive(monitor)).toContain('"EVAL"');
    expect(await receive(monitor)).toMatch(/^\+[\d.]+ \[0 lua\] "SET" "a" "1"\r\n$/);
    await ask(client, 'FCALL f 0');
    expect(await receive(monitor)).toContain('"FCALL" "f" "0"');
    expect(await receive(monitor)).toContain('[0 lua] "GET" "b"');
  });
});

describe('SLOWLOG', () => {
  it('has no entry of the GET that shows it, and those before it in order', async () => {
    const client = await connect();
    await ask(client, 'CONFIG SET slowlog-log-slower-than 0');
    await ask(client, 'SLOWLOG RESET');
    await ask(client, 'SADD s a b');
    await ask(client, 'SPOP s 10');
    expect(await slowCommands(client)).toEqual(['SPOP s 10', 'SADD s a b', 'SLOWLOG RESET']);
    expect((await slowCommands(client))[0]).toBe('SLOWLOG GET');
  });

  it('has a blocking command when its client has been answered', async () => {
    const [waiter, client] = [await connect(), await connect()];
    await ask(client, 'CONFIG SET slowlog-log-slower-than 0');
    send(waiter, 'BLPOP l 0');
    await blockedClients(client, 1);
    expect((await slowCommands(client)).filter((words) => words.startsWith('BLPOP'))).toEqual([]);
    await ask(client, 'RPUSH l x');
    await receive(waiter);
    expect((await slowCommands(client)).filter((words) => words.startsWith('BLPOP'))).toEqual(['BLPOP l 0']);
  });
});

describe('scripts', () => {
  it('may call blocking commands, which do not wait', async () => {
    const client = await connect();
    for (const call of [
      "'BLPOP', 'l', 0",
      "'BRPOPLPUSH', 'l', 'm', 0",
      "'BZPOPMIN', 'z', 0",
      "'BLMPOP', 0, 1, 'l', 'LEFT'",
    ]) {
      expect(await ask(client, ['EVAL', `return redis.call(${call}) == false`, '0'])).toBe(':1\r\n');
    }
  });

  it('that read a key track it for their caller; their own KEYS alone do not', async () => {
    const [client, writer] = [await connect(), await connect()];
    await ask(client, 'HELLO 3');
    await ask(client, 'CLIENT TRACKING ON');
    await ask(client, ['EVAL_RO', "return redis.call('GET', KEYS[1])", '2', 'read', 'named']);
    await ask(writer, 'SET named 1');
    await ask(writer, 'SET read 1');
    expect(await receive(client)).toBe('>2\r\n$10\r\ninvalidate\r\n*1\r\n$4\r\nread\r\n');
  });

  it('that promise not to write do not wait for the end of a pause of writes', async () => {
    const [client, control] = [await connect(), await connect()];
    const reading = ['EVAL', '#!lua flags=no-writes\nreturn 1', '0'];
    await ask(control, [
      'FUNCTION',
      'LOAD',
      'REPLACE',
      "#!lua name=l\nredis.register_function{function_name='f', callback=function() return 2 end, flags={'no-writes'}}",
    ]);
    const digest = parseReply(await ask(control, ['SCRIPT', 'LOAD', '#!lua flags=no-writes\nreturn 3'])) as string;
    await ask(control, 'CLIENT PAUSE 60000 WRITE');
    expect(await ask(client, reading)).toBe(':1\r\n');
    expect(await ask(client, 'FCALL f 0')).toBe(':2\r\n');
    expect(await ask(client, `EVALSHA ${digest} 0`)).toBe(':3\r\n');
    await ask(client, 'MULTI');
    await ask(client, reading);
    expect(await ask(client, 'EXEC')).toBe('*1\r\n:1\r\n');
    send(client, 'EVAL return(4) 0');
    await blockedClients(control, 1);
    await ask(control, 'CLIENT UNPAUSE');
    expect(await receive(client)).toBe(':4\r\n');
  });

  it('keep a transaction waiting that may write', async () => {
    const [client, control] = [await connect(), await connect()];
    await ask(client, 'MULTI');
    await ask(client, 'EVAL return(5) 0');
    await ask(control, 'CLIENT PAUSE 60000 WRITE');
    send(client, 'EXEC');
    await blockedClients(control, 1);
    await ask(control, 'CLIENT UNPAUSE');
    expect(await receive(client)).toBe('*1\r\n:5\r\n');
  });
});

describe('time', () => {
  it('stands still in scripts and transactions', async () => {
    const client = await connect();
    await ask(client, 'DEBUG SET-DISABLE-DENY-SCRIPTS 1');
    const script =
      "local t = redis.call('TIME') redis.call('SET', 'k', 1, 'PX', 1) redis.call('DEBUG', 'SLEEP', 0.05) " +
      "local u = redis.call('TIME') return {redis.call('EXISTS', 'k'), t[1] == u[1] and t[2] == u[2]}";
    expect(await ask(client, ['EVAL', script, '0'])).toBe('*2\r\n:1\r\n:1\r\n');
    await ask(client, 'DEBUG SET-DISABLE-DENY-SCRIPTS 0');
    await ask(client, 'MULTI');
    for (const command of ['TIME', 'DEBUG SLEEP 0.01', 'TIME']) await ask(client, command);
    const [before, , after] = parseReply(await ask(client, 'EXEC')) as unknown[];
    expect(after).toEqual(before);
  });
});

describe('a waiting client', () => {
  it('is not given what expired while the transaction ran that brought it', async () => {
    const [waiter, client] = [await connect(), await connect()];
    send(waiter, 'BLPOP l 0');
    await blockedClients(client, 1);
    await ask(client, 'MULTI');
    for (const command of ['RPUSH l old', 'PEXPIRE l 20', 'DEBUG SLEEP 0.1']) await ask(client, command);
    await ask(client, 'EXEC');
    await blockedClients(client, 1);
    await ask(client, 'RPUSH l new');
    expect(await receive(waiter)).toBe('*2\r\n$1\r\nl\r\n$3\r\nnew\r\n');
  });
});

describe('EXEC', () => {
  it('that is refused for a busy script ends its transaction', async () => {
    const [slow, client] = [await connect(), await connect()];
    await ask(client, 'CONFIG SET busy-reply-threshold 10');
    await ask(client, 'MULTI');
    await ask(client, 'SET a 1');
    send(slow, ['EVAL', 'while true do end', '0']);
    await expect.poll(() => ask(client, 'GET a'), { timeout: 10_000 }).toContain('BUSY');
    expect(await ask(client, 'EXEC')).toMatch(/^-EXECABORT Transaction discarded because of: BUSY /);
    expect(await ask(client, 'SCRIPT KILL')).toBe('+OK\r\n');
    await receive(slow);
    expect(await ask(client, 'EXEC')).toBe('-ERR EXEC without MULTI\r\n');
  });
});

describe('expired keys', () => {
  /** Of INFO's field. */
  const field = async (client: RawClient, section: string, name: string): Promise<string> =>
    new RegExp(`^${name}:(.*)\r$`, 'm').exec(await ask(client, `INFO ${section}`))?.[1] ?? '';

  it('that SCAN comes across are removed', async () => {
    const client = await connect();
    await ask(client, 'DEBUG SET-ACTIVE-EXPIRE 0');
    for (let i = 0; i < 20; i++) await ask(client, `SET k${i} v PX ${i % 2 === 0 ? 1 : 100_000}`);
    await expect.poll(() => ask(client, 'EXISTS k0 k2 k18')).toBe(':0\r\n');
    expect(await field(client, 'keyspace', 'db0')).toContain('keys=17,');
    let cursor = '0';
    do [cursor] = parseReply(await ask(client, `SCAN ${cursor}`)) as [string, string[]];
    while (cursor !== '0');
    expect(await field(client, 'keyspace', 'db0')).toContain('keys=10,');
  });

  it('stay while writes are paused, though nobody sees them', async () => {
    const client = await connect();
    const before = Number(await field(client, 'stats', 'expired_keys'));
    await ask(client, 'MULTI');
    await ask(client, 'SET a 1 PX 5');
    await ask(client, 'SET b 1 PX 5');
    await ask(client, 'CLIENT PAUSE 60000 WRITE');
    await ask(client, 'EXEC');
    await expect.poll(() => ask(client, 'GET a')).toBe('$-1\r\n');
    await ask(client, 'SCAN 0');
    expect(Number(await field(client, 'stats', 'expired_keys'))).toBe(before);
    await ask(client, 'CLIENT UNPAUSE');
    await expect.poll(async () => Number(await field(client, 'stats', 'expired_keys'))).toBe(before + 2);
  });
});

describe('client tracking', () => {
  it('invalidates keys when the table gets smaller', async () => {
    const client = await connect();
    await ask(client, 'HELLO 3');
    await ask(client, 'CLIENT TRACKING ON');
    await ask(client, 'MSET a 1 b 2');
    await ask(client, 'MGET a b');
    expect(await ask(client, 'INFO stats')).toContain('tracking_total_items:2\r\n');
    send(client, 'CONFIG SET tracking-table-max-keys 1');
    const got = [await receive(client), await receive(client)];
    expect(got).toContain('>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n');
  });
});

describe('SWAPDB', () => {
  it('wakes who waits for a key of the database that has come', async () => {
    const [waiter, client] = [await connect(), await connect()];
    await ask(client, 'SELECT 1');
    await ask(client, 'RPUSH k hello');
    send(waiter, 'BRPOP k 0');
    await blockedClients(client, 1);
    await ask(client, 'SWAPDB 1 0');
    expect(await receive(waiter)).toBe('*2\r\n$1\r\nk\r\n$5\r\nhello\r\n');
  });
});

describe('DEBUG', () => {
  it('digests values by what they hold', async () => {
    const client = await connect();
    const digests = async (keys: string): Promise<string[]> =>
      parseReply(await ask(client, `DEBUG DIGEST-VALUE ${keys}`)) as string[];
    await ask(client, 'CONFIG SET hash-max-listpack-entries 2');
    await ask(client, 'HSET h a 1 b 2');
    await ask(client, 'HSET i c 3 b 2 a 1');
    await ask(client, 'HDEL i c');
    await ask(client, 'CONFIG SET hash-max-listpack-entries 512');
    await ask(client, 'RPUSH l a b');
    await ask(client, 'RPUSH m b a');
    await ask(client, 'COPY l n');
    expect(await ask(client, 'OBJECT ENCODING i')).toContain('hashtable');
    const [h, i, l, m, n, none] = await digests('h i l m n none');
    expect(h).toBe(i);
    expect(l).toBe(n);
    expect(new Set([h, l, m]).size).toBe(3);
    expect(none).toBe('0'.repeat(40));
    const before = await ask(client, 'DEBUG DIGEST');
    await ask(client, 'SET s 1');
    expect(await ask(client, 'DEBUG DIGEST')).not.toBe(before);
    await ask(client, 'DEL s');
    expect(await ask(client, 'DEBUG DIGEST')).toBe(before);
  });

  it('RELOAD saves everything and loads it again', async () => {
    const client = await connect();
    await ask(client, 'SET s text');
    await ask(client, 'SET n 123 EX 1000');
    await ask(client, 'HSET h a 1 b 2');
    await ask(client, 'RPUSH l a b c');
    await ask(client, 'SADD set 1 2 x');
    await ask(client, 'ZADD z 1.5 a 2 b');
    await ask(client, [
      'FUNCTION',
      'LOAD',
      'REPLACE',
      "#!lua name=kept\nredis.register_function('seven', function() return 7 end)",
    ]);
    const before = await ask(client, 'DEBUG DIGEST');
    expect(await ask(client, 'DEBUG RELOAD')).toBe('+OK\r\n');
    expect(await ask(client, 'DEBUG DIGEST')).toBe(before);
    expect(Number(parseReply(await ask(client, 'TTL n')))).toBeGreaterThan(900);
    expect(await ask(client, 'FCALL seven 0')).toBe(':7\r\n');
    expect(await ask(client, 'DEBUG RELOAD NOFLUSH')).toContain('Error trying to load the RDB dump');
    await ask(client, 'SET later 1');
    expect(await ask(client, 'DEBUG RELOAD NOSAVE NOFLUSH MERGE')).toBe('+OK\r\n');
    expect(await ask(client, 'DBSIZE')).toBe(':7\r\n');
    expect(await ask(client, 'DEBUG RELOAD NOSAVE')).toBe('+OK\r\n');
    expect(await ask(client, 'DEBUG DIGEST')).toBe(before);
    expect(await ask(client, 'DEBUG RELOAD NOW')).toContain('only supports the MERGE, NOFLUSH and NOSAVE options');
    await ask(client, 'FUNCTION FLUSH');
  });

  it('may be called by scripts when a test asks for that', async () => {
    const client = await connect();
    const call = ['EVAL', "return redis.call('DEBUG', 'PROTOCOL', 'integer')", '0'];
    expect(await ask(client, call)).toContain('not allowed from script');
    await ask(client, 'DEBUG SET-DISABLE-DENY-SCRIPTS 1');
    expect(await ask(client, call)).toBe(':12345\r\n');
    await ask(client, 'DEBUG SET-DISABLE-DENY-SCRIPTS 0');
    expect(await ask(client, call)).toContain('not allowed from script');
  });
});

describe('replies of scripts', () => {
  it('have big numbers on one line in both versions of the protocol', async () => {
    const client = await connect();
    const number = ['EVAL', "return {big_number='12\\r\\n3'}", '0'];
    expect(await ask(client, number)).toBe('$5\r\n12  3\r\n');
    await ask(client, 'HELLO 3');
    expect(await ask(client, number)).toBe('(12  3\r\n');
  });
});

describe('ACL SETUSER', () => {
  it('closes subscribers that may no longer listen to what they have subscribed to', async () => {
    const control = await connect();
    for (const [rule, subscribe] of [
      ['&news', 'SUBSCRIBE news'],
      ['&news', 'SSUBSCRIBE news'],
      ['&n*', 'PSUBSCRIBE n*'],
    ]) {
      const [revoked, kept] = [await connect(), await connect()];
      await ask(control, `ACL SETUSER listener on nopass +@all resetchannels ${rule} &other`);
      for (const client of [revoked, kept]) await ask(client, 'AUTH listener x');
      await ask(revoked, subscribe);
      await ask(kept, 'SUBSCRIBE other');
      await ask(control, 'ACL SETUSER listener resetchannels &other');
      await revoked.closed();
      expect(await ask(kept, 'PING')).toContain('pong');
    }
    await ask(control, 'ACL DELUSER listener');
  });
});

describe('hash fields', () => {
  it('that have expired are counted, and a packed hash with expiries is a listpackex', async () => {
    const client = await connect();
    await ask(client, 'CONFIG RESETSTAT');
    await ask(client, 'HSET h a 1 b 2 c 3');
    expect(await ask(client, 'OBJECT ENCODING h')).toBe('$8\r\nlistpack\r\n');
    await ask(client, 'HPEXPIRE h 1 FIELDS 2 a b');
    expect(await ask(client, 'OBJECT ENCODING h')).toBe('$10\r\nlistpackex\r\n');
    await expect.poll(() => ask(client, 'HGETALL h')).toBe('*2\r\n$1\r\nc\r\n$1\r\n3\r\n');
    await expect.poll(() => ask(client, 'INFO stats')).toContain('expired_subkeys:2\r\n');
  });
});

describe('streams', () => {
  it('count an id on when the last one has the last sequence number of a time to come', async () => {
    const client = await connect();
    await ask(client, 'XADD s 99999999999999-18446744073709551615 a 1');
    expect(await ask(client, 'XADD s * a 1')).toBe('$17\r\n100000000000000-0\r\n');
  });

  it('count the keys that are waited for, and those whose end is', async () => {
    const [list, reader, client] = [await connect(), await connect(), await connect()];
    send(list, 'BLPOP s 0');
    await blockedClients(client, 1);
    expect(await ask(client, 'INFO clients')).toContain('total_blocking_keys:1\r\ntotal_blocking_keys_on_nokey:0\r\n');
    await ask(client, 'XGROUP CREATE s g $ MKSTREAM');
    send(reader, 'XREADGROUP GROUP g c BLOCK 0 STREAMS s >');
    await blockedClients(client, 2);
    expect(await ask(client, 'INFO clients')).toContain('total_blocking_keys:1\r\ntotal_blocking_keys_on_nokey:1\r\n');
    await ask(client, 'DEL s');
    expect(await receive(reader)).toContain('NOGROUP');
  });
});

describe('BITFIELD', () => {
  it('that sets fields to what they are is no change', async () => {
    const [client, other] = [await connect(), await connect()];
    await ask(client, 'BITFIELD b SET i5 0 -3 SET u16 8 700');
    await ask(client, 'WATCH b');
    expect(await ask(other, 'BITFIELD b SET i5 0 -3 GET u16 8 SET u16 8 700')).toBe('*3\r\n:-3\r\n:700\r\n:700\r\n');
    await ask(client, 'MULTI');
    expect(await ask(client, 'EXEC')).toBe('*0\r\n');
    await ask(client, 'WATCH b');
    expect(await ask(other, 'BITFIELD b SET i5 0 -2')).toBe('*1\r\n:-3\r\n');
    await ask(client, 'MULTI');
    expect(await ask(client, 'EXEC')).toBe('*-1\r\n');
  });
});

describe('INFO errorstats', () => {
  it('counts errors under the codes that scripts give them', async () => {
    const client = await connect();
    await ask(client, 'CONFIG RESETSTAT');
    for (let i = 0; i < 3; i++) await ask(client, ['EVAL', "return redis.error_reply('MY_CODE text')", '0']);
    await ask(client, ['EVAL', "return redis.error_reply('OTHER_CODE text')", '0']);
    await ask(client, `EVALSHA ${'0'.repeat(40)} 0`);
    const errors = await ask(client, 'INFO errorstats');
    for (const line of ['MY_CODE:count=3', 'OTHER_CODE:count=1', 'NOSCRIPT:count=1']) expect(errors).toContain(line);
    await ask(client, 'CONFIG RESETSTAT');
    expect(await ask(client, 'INFO errorstats')).not.toContain('CODE');
  });
});

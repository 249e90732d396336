/**
 * Users of a server with several workers: a change holds for every connection of every worker when its reply comes.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { makePool, removePool } from '../helpers/pool.js';
import { RawClient } from '../helpers/raw-client.js';
import { replyEnd } from '../helpers/resp-reply.js';
import { startTestServer } from '../helpers/server.js';

const clients: RawClient[] = [];

afterEach(() => {
  for (const client of clients.splice(0)) client.destroy();
});

async function connect(port: number): Promise<RawClient> {
  const client = await RawClient.connect(port);
  clients.push(client);
  return client;
}

async function ask(client: RawClient, request: string): Promise<string> {
  client.write(`${request}\r\n`);
  await client.until(() => replyEnd(client.text, 0) >= 0, `a reply to ${request}`);
  return (await client.read(replyEnd(client.text, 0))).toString('latin1');
}

const NOPERM = "-NOPERM User alice has no permissions to run the 'get' command\r\n";

describe('users on several workers', { timeout: 60_000 }, () => {
  it('rights, logins, removal and the log reach every worker', async () => {
    const server = await startTestServer({ workers: 3, memcachedPort: 0 });
    const admin = await connect(server.redisPort);
    // The kernel spreads them: with 12 connections no worker stays without one.
    const others = await Promise.all(Array.from({ length: 12 }, () => connect(server.redisPort)));
    expect(await ask(admin, 'ACL SETUSER alice on >pw ~* +@all')).toBe('+OK\r\n');
    for (const client of others) {
      expect(await ask(client, 'AUTH alice pw')).toBe('+OK\r\n');
      expect(await ask(client, 'GET k')).toBe('$-1\r\n');
    }
    await ask(admin, 'ACL SETUSER alice -get');
    for (const client of others) expect(await ask(client, 'GET k')).toBe(NOPERM);
    for (const client of others) expect(await ask(client, 'STRLEN k')).toBe(':0\r\n');

    const log = await ask(admin, 'ACL LOG');
    expect(log).toContain('*1\r\n');
    expect(log).toContain(`$5\r\ncount\r\n:${others.length}\r\n`);
    expect(log).toContain('$6\r\nobject\r\n$3\r\nget\r\n');
    await ask(admin, 'ACL LOG RESET');
    expect(await ask(admin, 'ACL LOG')).toBe('*0\r\n');

    expect(await ask(admin, 'ACL DELUSER alice')).toBe(':1\r\n');
    await Promise.all(others.map((client) => client.closed()));
    await server.stop();
  });

  it('who waits for what it may no longer have gets an error, or goes with its user', async () => {
    const server = await startTestServer({ workers: 2, memcachedPort: 0 });
    const admin = await connect(server.redisPort);
    const others = await Promise.all(Array.from({ length: 6 }, () => connect(server.redisPort)));
    await ask(admin, 'ACL SETUSER alice on >pw ~* +@all');
    await ask(admin, 'ACL SETUSER bob on >pw ~* +@all');
    for (const [i, client] of others.entries()) {
      await ask(client, `AUTH ${i < 4 ? 'alice' : 'bob'} pw`);
      client.write(`${i % 2 === 0 ? 'BLPOP list 0' : 'XREAD BLOCK 0 STREAMS other $'}\r\n`);
    }
    while (!(await ask(admin, 'INFO clients')).includes('blocked_clients:6'));
    await ask(admin, 'ACL SETUSER alice resetkeys ~other');
    for (const client of [others[0], others[2]]) {
      await client.until(() => client.text.includes('\r\n'), 'an error');
      expect((await client.read(client.text.length)).toString()).toBe('-NOPERM No permissions to access a key\r\n');
      expect(await ask(client, 'LLEN other')).toBe(':0\r\n');
    }
    expect(await ask(admin, 'INFO clients')).toContain('blocked_clients:4\r\n');
    expect(await ask(admin, 'INFO commandstats')).toMatch(/cmdstat_blpop:calls=1,.*,rejected_calls=2,failed_calls=0/);
    await ask(admin, 'ACL DELUSER bob');
    await Promise.all(others.slice(4).map((client) => client.closed()));
    expect(await ask(admin, 'XADD other 1-1 a 1')).toBe('$3\r\n1-1\r\n');
    for (const client of [others[1], others[3]]) {
      await client.until(() => client.text.includes('1-1'), 'the entry');
    }
    expect(await ask(admin, 'RPUSH list x')).toBe(':1\r\n');
    expect(await ask(admin, 'LLEN list')).toBe(':1\r\n');
    await server.stop();
  });

  it('a user that removes itself gets the answer, then the connection ends', async () => {
    const server = await startTestServer({ workers: 2, memcachedPort: 0 });
    const client = await connect(server.redisPort);
    await ask(client, 'ACL SETUSER me on nopass +@all');
    await ask(client, 'AUTH me x');
    expect(await ask(client, 'ACL DELUSER me')).toBe(':1\r\n');
    await client.closed();
    await server.stop();
  });

  it('new connections know the users that a restarted worker was not there for', async () => {
    const server = await startTestServer({ workers: 1, memcachedPort: 0, args: ['--requirepass=first'] });
    const client = await connect(server.redisPort);
    expect(await ask(client, 'PING')).toBe('-NOAUTH Authentication required.\r\n');
    await ask(client, 'AUTH first');
    await ask(client, 'CONFIG SET requirepass second');
    const second = await connect(server.redisPort);
    expect(await ask(second, 'PING')).toBe('-NOAUTH Authentication required.\r\n');
    expect(await ask(second, 'AUTH first')).toMatch(/^-WRONGPASS/);
    expect(await ask(second, 'AUTH second')).toBe('+OK\r\n');
    await server.stop();
  });
});

describe('where users come from', { timeout: 60_000 }, () => {
  it('an ACL file is read at the start, saved and loaded', async () => {
    const pool = await makePool();
    const file = join(pool, 'users.acl');
    await writeFile(file, 'user alice on >pw ~a* +@all\nuser default on nopass ~* &* +@all\n');
    const server = await startTestServer({ pool, memcachedPort: 0, args: ['--aclfile=users.acl'] });
    const admin = await connect(server.redisPort);
    const alice = await connect(server.redisPort);
    expect(await ask(alice, 'AUTH alice pw')).toBe('+OK\r\n');
    expect(await ask(alice, 'SET b 1')).toBe('-NOPERM No permissions to access a key\r\n');
    await ask(admin, 'ACL SETUSER bob on nopass +ping');
    expect(await ask(admin, 'ACL SAVE')).toBe('+OK\r\n');
    expect(await readFile(file, 'utf8')).toContain('user bob on nopass sanitize-payload resetchannels -@all +ping\n');

    await writeFile(file, 'user carol on nopass +nosuch\n');
    expect(await ask(admin, 'ACL LOAD')).toMatch(/^-ERR users.acl:1: Error in applying operation '\+nosuch'/);
    expect(await ask(admin, 'ACL USERS')).toBe('*3\r\n$5\r\nalice\r\n$3\r\nbob\r\n$7\r\ndefault\r\n');

    await writeFile(file, 'user carol on nopass +ping\n');
    expect(await ask(admin, 'ACL LOAD')).toBe('+OK\r\n');
    expect(await ask(admin, 'ACL USERS')).toBe('*2\r\n$5\r\ncarol\r\n$7\r\ndefault\r\n');
    await alice.closed();
    await server.stop();
    await removePool(pool);
  });

  it('declared users survive CONFIG REWRITE', async () => {
    const pool = await makePool();
    const config = join(pool, 'entresol.toml');
    await writeFile(config, 'user = ["alice on nopass ~* +get", "bob off"]\nhz = 20\n');
    const args = [`--config=${config}`];
    const server = await startTestServer({ pool, memcachedPort: 0, args });
    const admin = await connect(server.redisPort);
    await ask(admin, 'ACL SETUSER carol on >pw ~c* +set');
    expect(await ask(admin, 'CONFIG REWRITE')).toBe('+OK\r\n');
    const users = await ask(admin, 'ACL LIST');
    await server.stop();
    const again = await startTestServer({ pool, memcachedPort: 0, args });
    expect(await ask(await connect(again.redisPort), 'ACL LIST')).toBe(users);
    await again.stop();
    await removePool(pool);
  });

  it('users that cannot be stop the start, with the reason', async () => {
    const start = (...args: string[]) => startTestServer({ memcachedPort: 0, args });
    await expect(start('--user=a +nosuch')).rejects.toThrow(/--user: user 'a'.*Unknown command or category/);
    await expect(start('--user=a on', '--user=a off')).rejects.toThrow(/Duplicate user/);
    await expect(start('--user=a on', '--aclfile=f')).rejects.toThrow(/not from both/);
    await expect(start('--aclfile=/nowhere/f')).rejects.toThrow(/No such file or directory/);
  });
});

/**
 * Scripts that run for longer than the limit, with one worker and with two: everybody else gets BUSY, SCRIPT KILL and FUNCTION KILL end
 * what has not written, and the script's own client loses nothing of its pipeline.
 */
import { afterEach, describe, expect, it } from 'vitest';
import { RawClient } from '../helpers/raw-client.js';
import { startTestServer, type TestServer } from '../helpers/server.js';
import { multibulk } from '../helpers/session.js';

const BUSY = '-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n';
const BUSY_FUNCTION = '-BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.\r\n';
const LIMIT_MS = 100;
const FOREVER = 'while true do end';
const KILLED = /^-ERR Error running script|^-ERR .*Script killed by user with SCRIPT KILL/;

const opened: RawClient[] = [];

async function connect(server: TestServer): Promise<RawClient> {
  const client = await RawClient.connect(server.redisPort);
  opened.push(client);
  return client;
}

const request = (...words: string[]): Uint8Array => multibulk(words);

/** Asks until the answer to PING is BUSY: the script is over the limit. */
function untilBusy(client: RawClient, busy = BUSY): Promise<void> {
  return untilPing(client, busy, '+PONG\r\n');
}

function untilFree(client: RawClient): Promise<void> {
  return untilPing(client, '+PONG\r\n', BUSY);
}

/** Until PING is answered like that; till then it must be `before`. */
async function untilPing(client: RawClient, wanted: string, before: string): Promise<void> {
  for (;;) {
    client.write('PING\r\n');
    const reply = await line(client);
    if (reply === wanted) return;
    expect(reply).toBe(before);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

async function line(client: RawClient): Promise<string> {
  await client.until(() => client.text.includes('\r\n'), 'a line');
  return (await client.read(client.text.indexOf('\r\n') + 2)).toString('latin1');
}

afterEach(() => {
  for (const client of opened.splice(0)) client.destroy();
});

for (const workers of [1, 2]) {
  describe(`${workers} worker(s)`, () => {
    const start = () =>
      startTestServer({ args: ['--workers', String(workers), '--busy-reply-threshold', String(LIMIT_MS)] });

    it('answers BUSY, kills a script that has only read, and serves on', async () => {
      const server = await start();
      const [script, others] = [
        await connect(server),
        [await connect(server), await connect(server), await connect(server)],
      ];
      await others[0].ask('SET k v\r\n', '+OK\r\n');
      await others[0].ask('SCRIPT KILL\r\n', '-NOTBUSY No scripts in execution right now.\r\n');
      script.write(request('EVAL', `redis.call('get','k') ${FOREVER}`, '0'));
      await untilBusy(others[0]);
      for (const other of others) await other.ask('GET k\r\n', BUSY);
      const late = await connect(server);
      await late.ask('GET k\r\n', BUSY);
      await late.ask('FUNCTION KILL\r\n', BUSY);
      await late.ask('SCRIPT KILL\r\n', '+OK\r\n');
      expect(await line(script)).toMatch(KILLED);
      for (const other of others) await other.ask('GET k\r\n', '$1\r\nv\r\n');
      await script.ask('GET k\r\n', '$1\r\nv\r\n');
      await server.stop();
    });

    it('kills a script that catches its errors', async () => {
      const server = await start();
      const [script, other] = [await connect(server), await connect(server)];
      script.write(request('EVAL', 'while true do pcall(function() while true do end end) end', '0'));
      await untilBusy(other);
      await other.ask('SCRIPT KILL\r\n', '+OK\r\n');
      expect(await line(script)).toMatch(KILLED);
      await server.stop();
    });

    it('does not kill what has written, and lets it finish', async () => {
      const server = await start();
      const [script, other] = [await connect(server), await connect(server)];
      const slow = "redis.call('set',KEYS[1],'new') local t=0 for i=1,ARGV[1] do t=t+1 end return 'done'";
      script.write(request('EVAL', slow, '1', 'k', '60000000'));
      await untilBusy(other);
      other.write('SCRIPT KILL\r\n');
      expect(await line(other)).toMatch(/^-UNKILLABLE /);
      expect(await line(script)).toBe('$4\r\n');
      expect(await line(script)).toBe('done\r\n');
      await other.ask('GET k\r\n', '$3\r\nnew\r\n');
      await server.stop();
    });

    it('goes on with the rest of the pipeline', async () => {
      const server = await start();
      const [script, other] = [await connect(server), await connect(server)];
      script.write(
        Buffer.concat([
          request('SET', 'a', '1'),
          request('EVAL', FOREVER, '0'),
          request('INCR', 'a'),
          request('GET', 'a'),
        ]),
      );
      await untilBusy(other);
      script.write(request('APPEND', 'a', 'x'));
      await other.ask('SCRIPT KILL\r\n', '+OK\r\n');
      expect(await line(script)).toBe('+OK\r\n');
      expect(await line(script)).toMatch(KILLED);
      await script.ask('', ':2\r\n$1\r\n2\r\n:2\r\n');
      await server.stop();
    });

    it('a client that leaves in the middle does not stand in the way', async () => {
      const server = await start();
      const [script, other] = [await connect(server), await connect(server)];
      script.write(request('EVAL', FOREVER, '0'));
      await untilBusy(other);
      script.destroy();
      await other.ask('SCRIPT KILL\r\n', '+OK\r\n');
      const next = await connect(server);
      // Nobody hears when the killed script is over.
      await untilFree(next);
      await next.ask('SET a b\r\nGET a\r\n', '+OK\r\n$1\r\nb\r\n');
      await server.stop();
    });

    it('FUNCTION KILL and FUNCTION STATS', async () => {
      const server = await start();
      const [script, other] = [await connect(server), await connect(server)];
      const code = `#!lua name=lib\nredis.register_function('forever',function() ${FOREVER} end)`;
      script.write(request('FUNCTION', 'LOAD', code));
      await script.ask('', '$3\r\nlib\r\n');
      script.write(request('FCALL', 'forever', '0'));
      await untilBusy(other, BUSY_FUNCTION);
      await other.ask('SCRIPT KILL\r\n', BUSY_FUNCTION);
      other.write('FUNCTION STATS\r\n');
      await other.until(() => /:\d+\r\n.*:1\r\n$/s.test(other.text), 'the statistics');
      expect((await other.read(other.text.length)).toString()).toContain('$7\r\nforever\r\n');
      await other.ask('FUNCTION KILL\r\n', '+OK\r\n');
      expect(await line(script)).toMatch(KILLED);
      await server.stop();
    });

    it('inside MULTI', async () => {
      const server = await start();
      const [script, other] = [await connect(server), await connect(server)];
      script.write(
        Buffer.concat([request('MULTI'), request('SET', 'm', '1'), request('EVAL', FOREVER, '0'), request('EXEC')]),
      );
      await untilBusy(other);
      await other.ask('SCRIPT KILL\r\n', '+OK\r\n');
      for (const expected of ['+OK\r\n', '+QUEUED\r\n', '+QUEUED\r\n', '*2\r\n', '+OK\r\n'])
        expect(await line(script)).toBe(expected);
      expect(await line(script)).toMatch(KILLED);
      await other.ask('GET m\r\n', '$1\r\n1\r\n');
      await server.stop();
    });

    it('SHUTDOWN NOSAVE ends the server', async () => {
      const server = await start();
      const [script, other] = [await connect(server), await connect(server)];
      script.write(request('EVAL', FOREVER, '0'));
      await untilBusy(other);
      other.write('SHUTDOWN NOSAVE\r\n');
      await other.closed();
      await server.stop();
    });
  });
}

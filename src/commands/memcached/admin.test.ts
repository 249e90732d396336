import { describe, expect, it } from 'vitest';
import { MemcachedSession } from '../../../test/helpers/memcached-session.js';
import { testStore } from '../../../test/helpers/store.js';
import type { Asker, ClientRow, Control } from '../control.js';

const session = () => new MemcachedSession(testStore());

/** `STAT name value` lines as a Map. */
function statsOf(reply: string): Map<string, string> {
  const lines = reply.split('\r\n');
  expect(lines.slice(-2)).toEqual(['END', '']);
  return new Map(lines.slice(0, -2).map((line) => /^STAT (\S+) (.*)$/.exec(line)!.slice(1, 3) as [string, string]));
}

describe('authentication', () => {
  function locked(): MemcachedSession {
    const s = session();
    s.settings.requirepass = 'pass word';
    s.client = s.connect();
    return s;
  }
  const login = (text: string) => `set x 0 0 ${text.length}\r\n${text}\r\n`;

  it('lets nothing through before it', () => {
    const s = locked();
    const no = 'CLIENT_ERROR unauthenticated\r\n';
    expect(s.send('get a\r\nmn\r\nversion\r\nflush_all\r\nms a 1\r\nx\r\n')).toBe(no.repeat(5));
    expect(s.send('set a 0 0\r\n')).toBe(no);
    expect(s.send('quit\r\n')).toBe('');
    expect(s.isClosed).toBe(true);
  });

  it('takes "user password" as the value of a set', () => {
    const s = locked();
    expect(s.send(login('default wrong'))).toBe('CLIENT_ERROR authentication failure\r\n');
    expect(s.send(login('other pass word'))).toBe('CLIENT_ERROR authentication failure\r\n');
    expect(s.send(login('default pass wor'))).toBe('CLIENT_ERROR authentication failure\r\n');
    expect(s.send(login('nospace'))).toBe('CLIENT_ERROR bad authentication token format\r\n');
    expect(s.send(`${login('default pass word')}set a 0 0 1\r\nx\r\nget a x\r\n`)).toBe(
      'STORED\r\nSTORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n',
    );
    expect(statsOf(s.send('stats\r\n')).get('auth_errors')).toBe('3');
  });

  it('does not collect a large value from a stranger', () => {
    const s = locked();
    expect(s.send('set x 0 0 1000000\r\n')).toBe('CLIENT_ERROR unauthenticated\r\n');
    expect(s.send(`${'x'.repeat(1_000_000)}\r\n${login('default pass word')}`)).toBe('STORED\r\n');
  });

  it('is asked of datagrams too, which cannot give it', () => {
    const s = locked();
    const [reply] = s.datagram(Buffer.from('\0\x01\0\0\0\x01\0\0get a\r\n', 'latin1'));
    expect(Buffer.from(reply.subarray(8)).toString()).toBe('CLIENT_ERROR unauthenticated\r\n');
  });
});

describe('UDP', () => {
  const frame = (id: number, text: string, sequence = 0, total = 1) =>
    Buffer.concat([
      Buffer.from([id >> 8, id & 255, sequence >> 8, sequence & 255, total >> 8, total & 255, 0, 0]),
      Buffer.from(text, 'latin1'),
    ]);
  const payload = (datagrams: readonly Uint8Array[]) =>
    Buffer.concat(datagrams.map((datagram) => datagram.subarray(8))).toString('latin1');

  it('answers one datagram with one that has its id', () => {
    const s = session();
    expect(payload(s.datagram(frame(1, 'set a 0 0 3\r\nabc\r\nget a\r\n')))).toBe(
      'STORED\r\nVALUE a 0 3\r\nabc\r\nEND\r\n',
    );
    const [reply] = s.datagram(frame(0xbeef, 'mn\r\n'));
    expect(Array.from(reply.subarray(0, 8))).toEqual([0xbe, 0xef, 0, 0, 0, 1, 0, 0]);
  });

  it('spreads a long reply over datagrams, and refuses a longer one', () => {
    const s = session();
    s.send(`set a 0 0 40000\r\n${'a'.repeat(40_000)}\r\nset b 0 0 50000\r\n${'b'.repeat(50_000)}\r\n`);
    const datagrams = s.datagram(frame(7, 'get a\r\n'));
    expect(datagrams).toHaveLength(29);
    for (const [i, datagram] of datagrams.entries()) {
      expect(Array.from(datagram.subarray(0, 8))).toEqual([0, 7, 0, i, 0, 29, 0, 0]);
      expect(datagram.length).toBeLessThanOrEqual(1400);
    }
    expect(payload(datagrams)).toBe(`VALUE a 0 40000\r\n${'a'.repeat(40_000)}\r\nEND\r\n`);
    expect(payload(s.datagram(frame(8, 'get b\r\n')))).toBe('SERVER_ERROR reply too large for UDP\r\n');
    expect(payload(s.datagram(frame(9, 'get b b b b\r\n')))).toBe('SERVER_ERROR reply too large for UDP\r\n');
    expect(payload(s.datagram(frame(10, `get${' b'.repeat(30_000)}\r\n`)))).toBe(
      'SERVER_ERROR reply too large for UDP\r\n',
    );
    expect(payload(s.datagram(frame(11, 'mn\r\n')))).toBe('MN\r\n');
    const many = `get${' nosuch'.repeat(5000)}\r\n`;
    expect(payload(s.datagram(frame(12, many)))).toBe('END\r\n');
  });

  it('drops what is no frame or not complete, and refuses what needs a connection', () => {
    const s = session();
    expect(s.datagram(Buffer.from('get a\r\n'))).toEqual([]);
    expect(s.datagram(frame(1, ''))).toEqual([]);
    expect(s.datagram(frame(1, 'get a'))).toEqual([]);
    expect(s.datagram(frame(1, 'set a 0 0 10\r\nabc'))).toEqual([]);
    expect(s.datagram(frame(1, 'set a 0 0 1 noreply\r\na\r\n'))).toEqual([]);
    expect(payload(s.datagram(frame(1, 'mn\r\n', 0, 2)))).toBe('SERVER_ERROR multi-packet request not supported\r\n');
    expect(payload(s.datagram(frame(1, 'stats conns\r\n')))).toBe('SERVER_ERROR not available over UDP\r\n');
    expect(payload(s.datagram(frame(1, 'shutdown\r\n')))).toBe('SERVER_ERROR not available over UDP\r\n');
    expect(payload(s.datagram(frame(1, 'quit\r\nmn\r\n')))).toBe('');
    expect(s.send('get a\r\n')).toBe('VALUE a 0 1\r\na\r\nEND\r\n');
  });
});

describe('stats', () => {
  it('counts what commands did', () => {
    const s = session();
    s.send('set a 0 0 1\r\n1\r\ngets a\r\nget a b\r\nincr a 1\r\nincr b 1\r\ndecr a 1\r\ndecr b 1\r\ntouch a 0\r\n');
    s.send('touch b 0\r\ngat 0 a\r\ncas a 0 0 1 1\r\n2\r\ncas b 0 0 1 1\r\n2\r\ndelete a\r\ndelete a\r\nmg a v\r\n');
    const stats = statsOf(s.send('stats\r\n'));
    const expected = {
      cmd_get: '4',
      get_hits: '2',
      get_misses: '2',
      cmd_set: '3',
      incr_hits: '1',
      incr_misses: '1',
      decr_hits: '1',
      decr_misses: '1',
      touch_hits: '2',
      touch_misses: '1',
      cas_badval: '1',
      cas_misses: '1',
      delete_hits: '1',
      delete_misses: '1',
      cmd_meta: '1',
      curr_items: '0',
      pointer_size: '64',
    };
    for (const [name, value] of Object.entries(expected)) expect(stats.get(name), name).toBe(value);
    expect(stats.get('version')).toMatch(/^1\.6\.\d+$/);
    expect(stats.get('entresol_version')).toMatch(/^\d+\.\d+\.\d+/);
    expect(s.send('stats reset\r\n')).toBe('RESET\r\n');
    expect(statsOf(s.send('stats\r\n')).get('cmd_set')).toBe('0');
  });

  it('shows settings, slabs and items', () => {
    const s = session();
    s.send('set a 0 0 100\r\n'.concat('x'.repeat(100), '\r\n'));
    expect(statsOf(s.send('stats settings\r\n')).get('item_size_max')).toBe('1048576');
    const slabs = statsOf(s.send('stats slabs\r\n'));
    expect(Number(slabs.get('active_slabs'))).toBeGreaterThan(0);
    expect(Number(slabs.get('total_malloced'))).toBeGreaterThan(0);
    expect([...statsOf(s.send('stats items\r\n')).keys()].some((name) => /^items:\d+:number$/.test(name))).toBe(true);
    expect(s.send('stats sizes\r\n')).toBe('STAT sizes_status disabled\r\nEND\r\n');
    expect(s.send('stats detail\r\n')).toBe('CLIENT_ERROR usage: stats detail on|off|dump\r\n');
    s.settings.memcachedDump = false;
    expect(s.send('stats cachedump 1 1\r\n')).toBe('CLIENT_ERROR stats cachedump not allowed\r\n');
  });
});

describe('questions to the control plane', () => {
  const row = {
    worker: 0,
    id: 1,
    address: '127.0.0.1:5',
    localAddress: '127.0.0.1:6',
    fd: 9,
    kind: 'memcached',
    flags: 'N',
  };
  const asked: string[] = [];
  let answer: (() => void) | null = null;
  const control = {
    startedAtMs: 0,
    isWritePaused: false,
    askWorkers: (asker: Asker, topic: string, _question: object, then: (answers: readonly ClientRow[][]) => void) => {
      asker.suspended = true;
      asked.push(topic);
      const rows = [
        { ...row, idleSeconds: 3 },
        { ...row, fd: 10, id: 2, kind: 'redis' },
      ];
      answer = () => then([rows as unknown as ClientRow[]]);
    },
    askMain: (_asker: Asker, topic: string, _question: object, then: (error: string | null) => void) => {
      asked.push(topic);
      answer = () => then('busy');
    },
    onLines: () => undefined,
    provide: () => undefined,
    descriptorOf: () => 9,
  } as unknown as Control;

  it('stats conns and shutdown wait for the answer', () => {
    const s = new MemcachedSession(testStore(), control);
    expect(s.send('stats conns\r\n')).toBe('');
    expect(s.client.suspended).toBe(true);
    expect(s.resume(() => answer!())).toBe(
      'STAT 1048576:addr tcp:127.0.0.1:11211\r\nSTAT 1048576:state conn_listening\r\n' +
        'STAT 1048576:secs_since_last_cmd 0\r\n' +
        'STAT 9:addr tcp:127.0.0.1:5\r\nSTAT 9:listen_addr tcp:127.0.0.1:6\r\nSTAT 9:state conn_parse_cmd\r\n' +
        'STAT 9:secs_since_last_cmd 3\r\nEND\r\n',
    );
    expect(s.send('shutdown\r\n')).toBe('ERROR: shutdown not enabled\r\n');
    s.settings.enableShutdown = true;
    expect(s.send('shutdown now\r\n')).toBe('CLIENT_ERROR invalid shutdown mode\r\n');
    expect(s.send('shutdown graceful\r\n')).toBe('');
    expect(s.resume(() => answer!())).toBe('SERVER_ERROR busy\r\n');
    expect(asked).toEqual(['clientList', 'shutdown']);
  });

  it('writes wait while writes are paused, reads do not', () => {
    const waiting: Asker[] = [];
    const paused = { ...control, isWritePaused: true, waitForUnpause: (asker: Asker) => waiting.push(asker) };
    const s = new MemcachedSession(testStore(), paused as unknown as Control);
    expect(s.send('get a\r\nget b\r\nset a 0 0 1\r\nx\r\nget a\r\n')).toBe('END\r\nEND\r\n');
    expect(waiting).toEqual([s.client]);
    paused.isWritePaused = false;
    expect(s.send('')).toBe('STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n');
  });
});

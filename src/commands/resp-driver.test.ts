import { beforeEach, describe, expect, it } from 'vitest';
import { multibulk, Session } from '../../test/helpers/session.js';
import { testStore } from '../../test/helpers/store.js';
import { Closing } from '../protocol/driver.js';

let session: Session;

beforeEach(() => {
  session = new Session(testStore());
});

describe('RESP driver', () => {
  it('leaves an incomplete request where it is', () => {
    const whole = Buffer.from(multibulk(['SET', 'k', 'value'])).toString('latin1');
    for (const byte of whole.slice(0, -1)) expect(session.raw(byte)).toBe('');
    expect(session.raw('\n')).toBe('+OK\r\n');
  });

  it('authenticates before it parses what follows', () => {
    session.settings.requirepass = 'secret';
    session.client = session.connect();
    const many = Array.from({ length: 20 }, (_, i) => `key${i}`);
    const requests = Buffer.concat([multibulk(['AUTH', 'secret']), multibulk(['WATCH', ...many])]);
    expect(session.raw(requests)).toBe('+OK\r\n+OK\r\n');
  });

  it('executes nothing after QUIT', () => {
    expect(session.raw('SET k 1\r\nQUIT\r\nSET k 2\r\n')).toBe('+OK\r\n+OK\r\n');
    expect(session.client.closing).toBe(Closing.AFTER_REPLY);
    session.client = session.connect();
    session.takePending();
    expect(session.send('GET k')).toBe('$1\r\n1\r\n');
  });

  it('stops a client at its next write while writes are paused', () => {
    const control = {
      isWritePaused: true,
      isSlow: () => false,
      recordLatency: () => undefined,
      waitForUnpause: (client: { suspended: boolean }) => (client.suspended = true),
    };
    Object.assign(session.executor.environment, { control });
    expect(session.raw('GET k\r\nSET k 1\r\nGET k\r\n')).toBe('$-1\r\n');
    expect(session.client.suspended).toBe(true);
    control.isWritePaused = false;
    session.client.suspended = false;
    Object.assign(session.executor.environment, { control: null });
    expect(session.raw('')).toBe('+OK\r\n$1\r\n1\r\n');
  });

  it('answers a fault of a handler, unlocks, and lets the client go', () => {
    const [get] = session.executor.table.all.filter((command) => command.fullName === 'get');
    const { run } = get;
    Object.assign(get, {
      run: () => {
        throw new Error('a bug');
      },
    });
    expect(() => session.send('GET k')).toThrow('a bug');
    Object.assign(get, { run });
    expect(session.client.closing).toBe(Closing.AFTER_REPLY);
    session.faults.length = 0;
    session.client = session.connect();
    expect(session.send('SET k 1')).toBe('+OK\r\n');
  });

  it('passes the fault of a writing handler on: the worker must end', () => {
    const [set] = session.executor.table.all.filter((command) => command.fullName === 'set');
    const { stage } = set;
    Object.assign(set, {
      stage: () => {
        throw new Error('a bug');
      },
    });
    expect(() => session.send('SET k v')).toThrow('a bug');
    expect(session.faults).toEqual([]);
    Object.assign(set, { stage });
  });

  it('describes a client', () => {
    session.send('CLIENT SETNAME me');
    session.send('WATCH a b');
    session.send('MULTI');
    session.send('GET a');
    expect(session.driver.describe(session.client)).toMatchObject({
      name: 'me',
      flags: 'x',
      multi: 1,
      watch: 2,
      lastCommand: 'get',
      commands: 4,
    });
  });
});

import { describe, expect, it } from 'vitest';
import {
  type BinaryRequest,
  type BinaryResponse,
  binaryRequest,
  binaryResponses,
  extras,
} from '../../../../test/helpers/binary-protocol.js';
import { MemcachedSession } from '../../../../test/helpers/memcached-session.js';
import { testStore } from '../../../../test/helpers/store.js';
import { Opcode, Status } from '../../../protocol/memcached/binary-codes.js';

const FLAGS = 0xdeadbeef;

function send(session: MemcachedSession, ...requests: readonly BinaryRequest[]): BinaryResponse[] {
  return answers(session.send(Buffer.concat(requests.map(binaryRequest))));
}

function answers(reply: string): BinaryResponse[] {
  return binaryResponses(Buffer.from(reply, 'latin1'));
}

function session(): MemcachedSession {
  return new MemcachedSession(testStore());
}

const set = (key: string, value: string, opcode = Opcode.SET, cas = 0n): BinaryRequest => ({
  opcode,
  key,
  value,
  extras: extras(FLAGS, 0),
  cas,
});

describe('a binary connection', () => {
  it('stores and gives back value, flags, cas and opaque', () => {
    const s = session();
    const [stored] = send(s, { ...set('k', 'value'), opaque: 0xfedcba98 });
    expect(stored).toMatchObject({ opcode: Opcode.SET, status: Status.OK, opaque: 0xfedcba98, value: '' });
    const [got, withKey] = send(s, { opcode: Opcode.GET, key: 'k' }, { opcode: Opcode.GETK, key: 'k', opaque: 7 });
    expect(got).toMatchObject({ key: '', value: 'value', cas: stored.cas, extras: extras(FLAGS) });
    expect(withKey).toMatchObject({ key: 'k', value: 'value', opaque: 7 });
  });

  it('is silent when told so: quiet misses, quiet successes, but not quiet failures', () => {
    const s = session();
    const responses = send(
      s,
      { opcode: Opcode.GETQ, key: 'nosuch' },
      { opcode: Opcode.GETKQ, key: 'nosuch' },
      set('q', '1', Opcode.SETQ),
      set('q', '2', Opcode.ADDQ),
      { opcode: Opcode.APPENDQ, key: 'q', value: '0' },
      { opcode: Opcode.INCREMENTQ, key: 'q', extras: extras(1n, 0n, 0) },
      { opcode: Opcode.GETQ, key: 'q' },
      { opcode: Opcode.DELETEQ, key: 'q' },
      { opcode: Opcode.DELETEQ, key: 'q' },
      { opcode: Opcode.FLUSHQ },
      { opcode: Opcode.NOOP, opaque: 9 },
    );
    expect(responses.map(({ opcode, status, value }) => [opcode, status, value])).toEqual([
      [Opcode.ADDQ, Status.EXISTS, 'Data exists for key.'],
      [Opcode.GETQ, Status.OK, '11'],
      [Opcode.DELETEQ, Status.NOT_FOUND, 'Not found'],
      [Opcode.NOOP, Status.OK, ''],
    ]);
  });

  it('takes a cas for set, replace, append and delete', () => {
    const s = session();
    const [{ cas }] = send(s, set('c', 'one'));
    const wrong = cas + 1n;
    const responses = send(
      s,
      set('c', 'x', Opcode.SET, wrong),
      set('c', 'x', Opcode.REPLACE, wrong),
      { opcode: Opcode.APPEND, key: 'c', value: 'x', cas: wrong },
      { opcode: Opcode.DELETE, key: 'c', cas: 2n ** 60n },
      { opcode: Opcode.APPEND, key: 'c', value: '!', cas },
      set('nosuch', 'x', Opcode.SET, cas),
    );
    expect(responses.map(({ status }) => status)).toEqual([2, 2, 2, 2, 0, 1]);
    expect(send(s, { opcode: Opcode.GET, key: 'c' })[0].value).toBe('one!');
    const [{ cas: now }] = send(s, { opcode: Opcode.GET, key: 'c' });
    expect(send(s, { opcode: Opcode.DELETE, key: 'c', cas: now })[0].status).toBe(Status.OK);
  });

  it('counts in 64 bits, with an initial value or without', () => {
    const s = session();
    const delta = (opcode: Opcode, by: bigint, initial: bigint, expiry: number): BinaryResponse =>
      send(s, { opcode, key: 'n', extras: extras(by, initial, expiry) })[0];
    expect(delta(Opcode.INCREMENT, 1n, 5n, 0xffffffff).status).toBe(Status.NOT_FOUND);
    for (const value of [2n ** 64n - 1n, 2n ** 63n, 10n ** 9n, 999_999_999n, 65_536n, 0n]) {
      send(s, { opcode: Opcode.DELETEQ, key: 'n' });
      const { value: bytes } = delta(Opcode.INCREMENT, 1n, value, 0);
      expect(Buffer.from(bytes, 'latin1').readBigUInt64BE()).toBe(value);
      expect(send(s, { opcode: Opcode.GET, key: 'n' })[0].value).toBe(String(value));
    }
    const { value: down, cas } = delta(Opcode.DECREMENT, 2n ** 40n, 0n, 0);
    expect(Buffer.from(down, 'latin1').readBigUInt64BE()).toBe(0n);
    expect(send(s, { opcode: Opcode.GET, key: 'n' })[0].cas).toBe(cas);
    send(s, set('n', 'text', Opcode.SETQ));
    expect(delta(Opcode.INCREMENT, 1n, 0n, 0).status).toBe(Status.NON_NUMERIC);
  });

  it('touches, and gets and touches', () => {
    const s = session();
    send(s, set('t', 'v'));
    expect(send(s, { opcode: Opcode.GAT, key: 't', extras: extras(100) })[0]).toMatchObject({ value: 'v', key: '' });
    expect(send(s, { opcode: Opcode.GATK, key: 't', extras: extras(100) })[0]).toMatchObject({ value: 'v', key: 't' });
    expect(send(s, { opcode: Opcode.TOUCH, key: 't', extras: extras(100) })[0]).toMatchObject({
      status: Status.OK,
      value: '',
      extras: extras(FLAGS),
    });
    // A second after the epoch: long gone.
    send(s, { opcode: Opcode.TOUCH, key: 't', extras: extras(60 * 60 * 24 * 30 + 1) });
    expect(send(s, { opcode: Opcode.GET, key: 't' })[0].status).toBe(Status.NOT_FOUND);
    expect(send(s, { opcode: Opcode.GATKQ, key: 't', extras: extras(1) }, { opcode: Opcode.NOOP })).toHaveLength(1);
  });

  it('gives the same responses however the input is cut', () => {
    const requests = Buffer.concat(
      [
        set('a', 'hello'),
        { opcode: Opcode.GETK, key: 'a' },
        { opcode: Opcode.PREPEND, key: 'a', value: 'oh ' },
        { opcode: 0x55, key: 'who', value: 'knows' },
        { opcode: Opcode.STAT, key: 'settings' },
        { opcode: Opcode.GET, key: 'a' },
        { opcode: Opcode.QUIT },
      ].map(binaryRequest),
    );
    const whole = answers(session().send(requests)).map(({ cas: _, ...rest }) => rest);
    expect(whole.at(-1)!.opcode).toBe(Opcode.QUIT);
    for (let at = 1; at < requests.length; at++) {
      const s = session();
      const replies = s.send(requests.subarray(0, at)) + s.send(requests.subarray(at));
      expect(answers(replies).map(({ cas: _, ...rest }) => rest)).toEqual(whole);
      expect(s.isClosed).toBe(true);
    }
  });

  it('receives a large value into the store, whatever comes before and after it', () => {
    const s = session();
    const large = 'v'.repeat(300_000);
    const bytes = Buffer.concat([binaryRequest(set('big', large)), binaryRequest({ opcode: Opcode.NOOP })]);
    let reply = '';
    for (let at = 0; at < bytes.length; at += 40_000) reply += s.send(bytes.subarray(at, at + 40_000));
    expect(answers(reply).map(({ status }) => status)).toEqual([0, 0]);
    expect(send(s, { opcode: Opcode.GET, key: 'big' })[0].value === large).toBe(true);
    // Nothing after it: the response must not wait for more input.
    const alone = binaryRequest(set('big', large, Opcode.REPLACE));
    expect(s.send(alone.subarray(0, 100_000))).toBe('');
    expect(answers(s.send(alone.subarray(100_000)))[0].status).toBe(Status.OK);
    s.send(alone.subarray(0, 100_000));
    s.close();
  });

  it('refuses an item that is too large, throws its value away and drops the old one', () => {
    const s = session();
    send(s, set('k', 'old'));
    const bytes = Buffer.concat([binaryRequest(set('k', 'x'.repeat(1024 * 1024))), binaryRequest({ opcode: 0x0a })]);
    let reply = '';
    for (let at = 0; at < bytes.length; at += 100_000) reply += s.send(bytes.subarray(at, at + 100_000));
    expect(answers(reply).map(({ status }) => status)).toEqual([Status.TOO_LARGE, Status.OK]);
    expect(send(s, { opcode: Opcode.GET, key: 'k' })[0].status).toBe(Status.NOT_FOUND);
  });

  it.each([
    ['a key where none belongs', { opcode: Opcode.NOOP, key: 'k' }, Status.INVALID],
    ['no key', { opcode: Opcode.GET }, Status.INVALID],
    ['extras missing', { opcode: Opcode.SET, key: 'k', value: 'v' }, Status.INVALID],
    ['a value where none belongs', { opcode: Opcode.GET, key: 'k', value: 'v' }, Status.INVALID],
    ['a key too long', { opcode: Opcode.GET, key: 'k'.repeat(251) }, Status.INVALID],
  ])('answers %s with an error and closes', (_, request, status) => {
    const s = session();
    expect(send(s, request, { opcode: Opcode.NOOP })).toMatchObject([{ status }]);
    expect(s.isClosed).toBe(true);
  });

  it('closes on lengths that contradict each other and on bytes that begin no request', () => {
    const s = session();
    const request = binaryRequest({ opcode: Opcode.GET, key: 'key' });
    request.writeUInt32BE(1, 8);
    expect(answers(s.send(request))).toMatchObject([{ status: Status.UNKNOWN_COMMAND }]);
    expect(s.isClosed).toBe(true);
    s.client = s.connect();
    expect(send(s, { opcode: Opcode.NOOP })).toHaveLength(1);
    expect(s.send('get k\r\n')).toBe('');
    expect(s.isClosed).toBe(true);
  });

  it('goes on after an opcode that it does not know', () => {
    const s = session();
    const responses = send(s, { opcode: 0x99, key: 'k', value: 'v', extras: extras(1) }, { opcode: Opcode.VERSION });
    expect(responses.map(({ status }) => status)).toEqual([Status.UNKNOWN_COMMAND, Status.OK]);
    expect(responses[1].value).toMatch(/^1\.6\./);
  });

  it('gives statistics, one response each, and an empty one at the end', () => {
    const s = session();
    for (const key of ['', 'settings', 'items', 'slabs', 'sizes', 'reset']) {
      const responses = send(s, { opcode: Opcode.STAT, key, opaque: 5 });
      expect(responses.at(-1)).toMatchObject({ key: '', value: '', opaque: 5, status: Status.OK });
      for (const { key: name, value } of responses.slice(0, -1)) expect(name.length * value.length).toBeGreaterThan(0);
    }
    expect(send(s, { opcode: Opcode.STAT, key: 'nosuch' })[0].status).toBe(Status.NOT_FOUND);
  });

  it('serves a text connection beside it, on the same keys', () => {
    const s = session();
    send(s, set('k', 'both'));
    s.client = s.connect();
    expect(s.send('get k\r\n')).toBe(`VALUE k ${FLAGS} 4\r\nboth\r\nEND\r\n`);
  });

  it('answers datagrams', () => {
    const s = session();
    const frame = Buffer.from([9, 8, 0, 0, 0, 1, 0, 0]);
    const ask = (...requests: readonly BinaryRequest[]): BinaryResponse[] => {
      const datagrams = s.datagram(Buffer.concat([frame, ...requests.map(binaryRequest)]));
      return binaryResponses(Buffer.concat(datagrams.map((datagram) => datagram.subarray(frame.length))));
    };
    expect(ask(set('k', 'v'.repeat(3000)), { opcode: Opcode.GET, key: 'k' }).map(({ value }) => value.length)).toEqual([
      0, 3000,
    ]);
    s.settings.requirepass = 'secret';
    expect(ask({ opcode: Opcode.GET, key: 'k' })).toMatchObject([{ status: Status.AUTH_ERROR }]);
  });

  it('asks for SASL PLAIN when there is a password, in one step or two', () => {
    const s = session();
    s.settings.requirepass = 'secret';
    const fresh = (): MemcachedSession => {
      s.client = s.connect();
      return s;
    };
    expect(send(fresh(), { opcode: Opcode.SASL_LIST })[0].value).toBe('PLAIN');
    expect(send(fresh(), { opcode: Opcode.GET, key: 'k' })).toMatchObject([{ status: Status.AUTH_ERROR }]);
    expect(s.isClosed).toBe(true);
    const auth = (value: string, opcode = Opcode.SASL_AUTH, key = 'PLAIN'): number =>
      send(s, { opcode, key, value })[0].status;
    fresh();
    expect(auth('\0default\0wrong')).toBe(Status.AUTH_ERROR);
    expect(auth('\0other\0secret')).toBe(Status.AUTH_ERROR);
    expect(auth('default secret')).toBe(Status.AUTH_ERROR);
    expect(auth('\0default\0secret', Opcode.SASL_AUTH, 'CRAM-MD5')).toBe(Status.AUTH_ERROR);
    expect(auth('\0default\0secret', Opcode.SASL_STEP)).toBe(Status.AUTH_ERROR);
    expect(auth('x', Opcode.SASL_AUTH, 'X'.repeat(40))).toBe(Status.INVALID);
    expect(send(s, { opcode: Opcode.SASL_AUTH, key: 'PLAIN', value: '\0default\0secret' })[0]).toMatchObject({
      status: Status.OK,
      value: 'Authenticated',
    });
    expect(send(s, set('k', 'v'))[0].status).toBe(Status.OK);
    fresh();
    expect(auth('')).toBe(Status.AUTH_CONTINUE);
    expect(auth('\0default\0secret', Opcode.SASL_STEP)).toBe(Status.OK);
    expect(send(s, { opcode: Opcode.GET, key: 'k' })[0].value).toBe('v');
  });

  it('knows nothing of SASL when there is no password', () => {
    const s = session();
    expect(send(s, { opcode: Opcode.SASL_LIST })[0].status).toBe(Status.UNKNOWN_COMMAND);
    expect(send(s, { opcode: Opcode.SASL_AUTH, key: 'PLAIN', value: '\0a\0b' })[0].status).toBe(Status.UNKNOWN_COMMAND);
    expect(s.isClosed).toBe(false);
  });
});

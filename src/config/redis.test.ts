import { describe, expect, it } from 'vitest';
import { configGet, configSet } from './redis.js';
import { defaultSettings, type Settings } from './schema.js';

function get(settings: Settings, ...patterns: string[]): Record<string, string> {
  const reply = configGet(settings, patterns);
  const pairs = Array.from({ length: reply.length / 2 }, (_, i) => [reply[2 * i], reply[2 * i + 1]]);
  return Object.fromEntries(pairs);
}

function setError(settings: Settings, ...pairs: [string, string][]): string {
  const result = configSet(settings, pairs);
  return result.ok ? '' : result.error;
}

describe('CONFIG GET', () => {
  it("answers under Redis's names, in Redis's forms", () => {
    const settings = { ...defaultSettings(), unix: '/tmp/s', bind: ['127.0.0.1', '::1'] };
    expect(get(settings, 'maxmemory', 'UNIXSOCKET', 'bind', 'protected-mode', 'save', 'appendonly')).toEqual({
      maxmemory: '0',
      unixsocket: '/tmp/s',
      bind: '127.0.0.1 ::1',
      'protected-mode': 'yes',
      save: '',
      appendonly: 'no',
    });
  });

  it('answers under the own name where Redis has none', () => {
    expect(get(defaultSettings(), 'item-size-max', 'unix')).toEqual({ 'item-size-max': '1048576' });
  });

  it('takes patterns, and answers each parameter once', () => {
    expect(Object.keys(get(defaultSettings(), 'slowlog-*', 'slowlog-max-len'))).toEqual([
      'slowlog-log-slower-than',
      'slowlog-max-len',
    ]);
    expect(Object.keys(get(defaultSettings(), 'h[a-z]', 'h?'))).toEqual(['hz']);
    expect(Object.keys(get(defaultSettings(), '[^h]z', 'h[', 'hz*x'))).toEqual([]);
    expect(Object.keys(get(defaultSettings(), '*')).length).toBeGreaterThan(30);
  });

  it('is quick with patterns made to be slow', () => {
    expect(get(defaultSettings(), `${'*e'.repeat(2000)}x`)).toEqual({});
  });
});

describe('CONFIG SET', () => {
  it('sets several at once and says what changed', () => {
    const settings = defaultSettings();
    const result = configSet(settings, [
      ['MaxMemory', '100mb'],
      ['maxmemory-policy', 'noeviction'],
      ['hz', '10'],
    ]);
    expect(result).toEqual({ ok: true, changed: ['maxmemory', 'maxmemoryPolicy'] });
    expect(settings).toMatchObject({ maxmemory: 100 * 1024 ** 2, maxmemoryPolicy: 'noeviction' });
  });

  it('is all or nothing', () => {
    const settings = defaultSettings();
    expect(setError(settings, ['hz', '50'], ['maxclients', 'many'])).toBe(
      "ERR CONFIG SET failed (possibly related to argument 'maxclients') - argument couldn't be parsed into an integer",
    );
    expect(settings).toEqual(defaultSettings());
  });

  it('words its errors as Redis does', () => {
    const settings = defaultSettings();
    expect(setError(settings, ['nope', '1'])).toBe("ERR Unknown option or number of arguments for CONFIG SET - 'nope'");
    expect(setError(settings, ['port', '1'])).toMatch(/'port'\) - can't set immutable config$/);
    expect(setError(settings, ['hz', '1'], ['hz', '2'])).toMatch(/'hz'\) - duplicate parameter$/);
    expect(setError(settings, ['protected-mode', '2'])).toMatch(/argument must be 'yes' or 'no'$/);
    expect(setError(settings, ['appendonly', 'yes'])).toMatch(/decided at the start, by the setting durability/);
    expect(setError(settings, ['appendonly', 'no'])).toBe('');
  });

  it('keeps one output limit for ordinary clients and one for subscribers', () => {
    const settings = defaultSettings();
    expect(setError(settings, ['client-output-buffer-limit', 'normal 8mb 2mb 60'])).toBe('');
    const limit = get(settings, 'client-output-buffer-limit')['client-output-buffer-limit'];
    expect(limit).toBe('normal 8388608 2097152 0 slave 8388608 2097152 0 pubsub 33554432 8388608 60');
    expect(setError(settings, ['client-output-buffer-limit', limit])).toBe('');
    expect(setError(settings, ['client-output-buffer-limit', 'normal 0 0 0'])).toBe('');
    expect(settings).toMatchObject({ clientOutputBufferHard: 0, clientOutputBufferSoft: 2 * 1024 ** 2 });
    expect(setError(settings, ['client-output-buffer-limit', 'normal 8mb 2mb'])).toMatch(/wrong number/);
    expect(setError(settings, ['client-output-buffer-limit', 'other 8mb 2mb 60'])).toMatch(/client class/);
    expect(setError(settings, ['client-output-buffer-limit', 'normal 8mb 2mb 0 slave 9mb 2mb 0'])).toMatch(/same/);
    expect(setError(settings, ['client-output-buffer-limit', 'pubsub 9mb 2mb 5'])).toBe('');
    expect(settings).toMatchObject({ pubsubOutputBufferHard: 9 * 1024 ** 2, pubsubOutputBufferSeconds: 5 });
  });

  it('does not open the server to other machines by taking the password away', () => {
    const settings = { ...defaultSettings(), bind: ['0.0.0.0'], requirepass: 'x', memcachedPort: 0 };
    expect(setError(settings, ['requirepass', ''])).toMatch(/protected mode does not serve other machines/);
    expect(setError(settings, ['requirepass', ''], ['protected-mode', 'no'])).toBe('');
  });
});

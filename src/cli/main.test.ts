import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { defaultSettings, environmentName, settingKeys, settingName } from '../config/index.js';
import { run } from './main.js';
import { readyLines } from './ready.js';
import { describeStartupError } from './startup-errors.js';

let out: string;
let err: string;
beforeEach(() => {
  out = '';
  err = '';
  vi.spyOn(console, 'log').mockImplementation((line: string) => {
    out += `${line}\n`;
  });
  vi.spyOn(console, 'error').mockImplementation((line: string) => {
    err += `${line}\n`;
  });
});
afterEach(() => vi.restoreAllMocks());

describe('entresol', () => {
  it('prints its version', async () => {
    expect(await run(['--version'])).toBe(0);
    expect(out).toMatch(/^entresol \d+\.\d+\.\d+\n$/);
  });

  it('prints help with something to try', async () => {
    expect(await run(['--help'])).toBe(0);
    expect(out).toContain('redis-cli -p 6379 SET greeting hello');
  });

  it.each([
    ['serve', '--help'],
    ['serve', '--port', '1', '-h'],
    ['help', 'serve'],
  ])('prints every option of serve: %s %s', async (...args) => {
    expect(await run(args)).toBe(0);
    for (const key of settingKeys) expect(out).toContain(`  --${settingName(key)} `);
    expect(out).toContain('Examples:');
    expect(out.split('\n').filter((line) => line.length > 130)).toEqual([]);
  });

  it.each([
    [['sevre'], "entresol: 'sevre': unknown command. Did you mean serve? See entresol --help.\n"],
    [
      ['--port', '1'],
      "entresol: '--port': unknown command. Options of the server follow the command: entresol serve --port. See entresol --help.\n",
    ],
    [['serve', '--prot', '1'], 'entresol: --prot: unknown option. Did you mean --port? See entresol serve --help.\n'],
    [
      ['pool', 'chek', 'x'],
      "entresol pool: info, check, export, repair or upgrade is expected, not 'chek'. Did you mean check? See entresol pool --help.\n",
    ],
    [['pool', 'check'], 'entresol pool check: one folder is expected. See entresol pool --help.\n'],
    [['pool', 'check', 'x', '--rdb'], "entresol pool check: it has no option '--rdb'. See entresol pool --help.\n"],
    [
      ['pool', 'export', 'x', '--rdb-version=11'],
      'entresol pool export: --rdb-version goes with --rdb. See entresol pool --help.\n',
    ],
    [
      ['pool', 'export', 'x', '--rdb', '--rdb-version'],
      "entresol pool export: --rdb-version is 10, 11 or 12, not '?'. See entresol pool --help.\n",
    ],
    [['serve', '--hz', '0'], "entresol: --hz: '0' must be between 1 and 500 inclusive.\n"],
  ])('refuses %j with exit code 2 and one line', async (args, message) => {
    expect(await run(args)).toBe(2);
    expect(err).toBe(message);
    expect(out).toBe('');
  });

  it('names environment variables like the flags', () => {
    expect(environmentName('memcachedPort')).toBe('ENTRESOL_MEMCACHED_PORT');
  });
});

describe('ready lines', () => {
  const shm = '/dev/shm/entresol-data';

  it('say what listens, where the data is and what to try', () => {
    const addresses = { redis: '127.0.0.1:6379', memcached: '127.0.0.1:11211' };
    const lines = readyLines('0.1.0', { ...defaultSettings(), tier: 'file' }, addresses, shm);
    expect(lines.split('\n')).toEqual([
      'entresol 0.1.0 is ready: 1 worker',
      '  Redis      127.0.0.1:6379',
      '  memcached  127.0.0.1:11211',
      '  DRAM       128 MiB, /dev/shm/entresol-data',
      '  capacity   1 GiB, file in ./data',
      'Try:',
      '  redis-cli -p 6379 SET greeting hello',
      "  printf 'get greeting\\r\\nquit\\r\\n' | nc 127.0.0.1 11211",
      'Stop with Ctrl-C.',
    ]);
  });

  it('give addresses that a client can reach', () => {
    const settings = { ...defaultSettings(), requirepass: 'x' };
    expect(readyLines('0', settings, { redis: '[::]:7000' }, shm)).toContain('redis-cli -h ::1 -p 7000 --askpass SET');
    expect(readyLines('0', settings, { redis: '0.0.0.0:7000' }, shm)).toContain('redis-cli -p 7000 --askpass SET');
    expect(readyLines('0', settings, { unix: '/tmp/e.sock' }, shm)).toContain('redis-cli -s /tmp/e.sock --askpass SET');
  });
});

describe('start-up errors', () => {
  const settings = defaultSettings();
  const coded = (message: string, fields: object): Error => Object.assign(new Error(message), fields);

  it.each([
    ['EADDRINUSE', 'choose other ports'],
    ['ENOSPC', 'the pool needs 1 GiB in ./data and 128 MiB of shared memory'],
    ['EACCES', 'no permission'],
    ['EROFS', 'read-only'],
    ['ENOENT', 'make it'],
  ])('%s comes with what to do', (code, words) => {
    const message = describeStartupError(coded('bind failed', { code, syscall: 'bind', path: '/x' }), settings);
    expect(message).toContain('/x: bind failed');
    expect(message).toContain(words);
  });

  it.each([
    ['POOL_VERSION', 'entresol pool upgrade ./data'],
    ['POOL_FOREIGN', 'Move the file away'],
    ['POOL_BUSY', 'stop the other process'],
  ])('%s comes with what to do', (code, words) => {
    const error = coded('/pool/x: the pool is not usable', { code, path: '/pool/x' });
    expect(describeStartupError(error, settings)).toMatch(/^\/pool\/x: the pool is not usable\n/);
    expect(describeStartupError(error, settings)).toContain(words);
  });

  it('finds the advice for a system error inside one of the pool', () => {
    const cause = coded('ENOSPC: no space left on device', { code: 'ENOSPC', syscall: 'posix_fallocate' });
    const error = coded('/pool/x: cannot reserve', { code: 'POOL_IO', path: '/pool/x', cause });
    expect(describeStartupError(error, settings)).toContain('Free some, or lower --capacity or --dram');
  });

  it('does not hide a programming error', () => {
    expect(describeStartupError(new TypeError('x is undefined'), settings)).toBeUndefined();
    const internal = coded('bad argument', { code: 'ERR_INVALID_ARG_TYPE' });
    expect(describeStartupError(internal, settings)).toBeUndefined();
  });
});

import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { loadSettings, type Settings } from '../config/index.js';
import { parseMemcachedArguments } from './memcached-arguments.js';
import { memcachedHelp, optionTable } from './memcached-help.js';
import { OPTIONS } from './memcached-options.js';
import { serverPlan } from './memcached-plan.js';

const DOCS = fileURLToPath(new URL('../../docs/memcached.md', import.meta.url));
const MIB = 1024 ** 2;
const machine = { memoryBytes: 64 * 1024 * MIB, memoryLimitBytes: undefined, cpuCount: 3, openFilesMax: 100_000 };

function settingsOf(line: string, environment: Record<string, string> = {}): Settings {
  const plan = parseMemcachedArguments(line.split(' ').filter((word) => word !== ''));
  const { args, tcpPort, udpPort } = serverPlan(plan, environment, machine.cpuCount);
  const ports = [`--memcached-port=${tcpPort}`, `--memcached-udp-port=${udpPort}`];
  return loadSettings({ args: [...args, ...ports], machine, mayListenNowhere: true }).settings;
}

describe("memcached's command line", () => {
  it("has memcached's defaults", () => {
    expect(settingsOf('')).toMatchObject({
      port: 0,
      memcachedPort: 11_211,
      memcachedUdpPort: 0,
      bind: ['0.0.0.0'],
      protectedMode: false,
      maxclients: 1024,
      itemSizeMax: MIB,
      capacity: 0,
      workers: 2,
      maxmemory: (64 + 2 + 2) * MIB,
      maxmemoryPolicy: 'allkeys-lru',
      memcachedProtocol: 'auto',
      loglevel: 'warning',
    });
  });

  it.each<[string, Partial<Settings>]>([
    ['-p 1', { memcachedPort: 1 }],
    ['-p1', { memcachedPort: 1 }],
    ['--port=1', { memcachedPort: 1 }],
    ['--port 1', { memcachedPort: 1 }],
    ['-U 5', { memcachedUdpPort: 5, memcachedPort: 5 }],
    ['-p 6 -U 5', { memcachedUdpPort: 5, memcachedPort: 6 }],
    ['-s /tmp/x.sock -a 777', { memcachedUnix: '/tmp/x.sock', memcachedPort: 0, unixMode: 0o777 }],
    ['-l 127.0.0.1,::1', { bind: ['127.0.0.1', '::1'] }],
    ['-l 127.0.0.1:7', { bind: ['127.0.0.1'], memcachedPort: 7 }],
    ['-l 127.0.0.1:7 -p 8', { bind: ['127.0.0.1'], memcachedPort: 7, memcachedBind: [] }],
    ['-l 127.0.0.1:7 -p 0 -U 9', { memcachedPort: 0, memcachedUdpPort: 7 }],
    ['-l [::1]:7 -l localhost', { memcachedBind: ['[::1]:7', '127.0.0.1'], memcachedPort: 11_211 }],
    ['-l 1.2.3.4:1,1.2.3.5:2,*:3', { memcachedBind: ['1.2.3.4:1', '1.2.3.5:2', '0.0.0.0:3'] }],
    ['-vvAM', { loglevel: 'verbose', enableShutdown: true, maxmemoryPolicy: 'noeviction' }],
    ['-m 100 -t 7', { maxmemory: (100 + 2 + 7) * MIB, workers: 7 }],
    ['-c 5 -b 6 -R 7', { maxclients: 5, tcpBacklog: 6, memcachedRequestsPerTurn: 7 }],
    ['-CFXW', { memcachedCas: false, memcachedFlush: false, memcachedDump: false, memcachedWatch: false }],
    ['-I 2m', { itemSizeMax: 2 * MIB }],
    ['-I 2000', { itemSizeMax: 2000 }],
    ['-B binary', { memcachedProtocol: 'binary' }],
    ['-D -', { memcachedPrefixDelimiter: '-', memcachedDetail: true }],
    ['-Y /tmp/users', { memcachedAuthFile: '/tmp/users', memcachedProtocol: 'ascii' }],
    ['-o idle_timeout=3,no_lru_crawler', { timeout: 3, memcachedLruCrawler: false }],
    ['-o watcher_logbuf_size=8 -o modern', { memcachedWatchBuffer: 8192 }],
    ['--extended=ext_path=/mnt/d1/x:2G', { pool: '/mnt/d1/x.entresol', capacity: 2 * 1024 * MIB }],
    ['-e /mnt/pmem/mc', { pool: '/mnt/pmem/mc.entresol' }],
  ])('%s', (line, expected) => {
    expect(settingsOf(line)).toMatchObject(expected);
  });

  it('takes the users of SASL from the file that memcached takes them from', () => {
    const settings = settingsOf('-S', { MEMCACHED_SASL_PWDB: '/etc/users' });
    expect(settings).toMatchObject({ memcachedAuthFile: '/etc/users', memcachedProtocol: 'binary' });
    expect(() => settingsOf('-S')).toThrow('MEMCACHED_SASL_PWDB');
  });

  it.each([
    ['-B http', 'Invalid value for binding protocol'],
    ['-c 0', 'Maximum connections must be at least 1'],
    ['-c -1', 'Maximum connections'],
    ['-t 0', 'Number of threads'],
    ['-I 1000', 'less than 1024 bytes'],
    ['-I 256m', '1/2 of memory max'],
    ['-S -B ascii', 'You cannot allow the ASCII protocol'],
    ['-S -B auto', 'You cannot allow the ASCII protocol'],
    ['-Y x -B binary', 'You cannot allow the BINARY protocol'],
    ['-l proto[ascii]:1.2.3.4:1', 'proto[]'],
    ['-l 127.0.0.1:70000', 'must be IP addresses'],
    ['-l fooble', 'must be IP addresses'],
    ['-o nosuch', 'Illegal suboption "nosuch"'],
    ['-o idle_timeout', 'Missing idle_timeout argument'],
    ['-q', "invalid option -- 'q'"],
    ['--nosuch', "unrecognized option '--nosuch'"],
    ['-p', 'option requires an argument'],
    ['-p x', "'x' is no port"],
    ['now', "'now' is no option"],
  ])('refuses %s', (line, message) => {
    expect(() => settingsOf(line)).toThrow(message);
  });

  it('lists every option in its help', () => {
    for (const { name } of OPTIONS) expect(memcachedHelp()).toContain(`  ${name}`);
  });

  it('has the table of docs/memcached.md: UPDATE_DOCS=1 writes it', () => {
    const [begin, end] = ['<!-- options -->\n', '\n<!-- /options -->'];
    const text = readFileSync(DOCS, 'utf8');
    const [from, to] = [text.indexOf(begin) + begin.length, text.indexOf(end)];
    expect(to).toBeGreaterThan(from);
    if (process.env.UPDATE_DOCS === '1') writeFileSync(DOCS, text.slice(0, from) + optionTable() + text.slice(to));
    else expect(text.slice(from, to)).toBe(optionTable());
  });
});

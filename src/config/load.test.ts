import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ConfigError } from './error.js';
import { type LoadOptions, loadSettings } from './load.js';
import type { Machine } from './machine.js';

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;
const machine: Machine = { memoryBytes: 16 * GIB, memoryLimitBytes: undefined, cpuCount: 4, openFilesMax: 100_000 };

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'entresol-config-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

function file(content: string): string {
  const path = join(folder, 'entresol.toml');
  writeFileSync(path, content);
  return path;
}

function load(args: readonly string[], options: LoadOptions = {}) {
  return loadSettings({ machine, ...options, args });
}

function problems(args: readonly string[], options: LoadOptions = {}): readonly string[] {
  try {
    load(args, options);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

describe('where settings come from', () => {
  it('takes defaults when nothing is given', () => {
    const { settings, warnings } = load([]);
    expect(settings).toMatchObject({ port: 6379, memcachedPort: 11_211, workers: 1, dram: 128 * MIB, capacity: GIB });
    expect(warnings).toEqual([]);
  });

  it('prefers the flag to the environment to the file to the default', () => {
    const path = file('port = 1\nhz = 20\nmaxclients = 30\n');
    const env = { ENTRESOL_PORT: '2', ENTRESOL_HZ: '21', ENTRESOL_CONFIG: path };
    const { settings, origins } = load(['--port', '3'], { env });
    expect(settings).toMatchObject({ port: 3, hz: 21, maxclients: 30 });
    expect(origins).toMatchObject({ port: 'flag', hz: 'environment', maxclients: 'file', timeout: 'default' });
  });

  it('prefers --config to ENTRESOL_CONFIG', () => {
    const path = file('port = 7000');
    expect(load(['--config', path], { env: { ENTRESOL_CONFIG: '/nowhere' } }).settings.port).toBe(7000);
  });

  it('understands the forms of flags', () => {
    expect(load(['--protected-mode']).settings.protectedMode).toBe(true);
    expect(load(['--no-protected-mode']).settings.protectedMode).toBe(false);
    expect(load(['--protected-mode=no']).settings.protectedMode).toBe(false);
    expect(load(['--slowlog-log-slower-than', '-1']).settings.slowlogLogSlowerThan).toBe(-1);
    expect(load(['--bind', 'localhost,::1']).settings.bind).toEqual(['127.0.0.1', '::1']);
    expect(load(['--unix-mode', '770']).settings.unixMode).toBe(0o770);
  });

  it('passes over the variables that Kubernetes sets for a Service named entresol', () => {
    const env = {
      ENTRESOL_PORT: 'tcp://10.0.0.1:6379',
      ENTRESOL_PORT_6379_TCP_ADDR: '10.0.0.1',
      ENTRESOL_SERVICE_HOST: '10.0.0.1',
      ENTRESOL_SERVICE_PORT_REDIS: '6379',
    };
    const { settings, warnings } = load([], { env });
    expect(settings.port).toBe(6379);
    expect(warnings).toEqual([]);
  });

  it('warns of unknown variables, with the nearest name', () => {
    const { warnings } = load([], { env: { ENTRESOL_WORKER: '2' } });
    expect(warnings).toEqual([
      'ENTRESOL_WORKER in the environment is not a setting and has no effect. Did you mean ENTRESOL_WORKERS?',
    ]);
  });
});

describe('errors', () => {
  it.each([
    [['--prot', '1'], '--prot: unknown option. Did you mean --port? See entresol serve --help.'],
    [
      ['--memcached_port', '1'],
      '--memcached_port: unknown option. Did you mean --memcached-port? See entresol serve --help.',
    ],
    [['--frobnicate'], '--frobnicate: unknown option. See entresol serve --help.'],
    [['--port'], '--port: a value is missing: --port PORT'],
    [['--port', '--hz', '10'], '--port: a value is missing: --port PORT'],
    [['--config'], '--config: a value is missing: --config FILE.toml'],
    [['--port', '70000'], "--port: '70000' must be between 0 and 65535 inclusive."],
    [['--port', 'redis'], "--port: 'redis' is not an integer."],
    [['--dram', '1.5gb'], "--dram: '1.5gb' must be a memory value, such as 512mb, 1GiB or a number of bytes."],
    [['--tier', 'ssd'], "--tier: 'ssd' must be one of the following: auto, dax, numa, file, none."],
    [['--protected-mode=maybe'], "--protected-mode: 'maybe' must be 'yes' or 'no'."],
    [['--shards', '100'], "--shards: '100' must be a power of two."],
    [['--bind', 'example.org'], "--bind: 'example.org' must be IP addresses; 'example.org' is none."],
    [['6379'], "'6379': not expected here. Options start with --; see entresol serve --help."],
    [['--config', '/nowhere.toml'], '/nowhere.toml: cannot read the configuration file: there is no such file'],
  ])('%j', (args, problem) => {
    expect(problems(args)).toEqual([problem]);
  });

  it('names file, line and nearest key of an unknown TOML key', () => {
    const path = file('# comment\nport = 1\nmemcached_port = 3\n');
    expect(problems(['--config', path])).toEqual([
      `${path} line 3, memcached_port: unknown setting. Did you mean memcached-port? See entresol serve --help.`,
    ]);
  });

  it('names file and line of bad TOML and bad TOML values', () => {
    const path = file('port = \n');
    expect(problems(['--config', path])[0]).toMatch(/entresol\.toml line 1, column \d+: not valid TOML: /);
    file('\nport = [1]\nhz = 0.5\n[memory]\ndram = 1');
    expect(problems(['--config', path])).toEqual([
      `${path} line 2, port: cannot take this type of value; it takes PORT`,
      `${path} line 4, memory: unknown setting. Did you mean maxmemory? See entresol serve --help.`,
      `${path} line 3, hz: '0.5' is not an integer.`,
    ]);
  });

  it('lists all problems at once and names the environment variable', () => {
    expect(problems(['--nope'], { env: { ENTRESOL_HZ: 'x' } })).toEqual([
      '--nope: unknown option. See entresol serve --help.',
      "ENTRESOL_HZ: 'x' is not an integer.",
    ]);
  });

  it('never repeats the password', () => {
    expect(problems(['--requirepass', 'x'.repeat(600)])).toEqual([
      '--requirepass: the value must be at most 512 bytes long.',
    ]);
  });
});

/** What README and CONTRIBUTING tell people to type exists: flags, variables, TOML keys, npm scripts, files. */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { createCommandTable } from '../src/commands/families.js';
import { environmentName, formatSize, schema, settingKeys, settingName } from '../src/config/index.js';

const read = (path: string): string => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');
const isThere = (path: string): boolean => existsSync(fileURLToPath(new URL(`../${path}`, import.meta.url)));

function mentioned(text: string, pattern: RegExp): string[] {
  return [...new Set([...text.matchAll(pattern)].map((match) => match[1] ?? match[2]))];
}

describe.each(['README.md', 'CONTRIBUTING.md'])('%s', (document) => {
  const text = read(document);

  it('names flags and variables that exist', () => {
    const flags = new Set([...settingKeys.map(settingName), 'config', 'help', 'fast', 'write', 'check', 'askpass']);
    const switches = settingKeys.filter((key) => schema[key].kind.isSwitch).map((key) => `no-${settingName(key)}`);
    expect(
      mentioned(text, /(?<![\w-])--([a-z][a-z-]+)/g).filter((f) => !flags.has(f) && !switches.includes(f)),
    ).toEqual([]);
    const variables = new Set([...settingKeys.map(environmentName), 'ENTRESOL_CONFIG']);
    expect(mentioned(text, /\b(ENTRESOL_[A-Z_]+)/g).filter((name) => !variables.has(name))).toEqual([]);
  });

  it('names npm scripts and files that exist', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const named = mentioned(text, /npm run ([a-z:]+)/g);
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
    const files = mentioned(text, /\]\(([\w./-]+)\)|`((?:src|test|bin|scripts)\/[\w./-]+)`/g).filter(
      (f) => f !== undefined,
    );
    expect(files.filter((file) => !isThere(file))).toEqual([]);
  });
});

it('README states the defaults that the program has', () => {
  const text = read('README.md');
  for (const key of ['dram', 'capacity'] as const) {
    expect(text).toContain(`| \`--${settingName(key)} SIZE\` | ${formatSize(schema[key].default)} |`);
  }
  expect(text).toContain(`| ${schema.port.default}, ${schema.memcachedPort.default} |`);
  expect(text).toContain(`| ${schema.maxmemoryPolicy.default} |`);
});

it('docs/redis.md lists the commands that there are', () => {
  const rows = read('docs/redis.md')
    .split('\n')
    .filter((line) => /^\| [a-z ]+ \| [A-Z_ ]+ \|$/.test(line));
  const listed = rows.flatMap((row) => row.split('|')[2].trim().split(' '));
  const declared = createCommandTable().commands.map((command) => command.spec.name.toUpperCase());
  expect(listed.sort()).toEqual(declared.sort());
});

import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { rewriteConfigFile, rewriteToml } from './rewrite.js';
import { defaultSettings } from './schema.js';

const source = '# Our cache\nport = 7000 # not live\nhz = 20 # often\nmaxmemory = "100mb"\n';
const running = { ...defaultSettings(), port: 7000, hz: 20, maxmemory: 100 * 1024 ** 2 };

describe('CONFIG REWRITE', () => {
  it('leaves a file alone that says what the server runs with', () => {
    expect(rewriteToml(source, running)).toBe(source);
  });

  it('changes the lines of changed settings and adds what is not there', () => {
    const text = rewriteToml(source, { ...running, hz: 30, protectedMode: false, requirepass: 'a"b' });
    expect(text).toBe(
      '# Our cache\nport = 7000 # not live\nhz = 30\nmaxmemory = "100mb"\nrequirepass = "a\\"b"\nprotected-mode = false\n',
    );
  });

  it('writes back a setting that returned to its default', () => {
    expect(rewriteToml('hz = 20\n', defaultSettings())).toBe('hz = 10\n');
  });

  it('refuses what it cannot change safely', () => {
    expect(() => rewriteToml('requirepass = """\na"""\n', { ...running, requirepass: 'b' })).toThrow(
      /not valid|cannot/,
    );
    expect(() => rewriteToml('hz = \n', running)).toThrow('not valid');
  });

  it('replaces the file and keeps its permissions', () => {
    const folder = mkdtempSync(join(tmpdir(), 'entresol-config-'));
    try {
      const path = join(folder, 'entresol.toml');
      writeFileSync(path, source, { mode: 0o600 });
      rewriteConfigFile(path, { ...running, hz: 40 });
      expect(readFileSync(path, 'utf8')).toContain('hz = 40\n');
      expect(statSync(path).mode & 0o777).toBe(0o600);
      expect(readdirSync(folder)).toEqual(['entresol.toml']);
      expect(() => rewriteConfigFile(join(folder, 'none.toml'), running)).toThrow('ENOENT');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

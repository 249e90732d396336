/**
 * The documentation holds together: links and anchors lead somewhere, the reference names all that the program declares, options that
 * pages name exist, and the site renders. Needs the build, of which the reference is made.
 */
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { createCommandTable } from '../../src/commands/families.js';
import { schema, settingKeys, settingName } from '../../src/config/index.js';
import { CACHE_ERRORS } from '../../src/embed/errors.js';
import { COMMAND_NAMES } from '../../src/protocol/memcached/command-names.js';
import { ERROR_CODES } from '../../src/protocol/resp/error-codes.js';
import { POOL_ERRORS } from '../../src/store/errors.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const RENDER_MAX_MS = 300_000;

/** Path from the root -> text: what people read, the generated pages among it. */
const pages = new Map<string, string>();

beforeAll(async () => {
  const generator = new URL('../../scripts/docs/generate.mjs', import.meta.url).href;
  const { referencePages } = (await import(generator)) as { referencePages(): Promise<Record<string, string>> };
  for (const [name, text] of Object.entries(await referencePages())) pages.set(`docs/reference/${name}`, text);
  const committed = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'bench/README.md', 'test/fuzz/README.md'];
  for (const name of readdirSync(join(ROOT, 'docs'))) if (name.endsWith('.md')) committed.push(`docs/${name}`);
  for (const path of committed) pages.set(path, readFileSync(join(ROOT, path), 'utf8'));
}, RENDER_MAX_MS);

const withoutCode = (text: string): string => text.replace(/^```[\s\S]*?^```/gm, '').replace(/^ {4}.*$/gm, '');

function anchorsOf(text: string): Set<string> {
  const headings = [...withoutCode(text).matchAll(/^#+ (.+)$/gm)].map(([, heading]) => heading);
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replace(/[^a-z0-9_]+/g, '-')
        .replace(/^-|-$/g, ''),
    ),
  );
}

/** What is wrong with a link, or undefined. */
function problemOf(page: string, link: string): string | undefined {
  const [path, anchor] = link.split('#');
  const target = path === '' ? page : relative(ROOT, join(ROOT, dirname(page), path));
  const text = pages.get(target);
  if (text === undefined) return existsSync(join(ROOT, target)) && anchor === undefined ? undefined : 'leads nowhere';
  return anchor === undefined || anchorsOf(text).has(anchor) ? undefined : 'names no heading';
}

describe('the pages', () => {
  it('have links that lead somewhere', () => {
    const wrong: string[] = [];
    let checked = 0;
    for (const [page, text] of pages) {
      for (const [, link] of withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g)) {
        if (/^[a-z]+:/.test(link)) continue;
        checked++;
        const problem = problemOf(page, link);
        if (problem !== undefined) wrong.push(`${page}: ${link} ${problem}`);
      }
    }
    expect(wrong).toEqual([]);
    expect(checked).toBeGreaterThan(40);
  });

  it('name options of serve that exist', () => {
    const flags = new Set<string>([...settingKeys.map(settingName), 'config', 'help']);
    for (const key of settingKeys) if (schema[key].kind.isSwitch) flags.add(`no-${settingName(key)}`);
    // Other programs' options, and those of entresol doctor, pool and hotspots.
    for (const other of ['offline', 'no-install', 'shm-size', 'check', 'mode', 'json']) flags.add(other);
    for (const other of ['rdb', 'rdb-version', 'workload', 'requests', 'from', 'tair']) flags.add(other);
    const wrong: string[] = [];
    for (const [page, text] of pages) {
      // memcached's page is about memcached's own options too, the others' are checked elsewhere.
      if (!page.startsWith('docs/') || page === 'docs/memcached.md') continue;
      for (const [, flag] of text.matchAll(/(?<![\w-])--([a-z][a-z-]+)/g)) {
        if (!flags.has(flag)) wrong.push(`${page}: --${flag}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  it('describe every setting, command and error', () => {
    const configuration = pages.get('docs/reference/configuration.md') ?? '';
    for (const key of settingKeys) expect(configuration).toContain(`### ${settingName(key)}\n`);
    const redis = pages.get('docs/reference/redis-commands.md') ?? '';
    for (const { spec } of createCommandTable().commands) expect(redis).toContain(`| ${spec.name.toUpperCase()} |`);
    const memcached = pages.get('docs/reference/memcached-commands.md') ?? '';
    for (const name of COMMAND_NAMES) if (name !== 'unknown') expect(memcached).toContain(`| \`${name}\` |`);
    const errors = pages.get('docs/reference/errors.md') ?? '';
    for (const code of [...ERROR_CODES, ...Object.keys(CACHE_ERRORS), ...Object.keys(POOL_ERRORS)]) {
      expect(errors).toContain(`| \`${code}\` |`);
    }
  });

  it(
    'render',
    async () => {
      const script = join(ROOT, 'scripts/docs/main.mjs');
      await promisify(execFile)(process.execPath, [script], { cwd: ROOT, timeout: RENDER_MAX_MS });
      const rendered = readFileSync(join(ROOT, 'build/docs/reference/configuration.html'), 'utf8');
      expect(rendered).toContain('ENTRESOL_MEMCACHED_PORT');
    },
    RENDER_MAX_MS,
  );
});

/** entresol doctor as a process: exit codes, JSON, what it leaves behind (nothing); and what serve says at its start. Needs the build. */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makePool, removePool } from '../helpers/pool.js';
import { startTestServer } from '../helpers/server.js';
import { entresol } from './command.js';

let pool: string;
beforeEach(async () => {
  pool = await makePool();
});
afterEach(() => removePool(pool));

const small = ['--dram', '16mb', '--capacity', '16mb'];

async function report(args: readonly string[]): Promise<{ code: number | null; json: Record<string, unknown> }> {
  const { code, out, err } = await entresol(['doctor', ...args, '--json']);
  expect(err).toBe('');
  return { code, json: JSON.parse(out) as Record<string, unknown> };
}

const codesOf = (json: Record<string, unknown>): string[] =>
  (json.findings as { code: string }[]).map(({ code }) => code);

describe('entresol doctor', () => {
  it('says of an ordinary folder what auto chooses and why, and leaves nothing there', async () => {
    const { code, out } = await entresol(['doctor', pool, ...small]);
    expect(out).toMatch(/ {2}tier {9}(file|dax) of 16 MiB: /);
    expect(out).toContain('NUMA');
    expect([0, 1]).toContain(code);
    expect(readdirSync(pool)).toEqual([]);
  });

  it('agrees with itself in JSON', async () => {
    const { code, json } = await report([pool, ...small]);
    expect(json).toMatchObject({ version: 1, path: pool, mapSync: json.tier === 'dax' });
    expect(json.verdict).toBe(code === 0 ? 'fit' : 'warnings');
    for (const finding of json.findings as object[]) expect(finding).toHaveProperty('level');
  });

  it('looks at the folder above where a pool shall be, and makes none', async () => {
    const { json } = await report([join(pool, 'a/b'), ...small]);
    expect(json.place).toMatchObject({ path: pool, exists: false });
    expect(readdirSync(pool)).toEqual([]);
  });

  it('refuses with 2 what cannot be a pool, by code', async () => {
    writeFileSync(join(pool, 'file'), '');
    expect(await report([join(pool, 'file')])).toMatchObject({
      code: 2,
      json: { verdict: 'unusable', kind: 'no-directory' },
    });
    const proc = await report(['/proc']);
    expect(proc.code).toBe(2);
    expect(codesOf(proc.json)).toContain('VIRTUAL_FILE_SYSTEM');
    const huge = await report([pool, '--capacity', '15tb']);
    expect(huge.code).toBe(2);
    expect(codesOf(huge.json)).toContain('NO_SPACE');
    const node = await report([pool, '--tier', 'numa', '--numa-node', '999', ...small]);
    expect(node.code).toBe(2);
    expect(codesOf(node.json)).toEqual(expect.arrayContaining(['TIER_REFUSED']));
  });

  it('finds a pool that cannot be used', async () => {
    writeFileSync(join(pool, 'pool.id'), 'not an identity\n');
    const { code, json } = await report([pool, ...small]);
    expect(code).toBe(2);
    expect(codesOf(json)).toContain('POOL_REFUSED');
    rmSync(join(pool, 'pool.id'));
  });

  it('speaks of memory in disguise, and serve then says so at its start', async () => {
    const folder = `/dev/shm/entresol-doctor-${process.pid}`;
    mkdirSync(folder);
    try {
      const { code, json } = await report([folder, ...small]);
      expect(code).toBe(1);
      expect(codesOf(json)).toContain('TMPFS');
      const server = await startTestServer({ pool: folder, dram: '16mb', capacity: '16mb' });
      expect(server.output()).toMatch(/warning: .*\(TMPFS\).*See entresol doctor/);
      expect((await report([folder, ...small])).json.place).toMatchObject({ hasPool: true });
      await server.stop();
    } finally {
      await removePool(folder);
    }
  });

  it('ends with 2 for wrong options, 0 for help', async () => {
    expect(await entresol(['doctor', pool, '--capcity', '1gb'])).toMatchObject({ code: 2, out: '' });
    expect(await entresol(['doctor', '--help'])).toMatchObject({ code: 0, out: expect.stringContaining('--json') });
  });
});

/** What a start keeps for the next one, in a copy of the built program with a node_modules beside it. */
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

let copy: string;
beforeEach(() => {
  copy = mkdtempSync(join(tmpdir(), 'entresol-compiled-'));
  mkdirSync(join(copy, 'dist'));
  cpSync(join(ROOT, 'dist/cjs'), join(copy, 'dist/cjs'), { recursive: true, preserveTimestamps: true });
  symlinkSync(join(ROOT, 'native'), join(copy, 'native'));
  cpSync(join(ROOT, 'package.json'), join(copy, 'package.json'));
});
afterEach(() => rmSync(copy, { recursive: true }));

/** Starts a test server of the copy, and stops it when it has answered. */
async function start(): Promise<void> {
  const child = spawn(process.execPath, [join(copy, 'dist/cjs/start-child.js')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const line = await new Promise<string>((resolve) => child.stdout.once('data', (data) => resolve(String(data))));
  child.stdin.end();
  expect(await ended).toBe(0);
  expect(line).toContain('"ready"');
}

function kept(): Map<string, number> {
  const folder = join(copy, 'node_modules/.cache/entresol', `${process.version}-${process.arch}`);
  return new Map(readdirSync(folder).map((name) => [name, statSync(join(folder, name)).mtimeMs]));
}

test('the first start keeps what it has compiled, the second uses it as it is', async () => {
  mkdirSync(join(copy, 'node_modules'));
  await start();
  const first = kept();
  expect(
    [...first.keys()].filter((name) => /^(commands|store|shared|config|child)-.*\.js\.compiled$/.test(name)),
  ).toHaveLength(5);
  await start();
  expect(kept()).toEqual(first);
});

test('what does not fit is made anew, what belongs to no file is removed', async () => {
  mkdirSync(join(copy, 'node_modules'));
  await start();
  const [commands] = [...kept().keys()].filter((name) => name.startsWith('commands-'));
  const folder = join(copy, 'node_modules/.cache/entresol', `${process.version}-${process.arch}`);
  writeFileSync(join(folder, commands), 'not what was written');
  writeFileSync(join(folder, 'gone-12345678.js.compiled'), 'of an earlier build');
  await start();
  expect(statSync(join(folder, commands)).size).toBeGreaterThan(10_000);
  expect([...kept().keys()]).not.toContain('gone-12345678.js.compiled');
});

test('it starts where nothing can be kept', async () => {
  await start();
  // A file where the folder would be.
  mkdirSync(join(copy, 'node_modules'));
  writeFileSync(join(copy, 'node_modules/.cache'), '');
  await start();
});

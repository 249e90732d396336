/**
 * The addon under the address, undefined-behaviour and leak sanitizers: the tests of test/native and src/native once more,
 * with the build of `npm run build:native:asan`, in child processes; any report fails.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';

const root = path.resolve(import.meta.dirname, '../..');
const addonPath = path.join(root, 'native/addon/build-asan/build/Release/entresol.node');
const limitMs = 300_000;
let logs: string;
beforeAll(() => {
  logs = fs.mkdtempSync(path.join(os.tmpdir(), 'entresol-asan-'));
});
afterAll(() => {
  fs.rmSync(logs, { recursive: true });
});

/** The sanitizers' libraries, which must be loaded before node; undefined where the compiler has none. */
function libraries(): string | undefined {
  const files = ['libasan.so', 'libubsan.so'].map((name) =>
    execFileSync('g++', [`-print-file-name=${name}`])
      .toString()
      .trim(),
  );
  return files.every((file) => path.isAbsolute(file)) ? files.join(' ') : undefined;
}

function run(preload: string, args: string[]): { output: string; reports: string } {
  const { ENTRESOL_ADDON: _, ...inherited } = process.env;
  const result = spawnSync(process.execPath, args, {
    cwd: root,
    timeout: limitMs,
    encoding: 'utf8',
    env: {
      ...inherited,
      LD_PRELOAD: preload,
      ENTRESOL_ADDON: addonPath,
      ASAN_OPTIONS: `detect_leaks=1:exitcode=0:log_path=${path.join(logs, 'report')}`,
      UBSAN_OPTIONS: `print_stacktrace=1:log_path=${path.join(logs, 'report')}`,
    },
  });
  const reports = fs.readdirSync(logs).map((name) => fs.readFileSync(path.join(logs, name), 'utf8'));
  return { output: `${result.stdout}\n${result.stderr}`, reports: reports.join('\n') };
}

/** Leaks of node itself and of other addons are not ours: a leak counts when a frame of ours is in its stack. */
function ourReports(reports: string): string[] {
  return reports
    .split(/\n(?=(?:Direct|Indirect) leak|=+\n|\S+: runtime error)/)
    .filter((report) =>
      /^(Direct|Indirect) leak/.test(report)
        ? /\.\.\/\w+\.c:\d+/.test(report)
        : /runtime error|ERROR: AddressSanitizer/.test(report),
    );
}

test('no report of a sanitizer', { timeout: limitMs * 2 }, ({ skip }) => {
  const preload = libraries();
  if (preload === undefined) return skip('the compiler has no sanitizer libraries here');
  const built = spawnSync('npm', ['run', '--silent', 'build:native:asan'], { cwd: root, encoding: 'utf8' });
  expect(built.status, built.stderr).toBe(0);
  const tests = run(preload, [
    'node_modules/vitest/vitest.mjs',
    'run',
    'test/native/pump',
    'test/native/workers',
    'src/native',
  ]);
  expect(ourReports(tests.reports)).toEqual([]);
  expect(tests.output).toMatch(/Test Files .*passed/);
  expect(tests.output).not.toMatch(/Tests .*failed/);
  const leaks = run(preload, ['test/native/leaks.cjs']);
  expect(leaks.output).toContain('done true');
  expect(ourReports(leaks.reports)).toEqual([]);
});

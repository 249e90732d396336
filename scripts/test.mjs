/**
 * npm test: everything. Installs, builds, checks, runs all tests on this Node.js and again on the current LTS release.
 *
 * The last line is always 'N passed, N failed, N skipped', summed over both runs; a step that fails (build, check) counts
 * as one failed. --fast: this Node.js only. Other arguments go to vitest (a file name, -t PATTERN).
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { bringGuestKernel } from './guest-kernel.mjs';
import { ltsNode } from './lts-node.mjs';
import { build, checkPlatform, installDependencies, PrepareError, ROOT, runStep } from './prepare.mjs';
import { installTestPrograms } from './system-packages.mjs';

/** A run that hangs ends as a failure. The first takes about 9 minutes on two idle cores, the second 7. */
const RUN_TIMEOUT_MS = 20 * 60_000;

const args = process.argv.slice(2);
const isFast = args.includes('--fast');
const vitestArgs = args.filter((arg) => arg !== '--fast');
const total = { passed: 0, failed: 0, skipped: 0 };
const notes = [];

function step(action) {
  try {
    action();
    return true;
  } catch (error) {
    if (!(error instanceof PrepareError)) throw error;
    console.error(`npm test: ${error.message}`);
    notes.push(`failed: ${error.message}`);
    total.failed++;
    return false;
  }
}

/** Long, and about C code, devices, packing, documents, benchmark tooling, formats on disk or placement rather than about the Node.js release: run once. */
const RUN_ONCE = [
  'test/native/sanitizer.test.ts',
  'test/bench/**',
  'test/devices/**',
  'test/package/package.test.ts',
  'test/docs/**',
  'test/crash/{cut,draft,group,reboot}.test.ts',
  'test/e2e/pool-*.test.ts',
  'src/store/eviction-quality.test.ts',
];

/** One run of vitest under `node`; the tests find that binary first in PATH and as process.execPath. */
function runTests(node, version, excluded = []) {
  console.log(`> Tests on Node.js ${version}`);
  const folder = mkdtempSync(join(tmpdir(), 'entresol-test-'));
  const report = join(folder, 'report.json');
  try {
    const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH}` };
    const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs');
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
    const exclude = excluded.map((pattern) => `--exclude=${pattern}`);
    const { status, signal } = spawnSync(node, [vitest, 'run', ...reporters, ...exclude, ...vitestArgs], {
      timeout: RUN_TIMEOUT_MS,
      cwd: ROOT,
      stdio: 'inherit',
      env,
    });
    addReport(report, signal ?? `exit code ${status}`, status === 0, version);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function addReport(report, ending, isClean, version) {
  if (!existsSync(report)) {
    total.failed++;
    notes.push(`failed: the tests on Node.js ${version} ended without a report (${ending})`);
    return;
  }
  const result = JSON.parse(readFileSync(report, 'utf8'));
  total.passed += result.numPassedTests;
  total.failed += result.numFailedTests;
  total.skipped += result.numPendingTests + result.numTodoTests;
  // A file that cannot be loaded, or an error outside any test, fails the run without a failed test.
  if (!isClean && result.numFailedTests === 0) {
    total.failed++;
    notes.push(`failed: errors outside the tests on Node.js ${version}; see above`);
  }
}

function main() {
  if (!step(checkPlatform) || !step(installDependencies)) return;
  const missing = installTestPrograms();
  if (missing.length > 0) {
    notes.push(`not installed here, tests that need them are skipped: ${missing.join(', ')}`);
  }
  const kernelObstacle = bringGuestKernel();
  if (kernelObstacle !== '') notes.push(`the tests on a DAX file system are skipped: ${kernelObstacle}`);
  const isBuilt = step(build);
  step(() => runStep('Types and style (npm run check)', 'npm', ['run', '--silent', 'check']));
  if (!isBuilt) return;

  runTests(process.execPath, process.version);
  if (isFast) return;
  const lts = ltsNode();
  if (lts.binary === undefined) notes.push(`no second run on the LTS release of Node.js: ${lts.reason}`);
  else {
    runTests(lts.binary, lts.version, RUN_ONCE);
    notes.push(`not run again on Node.js ${lts.version}: ${RUN_ONCE.join(', ')}`);
  }
}

const startedAtMs = Date.now();
main();
for (const note of notes) console.log(`note: ${note}`);
console.log(`${Math.round((Date.now() - startedAtMs) / 1000)} s`);
console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
process.exitCode = total.failed > 0 ? 1 : 0;

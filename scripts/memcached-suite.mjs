/**
 * Runs memcached's own test-suite (t/*.t of a checkout) against `entresol memcached`.
 *
 *   node scripts/memcached-suite.mjs CHECKOUT [--verbose] [file.t ...]
 *
 * Nothing of the checkout is changed: its t/ is copied beside stand-ins for the programs that the tests start
 * (memcached-debug, timedrun, saslpasswd2). What is not run, and which single tests are expected to fail, stands with its reason in
 * test/compat/memcached-suite.json, from which test/compat/memcached.md is told. Exit code 1 when anything else fails.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  closeSync,
  cpSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const FILE_MS = Number(process.env.SUITE_FILE_SECONDS ?? 900) * 1000;
/** Stopping servers get this long before they are ended by force. */
const STOP_MS = 1500;
/** Some lines are a megabyte of values. */
const LINE_CHARACTERS = 100;

/** The debug command that moves memcached's clock does not exist here: the tests wait for the time to pass instead. */
const WAIT_MODULE = `package WaitForTime;
require MemcachedTest;
no warnings 'redefine';
*MemcachedTest::mem_move_time = sub { MemcachedTest::sleep($_[1]) };
1;
`;

/** User and password that the test of SASL knows. */
const SASL_USERS = 'sasl-users';

function prepare(checkout, folder) {
  // One test reads the protocol's text.
  for (const part of ['t', 'doc']) cpSync(join(checkout, part), join(folder, part), { recursive: true });
  const command = join(ROOT, 'bin/entresol.js');
  const scripts = {
    // The tests ask the help text what there is: not extstore, whose own counters and files they look at.
    'memcached-debug':
      `#!/bin/sh\nif [ "$*" = -h ]; then "${process.execPath}" "${command}" memcached -h | grep -v ext_; exit; fi\n` +
      `exec "${process.execPath}" "${command}" memcached "$@"\n`,
    timedrun: '#!/bin/sh\nshift\nexec "$@"\n',
    // Would add the user of a test to a database of Cyrus SASL; ours is in SASL_USERS from the start.
    saslpasswd2: '#!/bin/sh\ncat > /dev/null\n',
  };
  for (const [name, text] of Object.entries(scripts)) {
    writeFileSync(join(folder, name), text);
    chmodSync(join(folder, name), 0o755);
  }
  writeFileSync(join(folder, 't/lib/WaitForTime.pm'), WAIT_MODULE);
  writeFileSync(join(folder, SASL_USERS), 'testuser@memcached.realm:testpass\n');
}

/**
 * Runs one file in a process group of its own, so that nothing that it has started outlives it. Output goes to files: Node.js makes
 * a pipe that it inherits non-blocking, for all who share it, and the tests would lose what they print.
 */
async function run(folder, file) {
  const paths = [join(folder, 'stdout'), join(folder, 'stderr')];
  const [stdout, stderr] = paths.map((path) => openSync(path, 'w'));
  const child = spawn('perl', [join('t', file)], {
    cwd: folder,
    detached: true,
    stdio: ['ignore', stdout, stderr],
    env: {
      ...process.env,
      PATH: `${folder}:${process.env.PATH}`,
      PERL5LIB: join(folder, 't/lib'),
      PERL5OPT: '-MWaitForTime',
      RUN_SASL_TESTS: '1',
      MEMCACHED_SASL_PWDB: join(folder, SASL_USERS),
    },
  });
  let error;
  const timer = setTimeout(() => {
    error = `still running after ${FILE_MS / 1000} s`;
    endGroup(child.pid);
  }, FILE_MS);
  await once(child, 'exit');
  clearTimeout(timer);
  await sleep(STOP_MS);
  endGroup(child.pid);
  closeSync(stdout);
  closeSync(stderr);
  return { stdout: readFileSync(paths[0], 'latin1'), stderr: readFileSync(paths[1], 'latin1'), error };
}

function endGroup(pid) {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

/** One file's results: numbers and names of the tests that failed, how many ran, how many there should be. */
async function runFile(folder, file) {
  const { stdout, stderr, error } = await run(folder, file);
  const planned = /^1\.\.(\d+)/m.exec(stdout)?.[1];
  const skipped = /^1\.\.0 # SKIP (.*)/im.exec(stdout)?.[1];
  const results = [...stdout.matchAll(/^(not )?ok (\d+)(?: - ([^\n]{0,100}))?/gm)];
  const failed = results
    .filter(([, not]) => not !== undefined)
    .map(([, , number, name]) => ({ number: Number(number), name }));
  const lines = stderr.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return { ran: results.length, planned: Number(planned ?? -1), skipped, failed, error, stderr, lines };
}

function judge(result, expected) {
  if (result.skipped !== undefined) return [];
  const known = new Set(expected);
  const problems = result.failed
    .filter(({ number }) => !known.has(number))
    .map(({ number, name }) => `${number} ${name ?? ''}`);
  for (const number of known) {
    if (!result.failed.some((failure) => failure.number === number))
      problems.push(`${number} was expected to fail, and passes`);
  }
  if (result.error !== undefined) problems.push(result.error);
  else if (result.ran !== result.planned)
    problems.push(
      `${result.ran} of ${result.planned} tests ran; ${result.lines.at(-1)?.slice(0, LINE_CHARACTERS) ?? ''}`,
    );
  return problems;
}

async function main([checkout, ...rest]) {
  const isVerbose = rest.includes('--verbose');
  const wanted = rest.filter((argument) => argument.endsWith('.t'));
  const list = JSON.parse(readFileSync(join(ROOT, 'test/compat/memcached-suite.json'), 'utf8'));
  const folder = mkdtempSync(join(tmpdir(), 'entresol-suite-'));
  const totals = { files: 0, passed: 0, tests: 0, expected: 0, skipped: 0, bad: 0 };
  try {
    prepare(checkout, folder);
    const files = wanted.length > 0 ? wanted : readdirSync(join(folder, 't')).filter((name) => name.endsWith('.t'));
    for (const file of files) {
      totals.files++;
      if (list.skipped[file] !== undefined && wanted.length === 0) {
        totals.skipped++;
        console.log(`skip ${file}: ${list.skipped[file]}`);
        continue;
      }
      const startedMs = performance.now();
      const result = await runFile(folder, file);
      const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
      const expected = list.expected[file]?.tests ?? [];
      const problems = judge(result, expected);
      if (result.skipped !== undefined) totals.skipped++;
      else if (problems.length === 0) totals.passed++;
      else totals.bad++;
      totals.tests += result.ran;
      totals.expected += expected.length;
      const note =
        result.skipped ?? `${result.ran} tests${expected.length > 0 ? `, ${expected.length} expected to fail` : ''}`;
      console.log(`${problems.length === 0 ? 'ok  ' : 'FAIL'} ${file}: ${note}, ${seconds} s`);
      for (const problem of problems.slice(0, isVerbose ? undefined : 12)) console.log(`       ${problem}`);
      if (isVerbose) process.stdout.write(result.stderr);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  const { files, passed, skipped, bad, tests, expected } = totals;
  console.log(
    `${files} files: ${passed} pass, ${skipped} skipped, ${bad} fail; ${tests} tests ran, ${expected} expected to fail`,
  );
  process.exitCode = bad === 0 ? 0 : 1;
}

await main(process.argv.slice(2));

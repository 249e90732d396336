/**
 * Runs units of Redis's own test-suite (Tcl) against this server and prints passed/failed/skipped for each unit.
 *
 *   node test/compat/redis-suite.mjs CHECKOUT [--spawn] [--workers=N] [--output=FILE] [UNIT ...]
 *
 * CHECKOUT is a source tree of Redis 7.2; nothing of it is part of this project. Without --spawn each unit gets one server of
 * ours and the suite treats it as external, skipping what it marks unfit for that. With --spawn the suite starts its
 * own servers through redis-server.mjs, so that units about start-up settings (acl, auth, maxmemory) run too.
 * Needs tclsh and the build. Invariant: no server outlives its unit.
 */
import { spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const COMMAND = fileURLToPath(new URL('../../bin/entresol.js', import.meta.url));
const STAND_IN = fileURLToPath(new URL('./redis-server.mjs', import.meta.url));
const SKIPPED = fileURLToPath(new URL('./redis.md', import.meta.url));
/** A unit that says nothing for so long is ended. */
const SILENT_MAX_MS = 300_000;
const READY = /^entresol \S+ is ready/m;
/** Settings of the suite's default.conf that change replies. */
const SERVER_ARGUMENTS = ['--latency-monitor-threshold=1', '--maxmemory-policy=noeviction'];

/** Units with tests for what this server has. */
const UNITS = [
  'unit/acl unit/acl-v2 unit/auth unit/bitfield unit/bitops unit/dump unit/expire unit/functions unit/geo unit/hyperloglog',
  'unit/info unit/info-command unit/introspection unit/introspection-2 unit/keyspace unit/latency-monitor unit/lazyfree',
  'unit/limits unit/maxmemory unit/memefficiency unit/multi unit/networking unit/obuf-limits unit/other unit/pause',
  'unit/protocol unit/pubsub unit/pubsubshard unit/querybuf unit/quit unit/replybufsize unit/scan unit/scripting',
  'unit/slowlog unit/sort unit/tracking unit/violations unit/type/hash unit/type/incr unit/type/list unit/type/list-2',
  'unit/type/list-3 unit/type/set unit/type/stream unit/type/stream-cgroups unit/type/string unit/type/zset',
].flatMap((line) => line.split(' '));

/** What redis.md lists in its tables: tests as `unit | test | reason`, tags as `tag | reason`. */
function readSkipped() {
  const text = readFileSync(SKIPPED, 'utf8');
  const tests = [...text.matchAll(/^\| (unit\/\S+) \| `([^`]+)` \|/gm)].map(([, unit, name]) => ({ unit, name }));
  const tags = [...text.matchAll(/^\| `([a-z-]+:[a-z-]+)` \|/gm)].map(([, tag]) => tag);
  return { tests, tags };
}

function freePort() {
  return new Promise((done, fail) => {
    const server = createServer();
    server.once('error', fail);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });
}

/** Removes a pool's folder and its memory. */
function removePool(pool) {
  const id = join(pool, 'pool.id');
  if (existsSync(id)) {
    const memory = `/dev/shm/entresol-${basename(pool)}-${readFileSync(id, 'latin1').trim()}`;
    for (const suffix of ['', '.ctl']) rmSync(memory + suffix, { force: true });
  }
  rmSync(pool, { recursive: true, force: true });
}

/** Starts our server; returns its port and a function that stops it and removes its pool. */
async function startServer(workers) {
  const port = await freePort();
  const pool = mkdtempSync(join(tmpdir(), 'entresol-suite-'));
  const args = ['serve', `--port=${port}`, '--memcached-port=0', `--pool=${pool}`, '--dram=512mb', '--capacity=0'];
  const child = spawn(process.execPath, [COMMAND, ...args, `--workers=${workers}`, ...SERVER_ARGUMENTS], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let printed = '';
  const ended = new Promise((done) => child.on('exit', done));
  await new Promise((done, fail) => {
    const collect = (chunk) => {
      printed += chunk;
      if (READY.test(printed)) done();
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    child.on('exit', () => fail(new Error(`the server ended:\n${printed}`)));
  });
  const stop = async () => {
    child.kill('SIGTERM');
    await ended;
    removePool(pool);
    return printed;
  };
  return { port, stop };
}

/** The suite runs src/redis-server of its own tree: puts ours there, and links the real tools. */
function installStandIn(checkout, workers) {
  const path = join(checkout, 'src/redis-server');
  writeFileSync(path, `#!/bin/sh\nexec ${process.execPath} ${STAND_IN} --workers=${workers} "$@"\n`);
  chmodSync(path, 0o755);
  for (const tool of ['redis-cli', 'redis-benchmark']) {
    const there = join(checkout, 'src', tool);
    if (!existsSync(there) && existsSync(`/usr/bin/${tool}`)) symlinkSync(`/usr/bin/${tool}`, there);
  }
}

/** Runs one unit and returns what its lines say. */
async function runUnit(checkout, unit, suiteArgs, skips) {
  const args = ['tests/test_helper.tcl', '--single', unit, '--clients', '1', '--durable', '--dont-clean', ...suiteArgs];
  for (const { name } of skips) args.push('--skiptest', name);
  const child = spawn('tclsh', args, { cwd: checkout, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  let output = '';
  const kill = () => process.kill(-child.pid, 'SIGKILL');
  let timer = setTimeout(kill, SILENT_MAX_MS);
  const collect = (chunk) => {
    output += chunk;
    clearTimeout(timer);
    timer = setTimeout(kill, SILENT_MAX_MS);
  };
  child.stdout.on('data', collect);
  child.stderr.on('data', collect);
  const code = await new Promise((done) => child.on('exit', (exitCode, signal) => done(signal ?? exitCode)));
  clearTimeout(timer);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the suite colours its output
  const text = output.replace(/\u001b\[[\d;]*m/g, '');
  const count = (tag) => text.split(`[${tag}]: `).length - 1;
  const failures = text.split('\n').filter((line) => /^\[(err|exception)\]/.test(line));
  const finished = /All tests passed|The End/.test(text);
  return {
    code,
    text,
    passed: count('ok'),
    failed: failures.length,
    skipped: count('ignore') + count('skip'),
    failures,
    finished,
  };
}

const args = process.argv.slice(2);
const flags = args.filter((arg) => arg.startsWith('--'));
const [checkoutArg, ...named] = args.filter((arg) => !arg.startsWith('--'));
if (checkoutArg === undefined) {
  console.error('usage: node test/compat/redis-suite.mjs CHECKOUT [--spawn] [--workers=N] [--output=FILE] [UNIT ...]');
  process.exit(2);
}
const flagValue = (name) => flags.find((flag) => flag.startsWith(`--${name}=`))?.slice(name.length + 3);
const checkout = resolve(checkoutArg);
const workers = Number(flagValue('workers') ?? 1);
const spawns = flags.includes('--spawn');
const outputFile = flagValue('output');
const skipped = readSkipped();
/** Where the suite's own servers have their folders. */
const temporary = join(checkout, 'tests/tmp');
const sums = { passed: 0, failed: 0, skipped: 0 };
if (spawns) installStandIn(checkout, workers);
for (const unit of named.length > 0 ? named : UNITS) {
  const server = spawns ? null : await startServer(workers);
  const suiteArgs = spawns ? [] : ['--host', '127.0.0.1', '--port', `${server.port}`];
  const skips = skipped.tests.filter((test) => test.unit === unit);
  suiteArgs.push('--tags', skipped.tags.map((tag) => `-${tag}`).join(' '));
  let result;
  // The suite listens below its base port itself: two runs at a time must not meet.
  do {
    result = await runUnit(checkout, unit, [...suiteArgs, '--baseport', String(await freePort())], skips);
    // Somebody else has taken the port in between.
  } while (result.passed === 0 && result.text.includes('address already in use'));
  const printed = server === null ? '' : await server.stop();
  if (spawns) for (const folder of readdirSync(temporary)) removePool(join(temporary, folder));
  for (const key of Object.keys(sums)) sums[key] += result[key];
  const ending = result.finished ? '' : ` (did not finish: ${result.code})`;
  console.log(`${unit}: ${result.passed} passed, ${result.failed} failed, ${result.skipped} skipped${ending}`);
  for (const line of result.failures) console.log(`  ${line.slice(0, 300)}`);
  if (outputFile !== undefined) {
    writeFileSync(outputFile, `==== ${unit}\n${result.text}\n---- server\n${printed}\n`, { flag: 'a' });
  }
}
console.log(`all: ${sums.passed} passed, ${sums.failed} failed, ${sums.skipped} skipped`);
process.exitCode = sums.failed > 0 ? 1 : 0;

/**
 * Stands in for src/redis-server when Redis's own test-suite starts servers: reads a redis.conf, starts this server with what
 * it has a setting for, and prints the lines the suite waits for.
 *
 *   node test/compat/redis-server.mjs [--workers=N] [redis.conf] [--DIRECTIVE VALUE ...]
 *
 * Needs the build. Invariant: a directive that is not known here is passed over, as most are about files and replication;
 * what has a setting goes through the same checks as on the command line.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { ConfigError, loadSettings } from '../../dist/config/index.js';
import { startServer } from '../../dist/server/main.js';

/** Redis's name -> our flag, where the names differ. */
const FLAGS = new Map([
  ['dir', 'pool'],
  ['unixsocket', 'unix'],
  ['unixsocketperm', 'unix-mode'],
]);
const PASSED_ON = new Set(
  [
    'bind port timeout databases maxclients maxmemory maxmemory-policy requirepass protected-mode hz loglevel user aclfile',
    'acl-pubsub-default acllog-max-len slowlog-log-slower-than slowlog-max-len latency-monitor-threshold tcp-backlog',
    'client-query-buffer-limit proto-max-bulk-len lfu-log-factor lfu-decay-time dir unixsocket unixsocketperm',
    'dbfilename rdbcompression rdbchecksum stop-writes-on-bgsave-error appenddirname appendfilename aof-load-truncated',
  ].flatMap((line) => line.split(' ')),
);

/** [directive, value] of every line. */
function directivesOf(text) {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => /^(\S+)\s*(.*)$/.exec(line).slice(1));
}

/** The file and the `--name value ...` pairs behind it. */
function readArguments(args) {
  const pairs = [];
  let workers = '1';
  let configFile;
  for (const arg of args) {
    if (arg.startsWith('--workers=')) workers = arg.slice('--workers='.length);
    else if (arg.startsWith('--')) pairs.push([arg.slice(2), '']);
    else if (pairs.length > 0) pairs.at(-1)[1] = `${pairs.at(-1)[1]} ${arg}`.trim();
    else configFile = arg;
  }
  const fromFile = configFile === undefined ? [] : directivesOf(readFileSync(configFile, 'utf8'));
  return { directives: [...fromFile, ...pairs], workers, configFile };
}

const { directives, workers, configFile } = readArguments(process.argv.slice(2));
// CONFIG REWRITE writes our own format, which then says who the users are.
const dir = directives.findLast(([name]) => name === 'dir')?.[1] ?? '.';
const rewritten = resolve(dir, 'entresol.toml');
const isRewritten = existsSync(rewritten) && readFileSync(rewritten, 'utf8').includes('user');
if (configFile !== undefined) {
  mkdirSync(dir, { recursive: true });
  writeFileSync(rewritten, '', { flag: 'a' });
}
const flags = [
  `--workers=${workers}`,
  '--memcached-port=0',
  '--dram=128mb',
  '--capacity=0',
  '--maxmemory-policy=noeviction',
];
/** Lines of `save` add up; an empty one begins anew. */
const saves = [];
for (const [name, value] of directives) {
  const plain = value.replace(/^(["'])(.*)\1$/, '$2');
  if (name === 'save') plain === '' ? saves.splice(0) : saves.push(plain);
  if (name === 'user' && isRewritten) continue;
  if (PASSED_ON.has(name) && plain !== '') flags.push(`--${FLAGS.get(name) ?? name}=${plain}`);
}
if (saves.length > 0) flags.push(`--save=${saves.join(' ')}`);

try {
  if (configFile !== undefined) flags.push(`--config=${rewritten}`);
  const { settings, configPath } = loadSettings({ args: flags });
  const server = await startServer(settings, { configPath });
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => server.stop());
  console.log(`* PID: ${process.pid}\n* Server initialized\n* Ready to accept connections`);
  await server.done;
} catch (error) {
  if (error instanceof ConfigError) console.error(error.problems.join('\n'));
  else console.error(error.code === 'EADDRINUSE' ? 'Failed listening on port' : error);
  process.exitCode = 1;
}

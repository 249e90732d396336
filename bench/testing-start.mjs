/**
 * How long a test waits for a server of its own: from the call to the first PONG, in turns, so that all meet the same machine.
 *
 *     node bench/testing-start.mjs [--rounds N] [--redis-memory-server FOLDER]
 *
 * entresol/testing, redis-server started by hand, redis-memory-server where FOLDER has it installed (with the redis-server of the
 * system: its own would be compiled first), and a Node.js that prints a word, which no server in Node.js can be faster than. Needs the
 * build. Prints median and least milliseconds.
 */
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { startServer } from '../dist/bundle/testing.js';

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '20' }, 'redis-memory-server': { type: 'string' } },
});

/** Resolves at the first PONG; asks again while nobody listens. */
function firstPong(port) {
  return new Promise((done) => {
    const attempt = () => {
      const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'));
      socket.once('data', () => {
        socket.destroy();
        done();
      });
      socket.once('error', () => setTimeout(attempt, 1));
    };
    attempt();
  });
}

async function entresol() {
  const server = await startServer();
  await firstPong(server.port);
  return () => server.stop();
}

let nextPort = 21_000 + (process.pid % 10_000);
async function redisServer() {
  const port = nextPort++;
  const args = ['--port', String(port), '--save', '', '--appendonly', 'no'];
  const child = spawn('redis-server', args, { stdio: 'ignore' });
  await firstPong(port);
  return () => new Promise((done) => child.once('exit', done) && child.kill());
}

function redisMemoryServer(folder) {
  const require = createRequire(`${resolve(folder)}/`);
  const { RedisMemoryServer } = require('redis-memory-server');
  return async () => {
    const server = new RedisMemoryServer({ binary: { systemBinary: '/usr/bin/redis-server' } });
    await firstPong(await server.getPort());
    return () => server.stop();
  };
}

async function nodeAlone() {
  const child = spawn(process.execPath, ['-e', 'console.log(1)'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise((done) => child.once('exit', done));
  await new Promise((done) => child.stdout.once('data', done));
  return () => ended;
}

const kinds = { 'entresol/testing': entresol, 'redis-server': redisServer, 'node -e': nodeAlone };
if (values['redis-memory-server'] !== undefined) {
  kinds['redis-memory-server'] = redisMemoryServer(values['redis-memory-server']);
}
const times = Object.fromEntries(Object.keys(kinds).map((name) => [name, []]));
for (let round = 0; round < Number(values.rounds); round++) {
  for (const [name, start] of Object.entries(kinds)) {
    const startedAtMs = performance.now();
    const stop = await start();
    times[name].push(performance.now() - startedAtMs);
    await stop();
  }
}
for (const [name, list] of Object.entries(times)) {
  list.sort((a, b) => a - b);
  console.log(`${name}: median ${Math.round(list[list.length >> 1])} ms, least ${Math.round(list[0])} ms`);
}

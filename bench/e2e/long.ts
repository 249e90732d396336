/**
 * Long commands: how long another client waits while one runs on a key of many elements. One worker; the other client asks for small keys at a
 * fixed rate in open loop, so that each request that a stop delays counts. Redis and an idle server of the same run stand beside it.
 */
import { connect } from 'node:net';
import { type LoadOptions, runLoad } from '../harness/load.js';
import { type Bench, type BenchContext, measured } from '../harness/measurement.js';
import { pick } from '../harness/pairs.js';
import { type Server, startOurs, startRedis } from '../harness/servers.js';
import { BITS_BYTES_PER_ELEMENT, type LongCommand, largeKeys, longCommands } from './long-commands.js';

const SMALL_KEYS = 1000;
const RATE = 2000;
const ROUNDS_MAX = 3;
const BATCH = 500;
/** The command begins when a part of the load's time is over. */
const BEGIN = 0.2;
const END = '$3\r\nEND\r\n';
const PATIENCE_MS = 300_000;

const load: LoadOptions = {
  mode: 'open',
  protocol: 'resp',
  keys: SMALL_KEYS,
  connections: 4,
  setFraction: 0,
  rate: RATE,
};

function encode(words: readonly string[]): string {
  return `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`;
}

/** Sends requests in a pipeline and waits until all are answered; throws when the first reply is an error. */
function send(server: Server, requests: readonly (readonly string[])[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(server.respPort, '127.0.0.1');
    let first = '';
    let tail = '';
    socket.setEncoding('latin1');
    socket.setTimeout(PATIENCE_MS, () => socket.destroy(new Error(`no answer to ${requests[0].join(' ')}`)));
    socket.once('error', reject);
    socket.once('close', () => reject(new Error(`connection closed before the answer to ${requests[0].join(' ')}`)));
    socket.once('connect', () => socket.write(requests.map(encode).join('') + encode(['ECHO', 'END'])));
    socket.on('data', (chunk: string) => {
      if (first === '') first = chunk.slice(0, 100);
      tail = (tail + chunk).slice(-END.length);
      if (tail !== END) return;
      if (first[0] === '-') reject(new Error(`${server.name}: ${requests[0].join(' ')}: ${first.split('\r\n')[0]}`));
      else resolve();
      socket.destroy();
    });
  });
}

async function fill(context: BenchContext, server: Server): Promise<void> {
  const { longElements } = context.profile;
  context.say(`long: filling ${server.name}`);
  await runLoad(context.cores.load, server, { ...load, mode: 'fill' });
  for (const { add, element } of largeKeys) {
    for (let i = 0; i < longElements; i += BATCH) {
      const count = Math.min(BATCH, longElements - i);
      await send(server, [[...add, ...Array.from({ length: count }, (_, n) => element(i + n)).flat()]]);
    }
  }
  for (let i = 0; i < longElements; i += BATCH) {
    const count = Math.min(BATCH, longElements - i);
    await send(
      server,
      Array.from({ length: count }, (_, n) => ['XADD', 'stream', `${i + n + 1}-1`, 'field', `value:${i + n}`]),
    );
  }
  await send(server, [['SETRANGE', 'bits', String(longElements * BITS_BYTES_PER_ELEMENT), 'x']]);
  await send(server, [['SADD', 'other', 'some', 'members']]);
}

interface Wait {
  readonly maxMs: number;
  readonly p999Ms: number;
  /** Of the command itself. */
  readonly tookMs: number;
}

/** `command` null: nothing but the small requests. */
async function measure(context: BenchContext, server: Server, command: LongCommand | null): Promise<Wait> {
  const { longElements, longSeconds } = context.profile;
  if (command !== null && command.from !== '') await send(server, [['COPY', command.from, 'k', 'REPLACE']]);
  const loading = runLoad(context.cores.load, server, { ...load, seconds: longSeconds });
  // Its failure is told when it is awaited.
  loading.catch(() => undefined);
  await new Promise((resolve) => setTimeout(resolve, longSeconds * BEGIN * 1000));
  const begin = performance.now();
  if (command !== null) await send(server, [command.words(longElements)]);
  const tookMs = performance.now() - begin;
  const { latencyUs } = await loading;
  await send(server, [['DEL', 'k']]);
  return { maxMs: latencyUs.max / 1000, p999Ms: latencyUs.p999 / 1000, tookMs };
}

/** Server by server, who goes first alternates; the others are stopped. Nothing needs warming up: each command runs once in its life. */
async function inTurns(context: BenchContext, servers: readonly Server[], command: LongCommand | null) {
  const results: Record<string, Wait[]> = Object.fromEntries(servers.map(({ name }) => [name, []]));
  for (const server of servers) server.park();
  for (let round = Math.min(ROUNDS_MAX, context.profile.pairs); round > 0; round--) {
    for (const server of round % 2 === 0 ? servers : [...servers].reverse()) {
      server.resume();
      results[server.name].push(await measure(context, server, command));
      server.park();
    }
  }
  for (const server of servers) server.resume();
  return results;
}

async function run(context: BenchContext): Promise<void> {
  const { longElements } = context.profile;
  const size = { dramBytes: 2 ** 27 + longElements * 1000 };
  const servers = [await startOurs(context.cores.server, size), await startRedis(context.cores.server, size)];
  for (const server of servers) await fill(context, server);
  context.say('long: idle');
  const idle = await inTurns(context, servers, null);
  for (const command of longCommands) {
    context.say(`long: ${command.name}`);
    const results = await inTurns(context, servers, command);
    const took = Object.entries(pick(results, (wait) => wait.tookMs)).map(
      ([name, ms]) => `${name} ${Math.max(...ms).toFixed(1)}`,
    );
    const note = `${command.words(longElements).join(' ')}: at most ${took.join(', ')} ms`;
    for (const figure of ['maxMs', 'p999Ms'] as const) {
      const samples = { ...pick(results, (wait) => wait[figure]), idle: idle.entresol.map((wait) => wait[figure]) };
      const name = figure === 'maxMs' ? 'max' : 'p999';
      context.report(measured(`long.${command.name}.${name}`, 'ms', 'less', samples, note));
    }
  }
  for (const server of servers) await server.stop();
}

export const long: Bench = { name: 'long', about: 'waits of another client while long commands run, with Redis', run };

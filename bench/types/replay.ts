/**
 * A load generator for any command: connections send batches of requests made from a template and wait for their replies.
 *
 * In the template `{random}` is a number below `range`, `{next}` one that counts up over all connections, each drawn anew for each place.
 * Prints one JSON line. Costs more per request than entload: what is judged is the server's CPU time.
 */
import { connect, type Socket } from 'node:net';
import { ReplyCounter } from './replies.js';

export interface ReplayOrder {
  readonly port: number;
  /** Requests of one unit, sent together: MULTI ... EXEC has several. */
  readonly unit: readonly (readonly string[])[];
  readonly range: number;
  readonly units: number;
  readonly connections: number;
  /** Units of a batch. */
  readonly pipeline: number;
}

export interface ReplayAnswer {
  readonly units: number;
  readonly seconds: number;
}

/** Random numbers that are the same in every run. */
let state = 0x2545f491;
function random(range: number): number {
  state ^= state << 13;
  state ^= state >>> 17;
  state ^= state << 5;
  return (state >>> 0) % range;
}

let next = 0;

function fill(word: string, range: number): string {
  if (!word.includes('{')) return word;
  return word.replaceAll('{random}', () => String(random(range))).replaceAll('{next}', () => String(next++));
}

function makeBatch(order: ReplayOrder, units: number): string {
  let text = '';
  for (let i = 0; i < units; i++) {
    for (const request of order.unit) {
      text += `*${request.length}\r\n`;
      for (const template of request) {
        const word = fill(template, order.range);
        text += `$${word.length}\r\n${word}\r\n`;
      }
    }
  }
  return text;
}

/** Made before the clock starts, so that the servers are kept busy. */
function makeBatches(order: ReplayOrder): Batch[] {
  const batches: Batch[] = [];
  for (let left = order.units; left > 0; left -= order.pipeline) {
    const units = Math.min(order.pipeline, left);
    batches.push({ bytes: Buffer.from(makeBatch(order, units), 'latin1'), replies: units * order.unit.length });
  }
  return batches;
}

interface Batch {
  readonly bytes: Buffer;
  readonly replies: number;
}

function drive(order: ReplayOrder, batches: Batch[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const counter = new ReplyCounter();
    const socket: Socket = connect(order.port, '127.0.0.1');
    socket.setNoDelay(true);
    let awaited = 0;
    const send = (): void => {
      const batch = batches.pop();
      if (batch === undefined) {
        socket.end();
        resolve();
        return;
      }
      awaited += batch.replies;
      socket.write(batch.bytes);
    };
    socket.once('connect', send);
    socket.once('error', reject);
    socket.on('data', (bytes: Buffer) => {
      counter.feed(bytes);
      if (counter.firstError !== '') socket.destroy(new Error(`${order.unit[0].join(' ')}: ${counter.firstError}`));
      else if (counter.count === awaited) send();
    });
  });
}

async function main(order: ReplayOrder): Promise<void> {
  const batches = makeBatches(order);
  const begin = process.hrtime.bigint();
  await Promise.all(Array.from({ length: order.connections }, () => drive(order, batches)));
  const answer: ReplayAnswer = { units: order.units, seconds: Number(process.hrtime.bigint() - begin) / 1e9 };
  console.log(JSON.stringify(answer));
}

try {
  await main(JSON.parse(process.argv[2]) as ReplayOrder);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}

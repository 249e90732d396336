/**
 * The embedded library in the application's own process: time of a get of a 100-byte value by string key, its copy
 * included, beside lru-cache and lmdb; and the same from a second process attached to a store that the first one filled.
 */
import { fileURLToPath } from 'node:url';
import { Child, pinned, removeTemporaryFolder, runToEnd, temporaryFolder } from '../harness/child.js';
import { VALUE_BYTES } from '../harness/fleet.js';
import { type Bench, type BenchContext, measured } from '../harness/measurement.js';
import { countLabel } from '../harness/profile.js';
import type { ChildAnswer, ChildOrder } from './child.js';
import type { StoreName, ValueKind } from './stores.js';

const STORES: readonly StoreName[] = ['entresol', 'lru-cache', 'lmdb'];
type BaseOrder = Pick<ChildOrder, 'keyCount' | 'valueBytes' | 'gets'>;

const FILL_TIMEOUT_MS = 300_000;

function commandFor(context: BenchContext, order: ChildOrder): string[] {
  const program = fileURLToPath(new URL('./child.js', import.meta.url));
  return pinned(context.cores.server, [process.execPath, program, JSON.stringify(order)]);
}

/** The last line: libraries may print warnings of their own before it. */
function answerIn(output: string): number | undefined {
  const line = output.trim().split('\n').pop() ?? '';
  return line.startsWith('{"nanosecondsPerGet"') ? (JSON.parse(line) as ChildAnswer).nanosecondsPerGet : undefined;
}

async function timeOf(context: BenchContext, order: ChildOrder): Promise<number> {
  const output = await runToEnd(`embedded ${order.store}`, commandFor(context, order));
  if (order.role === 'measure') removeTemporaryFolder(order.path);
  const time = answerIn(output);
  if (time === undefined) throw new Error(`embedded ${order.store} gave no figure:\n${output.slice(-2000)}`);
  return time;
}

/** Own-process time of the holder, then the time of a process attached to what it holds. */
async function timesOfTwo(context: BenchContext, order: ChildOrder): Promise<{ alone: number; attached: number }> {
  const holder = new Child(`embedded ${order.store}`, commandFor(context, { ...order, role: 'hold' }));
  const deadline = Date.now() + FILL_TIMEOUT_MS;
  let alone = answerIn(holder.output);
  while (alone === undefined) {
    if (holder.exited) throw holder.failure('ended early');
    if (Date.now() > deadline) throw holder.failure('filled too slowly');
    await new Promise((resolve) => setTimeout(resolve, 20));
    alone = answerIn(holder.output);
  }
  const attached = await timeOf(context, { ...order, role: 'attach' });
  await holder.stop();
  removeTemporaryFolder(order.path);
  return { alone, attached };
}

type Samples = Record<string, number[]>;

interface Variant {
  /** After the metric's name; the one without is what the bars judge. */
  readonly suffix: string;
  readonly values: ValueKind;
  readonly keys: ChildOrder['keys'];
  readonly about: string;
}

const VARIANTS: readonly Variant[] = [
  { suffix: '', values: 'text', keys: 'built', about: 'values as strings, keys built for each get' },
  { suffix: '.bytes', values: 'bytes', keys: 'built', about: 'values as bytes, keys built for each get' },
  { suffix: '.sameKeys', values: 'text', keys: 'same', about: 'values as strings, the same key objects every time' },
];

async function compareInOneProcess(context: BenchContext, base: BaseOrder): Promise<void> {
  for (const { suffix, values, keys, about } of VARIANTS) {
    const samples: Samples = Object.fromEntries(STORES.map((name) => [name, []]));
    for (let round = 0; round < context.profile.embeddedRounds; round++) {
      for (const store of STORES) {
        const path = temporaryFolder(store);
        samples[store].push(await timeOf(context, { ...base, store, values, keys, role: 'measure', path }));
      }
    }
    const note = `${about}; lru-cache returns a reference, the other two a copy`;
    context.report(measured(`embedded.get.${countLabel(base.keyCount)}${suffix}`, 'ns/get', 'less', samples, note));
  }
}

async function compareAttached(context: BenchContext, base: BaseOrder): Promise<void> {
  const samples: Samples = { entresol: [], 'one-process': [], lmdb: [] };
  for (let round = 0; round < context.profile.embeddedRounds; round++) {
    const shared = { ...base, values: 'text', keys: 'built', role: 'hold' } as const;
    const ours = await timesOfTwo(context, { ...shared, store: 'entresol', path: temporaryFolder('shared') });
    samples.entresol.push(ours.attached);
    samples['one-process'].push(ours.alone);
    const lmdb = await timesOfTwo(context, { ...shared, store: 'lmdb', path: temporaryFolder('lmdb') });
    samples.lmdb.push(lmdb.attached);
  }
  const note = 'a second process; one-process is ours in the process that filled the store';
  context.report(measured(`embedded.attached.${countLabel(base.keyCount)}`, 'ns/get', 'less', samples, note));
}

async function run(context: BenchContext): Promise<void> {
  for (const keyCount of context.profile.embeddedKeyCounts) {
    const base: BaseOrder = { keyCount, valueBytes: VALUE_BYTES, gets: context.profile.embeddedGets };
    context.say(`embedded: ${countLabel(keyCount)} keys`);
    await compareInOneProcess(context, base);
    await compareAttached(context, base);
  }
}

export const embedded: Bench = { name: 'embedded', about: 'embedded get against lru-cache and lmdb', run };

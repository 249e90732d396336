/**
 * The parts of the built server that the workers comparison puts together anew: the loop, the drivers and the store, without
 * sockets. They come from dist/ at run time; the types here say only what is used.
 */

import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { MessagePort } from 'node:worker_threads';
import { rootFolder } from '../harness/paths.js';
import type { MemoryPump, RecordWords } from './memory-pump.js';

export type Settings = Record<string, unknown>;

interface Bytes {
  readonly u8: Uint8Array;
}

interface Addon {
  allocateArena(bytes: number, options: { populate?: boolean; hugePages?: boolean }): number;
  wrapArena(arena: number): ArrayBuffer;
  pinThread(cpus: readonly number[]): void;
}

interface Output {
  readonly sendCount: number;
}

interface LoopParts {
  readonly pump: MemoryPump;
  readonly output: Output;
  readonly store: unknown;
  readonly clock: unknown;
  readonly counters: unknown;
  readonly totals: unknown;
  readonly control: unknown;
  readonly drivers: readonly unknown[];
  readonly makeScriptDriver: () => unknown;
}

export interface ControlStart {
  readonly workerIndex: number;
  readonly workerCount: number;
  readonly settings: Settings;
  readonly startedAtMs: number;
  readonly users: { readonly removed: readonly string[]; readonly set: readonly (readonly [string, string])[] };
  readonly port: MessagePort;
}

/** Plain data that crosses to the worker threads. */
export type StoreHandle = Readonly<Record<string, unknown>>;

export interface ServerModules {
  readonly config: { defaultSettings(): Settings };
  readonly bytes: { readonly Bytes: new (buffer: ArrayBuffer, arena: number) => Bytes };
  readonly counters: {
    createCounterBlock(workerCount: number): SharedArrayBuffer;
    createCounterBaseline(): SharedArrayBuffer;
    readonly CounterRow: new (block: SharedArrayBuffer, worker: number) => { readonly values: Float64Array };
    readonly CounterTotals: new (block: SharedArrayBuffer, baseline: SharedArrayBuffer) => unknown;
    readonly Counter: Readonly<Record<'commands' | 'hits' | 'misses' | 'errorReplies', number>>;
  };
  readonly native: RecordWords & { readonly addon: Addon };
  readonly output: {
    readonly Output: new (bytes: Bytes, sends: Int32Array, flushSends: (sendCount: number) => void) => Output;
  };
  readonly open: {
    openStore(options: {
      readonly pool: string;
      readonly dramBytes: number;
      readonly capacityBytes: number;
    }): StoreHandle;
  };
  readonly attach: {
    attach(handle: StoreHandle): unknown;
    detach(keyspace: unknown): void;
  };
  readonly clock: { readonly Clock: new (addon: Addon) => unknown };
  readonly drivers: {
    createDrivers(parts: Readonly<Record<string, unknown>>): Pick<LoopParts, 'drivers' | 'makeScriptDriver'>;
  };
  readonly control: { readonly WorkerControl: new (start: ControlStart, counters: unknown) => unknown };
  readonly loop: { readonly Loop: new (parts: LoopParts) => { turn(timeoutMs: number): void } };
}

const FILES: Readonly<Record<keyof ServerModules, string>> = {
  config: 'config/index.js',
  bytes: 'layout/bytes.js',
  counters: 'layout/counters.js',
  native: 'native/addon.js',
  output: 'protocol/output.js',
  open: 'store/open.js',
  attach: 'store/attach.js',
  clock: 'server/clock.js',
  drivers: 'server/drivers.js',
  control: 'server/worker-control.js',
  loop: 'server/loop.js',
};

export async function loadServerModules(): Promise<ServerModules> {
  const entries = await Promise.all(
    Object.entries(FILES).map(async ([name, file]) => {
      const location = pathToFileURL(join(rootFolder, 'dist', file)).href;
      return [name, (await import(location)) as unknown] as const;
    }),
  );
  return Object.fromEntries(entries) as unknown as ServerModules;
}

/**
 * One run of `entresol hotspots`: a store of its own in a temporary pool, a workload, and what it wrote.
 *
 * Loaded after the traced flavour has been chosen, since it loads the store. Owns: the pool, which is gone at the end.
 */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PRESETS, type PresetName } from '../devices/model/presets.js';
import { attach, detach } from '../store/attach.js';
import type { Keyspace } from '../store/keyspace.js';
import { openStore } from '../store/open.js';
import { removeStore } from '../store/remove.js';
import { RequestFeed } from './feed.js';
import type { WriteListener } from './recording.js';
import { StructureMap } from './structures.js';
import { type Hotspots, Tally } from './tally.js';
import { recordedRequests, WORKLOADS, type WorkloadSize } from './workloads.js';

export interface HotspotOptions extends WorkloadSize {
  /** A named workload, or a file of requests. */
  readonly workload: string | { readonly file: string };
  readonly dramBytes: number;
  /** 0 = DRAM alone. */
  readonly capacityBytes: number;
  readonly workers: number;
  readonly device: PresetName;
  readonly hotLines: number;
}

export interface HotspotRun {
  readonly hotspots: Hotspots;
  /** Requests that were answered with an error. */
  readonly errors: number;
}

export async function runHotspots(
  options: HotspotOptions,
  listen: (listener: WriteListener) => void,
): Promise<HotspotRun> {
  const { workload, dramBytes, capacityBytes, workers, device } = options;
  const pool = mkdtempSync(join(tmpdir(), 'entresol-hotspots-'));
  const keyspaces: Keyspace[] = [];
  try {
    const tier = capacityBytes === 0 ? 'none' : 'file';
    const handle = openStore({ pool, dramBytes, capacityBytes, tier, policy: 'allkeys-lru' });
    for (let i = 0; i < workers; i++) keyspaces.push(attach(handle));
    const feeds = keyspaces.map((keyspace) => new RequestFeed(keyspace));
    const [{ memory }] = keyspaces;
    const tally = new Tally(memory, new StructureMap(memory), PRESETS[device]);
    listen((arena, offset, bytes) => tally.wrote(arena, offset, bytes));
    let turn = 0;
    const nextFeed = (): RequestFeed => feeds[turn++ % feeds.length];
    const count = (request: Uint8Array): void => {
      tally.begin();
      nextFeed().run(request);
      tally.end();
    };
    if (typeof workload === 'string') {
      for (const request of WORKLOADS[workload].prepare(options)) nextFeed().run(request);
      for (const request of WORKLOADS[workload].requests(options)) count(request);
    } else {
      for await (const request of recordedRequests(workload.file)) count(request);
    }
    const hotspots = tally.result(options.hotLines);
    return { hotspots, errors: feeds.reduce((sum, feed) => sum + feed.errors, 0) };
  } finally {
    for (const keyspace of keyspaces) detach(keyspace);
    removeStore(pool);
  }
}

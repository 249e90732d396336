/** The pool that a server's settings ask for. */
import type { Settings } from '../config/index.js';
import { openStore, type StoreHandle } from '../store/open.js';

export function openPool(settings: Settings): StoreHandle {
  return openStore({
    pool: settings.pool,
    dramBytes: settings.dram,
    capacityBytes: settings.capacity,
    policy: settings.maxmemoryPolicy,
    shards: settings.shards,
    tier: settings.tier,
    numaNode: settings.numaNode,
    hugePages: settings.hugepages !== 'no',
    ...(settings.emulate !== 'no' && { emulate: settings.emulate }),
    durability: settings.durability,
    growth: settings.growthRoom,
    mayResize: true,
  });
}

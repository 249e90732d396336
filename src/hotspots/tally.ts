/**
 * What a workload writes, added up by structure, by DIMM and by line.
 *
 * A store counts when it is made; a line counts once for each request that dirties it, as if caches were written back when the request has
 * been answered. These lines go to two models of the device: one that the capacity tier lies on, as in a real pool, and one that
 * the whole pool lies on, which is what Tair's first layout was. Owns: the counts. Invariant: between `begin` and `end` lies one request.
 */
import { DeviceModel, type ModuleFacts } from '../devices/model/device-model.js';
import type { DevicePreset } from '../devices/model/presets.js';
import { Page } from '../layout/location.js';
import type { Memory } from '../memory/memory.js';
import { addressOf, STRUCTURES, type Structure, type StructureMap } from './structures.js';

const CACHE_LINE_BYTES = 64;
/** The medium's line: presets.ts. */
const LINE_BYTES = 256;
const PER_LINE = LINE_BYTES / CACHE_LINE_BYTES;

export interface StructureCounts {
  readonly structure: Structure;
  readonly stores: number;
  readonly bytes: number;
  /** Lines of 256 bytes that requests left dirty. */
  readonly lines: number;
  /** How many different ones. */
  readonly distinctLines: number;
}

export interface HotLine {
  readonly structure: Structure;
  /** Address in the pool, of the line's first byte. */
  readonly address: number;
  readonly dimm: number;
  /** Requests that left it dirty. */
  readonly requests: number;
}

export interface DeviceCounts {
  readonly dimms: readonly ModuleFacts[];
  /** What the busiest DIMM's medium writes, over the mean; what it is sent likewise. */
  readonly mediaImbalance: number;
  readonly imbalance: number;
  readonly writeAmplification: number;
}

export interface Hotspots {
  readonly requests: number;
  readonly structures: readonly StructureCounts[];
  readonly hotLines: readonly HotLine[];
  readonly wholePool: DeviceCounts;
  readonly capacityTier: DeviceCounts;
}

export class Tally {
  requests = 0;
  readonly #map: StructureMap;
  readonly #arenaIndex = new Map<number, number>();
  readonly #capacityFrom: number;
  readonly #wholePool: DeviceModel;
  readonly #capacityTier: DeviceModel;
  readonly #stores = new Float64Array(STRUCTURES.length);
  readonly #bytes = new Float64Array(STRUCTURES.length);
  readonly #lines = new Float64Array(STRUCTURES.length);
  /** Cache lines that the running request has dirtied, in the order of their first store, and their structures. */
  readonly #dirty = new Map<number, number>();
  /** line * STRUCTURES.length + structure. */
  readonly #distinct = new Set<number>();
  /** Requests by line of the pool, and the structure that dirtied it first. */
  readonly #heat = new Map<number, { requests: number; structure: number }>();
  #isCounting = false;

  constructor(memory: Memory, map: StructureMap, preset: DevicePreset) {
    this.#map = map;
    for (const [index, { arena }] of memory.arenas.entries()) this.#arenaIndex.set(arena, index);
    this.#capacityFrom = memory.capacityBase * Page.BYTES;
    const end = (memory.capacityBase + memory.capacityPages) * Page.BYTES;
    this.#wholePool = new DeviceModel(preset, end);
    this.#capacityTier = new DeviceModel(preset, end);
  }

  begin(): void {
    this.#isCounting = true;
  }

  wrote(arena: number, offset: number, bytes: number): void {
    const index = this.#arenaIndex.get(arena);
    // Replies and Lua's memory are written by the same copies.
    if (!this.#isCounting || index === undefined) return;
    const address = addressOf(index, offset);
    const structure = this.#map.at(address);
    this.#stores[structure]++;
    this.#bytes[structure] += bytes;
    for (let line = Math.floor(address / CACHE_LINE_BYTES); line * CACHE_LINE_BYTES < address + bytes; line++) {
      if (!this.#dirty.has(line)) this.#dirty.set(line, structure);
    }
  }

  end(): void {
    this.#isCounting = false;
    this.requests++;
    const lines = new Set<number>();
    const named = new Set<number>();
    for (const [cacheLine, structure] of this.#dirty) {
      const address = cacheLine * CACHE_LINE_BYTES;
      this.#wholePool.write(address, CACHE_LINE_BYTES, 0);
      if (address >= this.#capacityFrom) this.#capacityTier.write(address, CACHE_LINE_BYTES, 0);
      const line = Math.floor(cacheLine / PER_LINE);
      lines.add(line);
      named.add(line * STRUCTURES.length + structure);
      if (!this.#heat.has(line)) this.#heat.set(line, { requests: 0, structure });
    }
    for (const line of lines) {
      const heat = this.#heat.get(line);
      if (heat !== undefined) heat.requests++;
    }
    for (const key of named) {
      this.#lines[key % STRUCTURES.length]++;
      this.#distinct.add(key);
    }
    this.#dirty.clear();
  }

  /** The hottest `lineCount` lines among what is reported. */
  result(lineCount: number): Hotspots {
    const distinct = new Float64Array(STRUCTURES.length);
    for (const key of this.#distinct) distinct[key % STRUCTURES.length]++;
    const structures = STRUCTURES.map((structure, i) => ({
      structure,
      stores: this.#stores[i],
      bytes: this.#bytes[i],
      lines: this.#lines[i],
      distinctLines: distinct[i],
    }))
      .filter(({ stores }) => stores > 0)
      .sort((a, b) => b.lines - a.lines);
    const hotLines = [...this.#heat]
      .sort(([, a], [, b]) => b.requests - a.requests)
      .slice(0, lineCount)
      .map(([line, { requests, structure }]) => {
        const address = line * LINE_BYTES;
        return { structure: STRUCTURES[structure], address, dimm: this.#wholePool.moduleOf(address), requests };
      });
    return {
      requests: this.requests,
      structures,
      hotLines,
      wholePool: deviceCounts(this.#wholePool),
      capacityTier: deviceCounts(this.#capacityTier),
    };
  }
}

function deviceCounts(model: DeviceModel): DeviceCounts {
  model.drain(0);
  const dimms = model.modules();
  const sent = dimms.map(({ writtenBytes }) => writtenBytes);
  const total = sent.reduce((sum, bytes) => sum + bytes, 0);
  return {
    dimms,
    mediaImbalance: model.writeImbalance,
    imbalance: total === 0 ? 1 : (Math.max(...sent) * sent.length) / total,
    writeAmplification: model.writeAmplification,
  };
}

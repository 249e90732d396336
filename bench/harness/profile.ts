/**
 * How much to run. `full` gives the figures the bars are judged on; `quick` gives a first idea in minutes (its key counts
 * leave the 10 M bars unmeasured); `tiny` only proves that the harness works, and runs inside the tests.
 */
export interface Profile {
  readonly name: 'full' | 'quick' | 'tiny';
  /** Pairs of runs for CPU, latency and large-value figures. */
  readonly pairs: number;
  readonly throughputPairs: number;
  /** Length of one closed-loop run. */
  readonly runSeconds: number;
  /** Length of one open-loop run. */
  readonly latencySeconds: number;
  readonly keyCounts: readonly number[];
  /** Requests of one redis-benchmark run at pipeline 16; twice as many at 64. */
  readonly redisBenchmarkRequests: number;
  readonly largeDatasetBytes: number;
  readonly memoryStoreBytes: number;
  readonly stallRequests: number;
  readonly embeddedKeyCounts: readonly number[];
  readonly embeddedGets: number;
  readonly embeddedRounds: number;
  /** Elements of a large key; simple requests of one run of a data type's test. */
  readonly typeElements: number;
  readonly typeUnits: number;
  /** Elements of each key of the bench of long commands, and how long its load goes on during one. */
  readonly longElements: number;
  readonly longSeconds: number;
  readonly workerKeys: number;
  /** Batches of 64 requests that each worker goes round. */
  readonly workerBatches: number;
  /** Bytes of each cache, both tiers together, requests of a trace and the keys that its distribution has. */
  readonly hitRatioBytes: number;
  readonly hitRatioRequests: number;
  readonly hitRatioKeys: number;
}

const MiB = 2 ** 20;

export const profiles: Readonly<Record<Profile['name'], Profile>> = {
  full: {
    name: 'full',
    pairs: 9,
    throughputPairs: 5,
    runSeconds: 1.5,
    latencySeconds: 5,
    keyCounts: [100_000, 10_000_000],
    redisBenchmarkRequests: 1_000_000,
    largeDatasetBytes: 256 * MiB,
    memoryStoreBytes: 512 * MiB,
    stallRequests: 10_000_000,
    embeddedKeyCounts: [10_000, 1_000_000],
    embeddedGets: 3_000_000,
    embeddedRounds: 5,
    typeElements: 1_000_000,
    typeUnits: 300_000,
    longElements: 1_000_000,
    longSeconds: 4,
    workerKeys: 1_000_000,
    workerBatches: 16_384,
    hitRatioBytes: 1024 * MiB,
    hitRatioRequests: 4_000_000,
    hitRatioKeys: 700_000,
  },
  quick: {
    name: 'quick',
    pairs: 3,
    throughputPairs: 3,
    runSeconds: 0.6,
    latencySeconds: 2,
    keyCounts: [100_000],
    redisBenchmarkRequests: 400_000,
    largeDatasetBytes: 128 * MiB,
    memoryStoreBytes: 128 * MiB,
    stallRequests: 1_000_000,
    embeddedKeyCounts: [10_000, 1_000_000],
    embeddedGets: 1_000_000,
    embeddedRounds: 3,
    typeElements: 100_000,
    typeUnits: 60_000,
    longElements: 200_000,
    longSeconds: 1.5,
    workerKeys: 1_000_000,
    workerBatches: 8192,
    hitRatioBytes: 192 * MiB,
    hitRatioRequests: 500_000,
    hitRatioKeys: 100_000,
  },
  tiny: {
    name: 'tiny',
    pairs: 1,
    throughputPairs: 1,
    runSeconds: 0.05,
    latencySeconds: 0.1,
    keyCounts: [1000],
    redisBenchmarkRequests: 3200,
    largeDatasetBytes: 8 * MiB,
    memoryStoreBytes: 32 * MiB,
    stallRequests: 5000,
    embeddedKeyCounts: [1000],
    embeddedGets: 5000,
    embeddedRounds: 1,
    typeElements: 1000,
    typeUnits: 512,
    longElements: 2000,
    longSeconds: 0.05,
    workerKeys: 1000,
    workerBatches: 64,
    hitRatioBytes: 40 * MiB,
    hitRatioRequests: 20_000,
    hitRatioKeys: 10_000,
  },
};

/** 100000 -> '100k', 10000000 -> '10M': how metrics name key counts. */
export function countLabel(count: number): string {
  if (count % 1_000_000 === 0) return `${count / 1_000_000}M`;
  if (count % 1000 === 0) return `${count / 1000}k`;
  return String(count);
}

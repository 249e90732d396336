/**
 * Published figures of memory devices, as parameters of the model. Every number has its source; nothing here is measured by us.
 *
 * [I] J. Izraelevitz et al., Basic Performance Measurements of the Intel Optane DC Persistent Memory Module, arXiv:1903.05714, 2019.
 * [Y] J. Yang et al., An Empirical Guide to the Behavior and Use of Scalable Persistent Memory, FAST 2020, pages 169-182; the numbers
 *     behind its figures are in github.com/NVSL/OptaneStudy, folder graphs (named below by figure).
 *
 * Both measured modules of 256 GB of the first generation under Xeon Platinum 8260 (Cascade Lake), DRAM being DDR4-2666.
 */
export interface DevicePreset {
  readonly name: string;
  /** Modules that an interleaved region lies on, and the bytes before the next module's turn. */
  readonly moduleCount: number;
  readonly interleaveBytes: number;
  /** What the medium reads and writes at once. */
  readonly lineBytes: number;
  /** Lines of a module's write-combining buffer. 0 = none: every store of a cache line is a write of the medium. */
  readonly bufferLines: number;
  /** A load of 64 bytes, one after the other. */
  readonly randomReadNs: number;
  readonly sequentialReadNs: number;
  /** A store of 64 bytes, clwb and fence: until it is accepted, and by that durable. */
  readonly writeNs: number;
  /** Of one module, bytes a nanosecond (GB/s). */
  readonly readBandwidth: number;
  readonly writeBandwidth: number;
  /** What one thread gets out of all modules with one range after the other. */
  readonly threadReadBandwidth: number;
  readonly threadWriteBandwidth: number;
}

const optaneModule = {
  // [I], [Y]: the medium is accessed in lines of 256 bytes.
  lineBytes: 256,
  // [Y] figure 9: written again within 16 KiB, a line is written to the medium once.
  bufferLines: 64,
  // [I] and [Y] figure 2: loads 305.0 random, 169.4 sequential; store and clwb 62.3.
  randomReadNs: 305,
  sequentialReadNs: 169.4,
  writeNs: 62.3,
  // [Y] figures 4 and 5, one module, 256 bytes and more: 6.5 read, 2.2 written with ntstore.
  readBandwidth: 6.5,
  writeBandwidth: 2.2,
} as const;

/** [Y] figure 4, one thread, interleaved (ntstore and clwb are swapped in the head of that file, as figure 5 shows). */
const optaneThread = { threadReadBandwidth: 2.88, threadWriteBandwidth: 4.13 } as const;

export const PRESETS = {
  /** Six modules, one in each channel of a socket: the population that vendors advise. [Y]: chunks of 4 KiB. */
  optane: { name: 'optane', moduleCount: 6, interleaveBytes: 4096, ...optaneModule, ...optaneThread },
  /** One module alone, which one thread's writes fill. */
  'optane-1': {
    name: 'optane-1',
    moduleCount: 1,
    interleaveBytes: 4096,
    ...optaneModule,
    threadReadBandwidth: 2.92,
    threadWriteBandwidth: 2.22,
  },
  /** Tair's machine: four modules, which have room for what one thread can do with six. */
  'optane-4': { name: 'optane-4', moduleCount: 4, interleaveBytes: 4096, ...optaneModule, ...optaneThread },
  /** The six channels of a socket as one: [Y] figure 2 for latencies, figures 4 and 5 for 105 read and 77 written. */
  dram: {
    name: 'dram',
    moduleCount: 1,
    interleaveBytes: 4096,
    lineBytes: 64,
    bufferLines: 0,
    randomReadNs: 101.5,
    sequentialReadNs: 81.4,
    writeNs: 57.3,
    readBandwidth: 105,
    writeBandwidth: 77,
    threadReadBandwidth: 7.38,
    threadWriteBandwidth: 4.31,
  },
} as const satisfies Readonly<Record<string, DevicePreset>>;

export type PresetName = keyof typeof PRESETS;
export const PRESET_NAMES = Object.keys(PRESETS) as PresetName[];

/**
 * The two flavours of everything that writes to a pool's mapped memory. Plain: ordinary typed arrays and the addon's own copy, which is
 * what servers run. Traced: views, atomics and copies that tell a recorder of each write before it is made (hotspots/recording).
 *
 * One flavour for a thread, chosen at its start; plain ones cost nothing, since they are what would stand there without this file.
 * Invariant: nothing that writes to a pool exists when a flavour is chosen, so none of its writes is made in another one.
 */

/** The views of one arena. */
export interface Views {
  readonly u8: Uint8Array;
  readonly view: DataView;
  /** Whole words; a tail of fewer than 4 bytes is only reachable through the others. */
  readonly i32: Int32Array;
}

export interface Flavour {
  views(buffer: ArrayBufferLike, arena: number): Views;
  /** Counters, which are doubles. */
  doubles(buffer: ArrayBufferLike, arena: number, byteOffset: number, count: number): Float64Array;
  /** The addon's copy; `control` is the block that holds its records when it is called (native/addon). */
  copier(copy: () => void, control: Int32Array): () => void;
}

export const PLAIN: Flavour = {
  views: (buffer) => ({
    u8: new Uint8Array(buffer),
    view: new DataView(buffer),
    i32: new Int32Array(buffer, 0, buffer.byteLength >>> 2),
  }),
  doubles: (buffer, _arena, byteOffset, count) => new Float64Array(buffer, byteOffset, count),
  copier: (copy) => copy,
};

let flavour = PLAIN;
let isInUse = false;

/** The thread's flavour; from here on it stays. */
export function writers(): Flavour {
  isInUse = true;
  return flavour;
}

export function chooseFlavour(chosen: Flavour): void {
  if (isInUse) throw new Error('the flavour of writers is chosen before the first of them is loaded');
  flavour = chosen;
}

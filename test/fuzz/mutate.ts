/** Mutations for fuzzing, repeatable from a seed. */

/** xorshift32: the same seed gives the same run. */
export function random(seed: number): (limit: number) => number {
  let state = seed | 1;
  return (limit) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % limit;
  };
}

/** Longer inputs find nothing that shorter ones do not, and cost time. */
const MAX_BYTES = 40_000;

/** Changes, inserts, removes, cuts, and splices in `other`, a few times over. */
export function mutate(
  seed: Buffer,
  other: Buffer,
  interesting: readonly string[],
  next: (limit: number) => number,
): Buffer {
  let bytes = Buffer.from(seed);
  for (let i = next(6); i >= 0; i--) {
    const at = next(bytes.length + 1);
    const head = bytes.subarray(0, at);
    const tail = bytes.subarray(at);
    switch (next(5)) {
      case 0:
        if (at < bytes.length) bytes[at] = next(256);
        break;
      case 1:
        bytes = Buffer.concat([head, tail.subarray(next(8))]);
        break;
      case 2:
        bytes = Buffer.concat([head, Buffer.from(interesting[next(interesting.length)], 'latin1'), tail]);
        break;
      case 3:
        bytes = Buffer.concat([head, other.subarray(next(other.length)), tail]);
        break;
      default:
        bytes = Buffer.from(head);
    }
    if (bytes.length > MAX_BYTES) bytes = Buffer.from(bytes.subarray(0, MAX_BYTES));
  }
  return bytes;
}

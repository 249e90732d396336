/** Self-describing values: a stamp, and a body that follows from name, stamp and length. Shared by writers and tests. */
export const OWN_KEYS = 200;
export const SHARED_KEYS = 400;
/** Own keys from here on are fields of the writer's own hash. */
export const FIRST_FIELD = 120;

/** `length` bytes, 20 at least: stamp (4), length (4), then a pattern of name and stamp. */
export function makeValue(name, stamp, length) {
  const value = Buffer.alloc(length, `${name}/${stamp};`);
  value.writeInt32LE(stamp, 0);
  value.writeInt32LE(length, 4);
  return value;
}

/** What is wrong with a value that was read under `name`; '' = nothing. */
export function verify(name, u8, offset, length) {
  const actual = Buffer.from(u8.buffer, u8.byteOffset + offset, length);
  if (length < 20) return `${name} has ${length} bytes`;
  const stamp = actual.readInt32LE(0);
  const noted = actual.readInt32LE(4);
  if (noted !== length) return `${name} says ${noted} bytes and has ${length}`;
  if (Buffer.compare(actual, makeValue(name, stamp, length)) !== 0) {
    return `${name} is torn or another's: ${actual.subarray(8, 60).toString('latin1')}`;
  }
  return '';
}

/** Sending the found item's value: copied when small, straight out of the store when large. */
import { INLINE_VALUE_BYTES } from '../../store/keyspace.js';
import type { MemcachedContext } from './context.js';

/** Writes the value under the cursor. Called under the key's lock. */
export function writeValue(context: MemcachedContext): void {
  const { keyspace } = context;
  const { output } = context.reply;
  const length = keyspace.valueLength;
  if (length > INLINE_VALUE_BYTES) {
    const token = keyspace.pin();
    if (token > 0) {
      if (!output.region(keyspace.value, keyspace.valueOffset, length, token)) keyspace.unpin(token);
      return;
    }
  }
  output.range(keyspace.value, keyspace.valueOffset, length);
}

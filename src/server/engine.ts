/**
 * Tells the JavaScript engine what the server asks of it. For processes that are ours alone: a library has no business with its host's engine.
 */
import { setFlagsFromString } from 'node:v8';
import { ENGINE_FLAGS } from './engine-flags.js';

/** Before anything hot has run, and before code that was compiled earlier is read back: V8 keeps that apart by flags. */
export function tuneEngine(): void {
  for (const flag of ENGINE_FLAGS) setFlagsFromString(flag);
}

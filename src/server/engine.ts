/**
 * What the server asks of the JavaScript engine. For processes that are ours alone: a library has no business with its host's engine.
 */
import { setFlagsFromString } from 'node:v8';

/**
 * How much a hot function may take in of what it calls, in bytes of bytecode. V8's own bound, 920, ends half-way between a batch of requests and the
 * memory: the layers behind it stay calls, each of which loads its objects' fields again. Beyond this the code grows and nothing gets faster.
 */
const INLINED_BYTES = 3000;

/** Before anything hot has run, and before code that was compiled earlier is read back: V8 keeps that apart by flags. */
export function tuneEngine(): void {
  setFlagsFromString(`--max-inlined-bytecode-size-cumulative=${INLINED_BYTES}`);
}

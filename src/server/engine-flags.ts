/** What the server asks of the JavaScript engine, in its own words: for its command line, or for setFlagsFromString. */

/**
 * How much a hot function may take in of what it calls, in bytes of bytecode. V8's own bound, 920, ends half-way between a batch of requests and the
 * memory: the layers behind it stay calls, each of which loads its objects' fields again. Beyond this the code grows and nothing gets faster.
 */
const INLINED_BYTES = 3000;

export const ENGINE_FLAGS: readonly string[] = [`--max-inlined-bytecode-size-cumulative=${INLINED_BYTES}`];

/**
 * Captures what a handler replies, as bytes, for a client of another worker (or of this one, later).
 *
 * Owns a reply buffer of its own in ordinary memory, so that nothing is sent or pinned from it. Not nested.
 */
import { Bytes } from '../../layout/bytes.js';
import { Send } from '../../native/addon.js';
import { Output } from '../../protocol/output.js';
import type { Reply } from '../../protocol/resp/reply.js';

const BUFFER_BYTES = 64 * 1024;
const RECORDS = 4;

export class Capture {
  readonly #reply: Reply;
  readonly #output: Output;
  #parts: Uint8Array[] = [];
  #previous: Output;
  #previousProtocol = 2;

  constructor(reply: Reply) {
    const bytes = Bytes.allocate(BUFFER_BYTES);
    this.#reply = reply;
    this.#previous = reply.output;
    this.#output = new Output(bytes, new Int32Array(RECORDS * Send.WORDS), () => {
      this.#parts.push(bytes.u8.slice(0, this.#output.position));
    });
  }

  /** From here on the writer fills the buffer, in that protocol version. */
  start(protocol: number): void {
    this.#previous = this.#reply.output;
    this.#previousProtocol = this.#reply.protocol;
    this.#reply.output = this.#output;
    this.#reply.protocol = protocol;
    this.#parts = [];
    this.#output.restart();
    this.#output.begin(0);
  }

  /** The writer is back where it was; returns what was written since. */
  take(): Uint8Array {
    const output = this.#output;
    output.end();
    this.#reply.output = this.#previous;
    this.#reply.protocol = this.#previousProtocol;
    const last = output.u8.slice(0, output.position);
    return this.#parts.length === 0 ? last : Buffer.concat([...this.#parts, last]);
  }
}

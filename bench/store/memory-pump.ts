/**
 * A pump without sockets: what the worker's loop polls is memory filled beforehand, what it sends is counted and dropped.
 *
 * It has the shape of the native pump as far as the loop uses it. Each poll hands the next batch to each of CONNECTION_COUNT
 * connections, as a worker under load finds it. Invariant: a batch is consumed whole (else `failures` counts it).
 */

/** Connections that have a batch ready in each turn. */
export const CONNECTION_COUNT = 8;

/** Word numbers of the pump's records, from the build of src/native/addon.ts. */
export interface RecordWords {
  readonly Event: Readonly<Record<'conn' | 'kind' | 'offset' | 'length' | 'consumed' | 'aux' | 'WORDS', number>> & {
    readonly arena?: number;
  };
  readonly EventKind: Readonly<Record<'ACCEPT' | 'DATA', number>>;
  readonly Send: Readonly<Record<'WORDS' | 'length', number>>;
}

const EVENTS_MAX = 64;
const SENDS_MAX = 4096;

export class MemoryPump {
  readonly events = new ArrayBuffer(EVENTS_MAX * 16 * 4);
  readonly sends = new ArrayBuffer(SENDS_MAX * 16 * 4);
  readonly wakeFd = -1;
  /** Batches handed out. */
  batchesServed = 0;
  failures = 0;
  bytesSent = 0;

  readonly #words: Int32Array;
  readonly #sent: Int32Array;
  readonly #names: RecordWords;
  readonly #offsets: Int32Array;
  readonly #batchCount: number;
  #next = 0;
  #accepted = false;
  #pending = 0;

  constructor(
    readonly input: ArrayBuffer,
    readonly inputArena: number,
    readonly output: ArrayBuffer,
    readonly outputArena: number,
    /** Where batch i starts; one more than there are batches. */
    offsets: Int32Array,
    names: RecordWords,
  ) {
    this.#words = new Int32Array(this.events);
    this.#sent = new Int32Array(this.sends);
    this.#names = names;
    this.#offsets = offsets;
    this.#batchCount = offsets.length - 1;
  }

  /** Starts the input again from a batch. */
  rewind(batch: number): void {
    this.#next = batch % this.#batchCount;
  }

  poll(sendCount: number): number {
    this.flush(sendCount);
    const { Event, EventKind } = this.#names;
    const words = this.#words;
    for (let i = 0; i < this.#pending; i++) {
      if (words[i * Event.WORDS + Event.consumed] !== words[i * Event.WORDS + Event.length]) this.failures++;
    }
    this.#pending = 0;
    for (let i = 0; i < CONNECTION_COUNT; i++) {
      const word = i * Event.WORDS;
      words[word + Event.conn] = i;
      words[word + Event.consumed] = 0;
      words[word + Event.aux] = 0;
      if (Event.arena !== undefined) words[word + Event.arena] = -1;
      if (!this.#accepted) {
        words[word + Event.kind] = EventKind.ACCEPT;
        continue;
      }
      words[word + Event.kind] = EventKind.DATA;
      words[word + Event.offset] = this.#offsets[this.#next];
      words[word + Event.length] = this.#offsets[this.#next + 1] - this.#offsets[this.#next];
      this.#next = this.#next + 1 === this.#batchCount ? 0 : this.#next + 1;
    }
    if (this.#accepted) {
      this.#pending = CONNECTION_COUNT;
      this.batchesServed += CONNECTION_COUNT;
    }
    this.#accepted = true;
    return CONNECTION_COUNT;
  }

  flush(sendCount: number): void {
    const { Send } = this.#names;
    for (let i = 0; i < sendCount; i++) this.bytesSent += this.#sent[i * Send.WORDS + Send.length];
  }

  peerAddress(): string {
    return '127.0.0.1:1';
  }

  localAddress(): string {
    return '127.0.0.1:2';
  }

  heldBytes(): number {
    return 0;
  }

  fd(): number {
    return -1;
  }

  outputQueued(): number {
    return 0;
  }

  pauseReading(): void {}
  setLimits(): void {}
  setGlobalLimits(): void {}

  /** A driver that closes a connection or takes bytes past the input did not expect these requests. */
  close(): void {
    this.failures++;
  }

  receiveInto(): void {
    this.failures++;
  }
}

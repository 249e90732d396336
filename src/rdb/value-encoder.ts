/**
 * The values of collections as the effect log keeps them: the bytes that RDB has for them, unpacked strings, in the newest version, which
 * has a place for expiries of fields.
 */
import type { Bytes } from '../layout/bytes.js';
import type { ValueEncoder } from '../store/effects/effects.js';
import type { Keyspace } from '../store/keyspace.js';
import { Version } from './format.js';
import { ValueWriter } from './value-writer.js';
import { RdbWriter } from './writer.js';

export class RdbValueEncoder implements ValueEncoder {
  readonly #writer = new RdbWriter();
  readonly #values = new ValueWriter(this.#writer);

  constructor() {
    this.#writer.compresses = false;
  }

  get bytes(): Bytes {
    return this.#writer.bytes;
  }

  get length(): number {
    return this.#writer.length;
  }

  /** See ValueWriter. */
  set onPause(pause: (() => void) | null) {
    this.#values.onPause = pause;
  }

  encode(keyspace: Keyspace): number {
    this.#writer.clear();
    const type = this.#values.plan(keyspace, Version.REDIS_7_4);
    if (type >= 0) this.#values.write();
    return type;
  }
}

/** Lets a participant of a durable pool write down what becomes of collections. */
export function encodeEffects({ feed }: Keyspace): void {
  if (feed.effects !== null) feed.effects.encoder = new RdbValueEncoder();
}

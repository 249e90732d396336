/** Recorded puts: what each stored, to which addresses, and between which locks. Plain data. */

export const enum PutEvent {
  WRITE = 0,
  LOCK = 1,
  UNLOCK = 2,
}

/** One put: parallel arrays, an element for each event. */
export interface Put {
  readonly kinds: readonly PutEvent[];
  readonly addresses: readonly number[];
  readonly bytes: readonly number[];
  /** Indices of STRUCTURES. */
  readonly structures: readonly number[];
}

export interface PutTrace {
  /** By participant. */
  readonly puts: readonly (readonly Put[])[];
  readonly poolBytes: number;
  readonly shards: number;
  readonly isShardLock: (address: number) => boolean;
}

/**
 * Chooses the traced flavour for this thread. Loaded, and called, before anything of the store is.
 */
import { chooseFlavour } from '../layout/flavour.js';
import { Recording, type WriteListener } from './recording.js';

/** Returns how to say who is told of writes from then on; nobody is at first. */
export function traceWrites(): (listener: WriteListener) => void {
  let current: WriteListener | null = null;
  chooseFlavour(new Recording((arena, offset, bytes, isZero) => current?.(arena, offset, bytes, isZero)));
  return (listener) => {
    current = listener;
  };
}

/**
 * Questions that every worker answers: who still owes an answer, and what to do when all have spoken.
 *
 * The invariant: each call ends exactly once, after every asked worker has answered or died.
 */

interface Call {
  readonly owing: Set<number>;
  readonly answers: unknown[];
  readonly done: (answers: unknown[]) => void;
}

export class RollCall {
  #nextId = 1;
  readonly #calls = new Map<number, Call>();

  /** Opens a call over these workers; returns its id, to be posted to each of them. */
  open(workers: readonly number[], done: (answers: unknown[]) => void): number {
    const id = this.#nextId++;
    const call = { owing: new Set(workers), answers: [], done };
    this.#calls.set(id, call);
    this.#endIfComplete(id, call);
    return id;
  }

  answer(id: number, worker: number, answer: unknown): void {
    const call = this.#calls.get(id);
    if (call === undefined || !call.owing.delete(worker)) return;
    call.answers.push(answer);
    this.#endIfComplete(id, call);
  }

  /** The worker is gone: nobody waits for it any more. */
  workerGone(worker: number): void {
    for (const [id, call] of this.#calls) {
      if (call.owing.delete(worker)) this.#endIfComplete(id, call);
    }
  }

  #endIfComplete(id: number, call: Call): void {
    if (call.owing.size > 0) return;
    this.#calls.delete(id);
    call.done(call.answers);
  }
}

/**
 * Paired runs: contenders alternate (and who goes first alternates too), all others stopped meanwhile, so that a slow
 * minute of the machine meets both sides of a pair.
 */
import type { Server } from './servers.js';

export interface Contender<Result> {
  readonly name: string;
  readonly server: Server;
  run(): Promise<Result>;
}

/** One unmeasured run each, then `rounds` measured ones. Results are in round order by contender name. */
export async function alternate<Result>(
  rounds: number,
  contenders: readonly Contender<Result>[],
): Promise<Record<string, Result[]>> {
  const results: Record<string, Result[]> = {};
  for (const contender of contenders) {
    results[contender.name] = [];
    contender.server.park();
  }
  for (let round = -1; round < rounds; round++) {
    const order = round % 2 === 0 ? contenders : [...contenders].reverse();
    for (const contender of order) {
      contender.server.resume();
      const result = await contender.run();
      contender.server.park();
      if (round >= 0) results[contender.name].push(result);
    }
  }
  for (const contender of contenders) contender.server.resume();
  return results;
}

/** Picks one number out of every result. */
export function pick<Result>(
  results: Readonly<Record<string, readonly Result[]>>,
  number: (result: Result) => number,
): Record<string, number[]> {
  return Object.fromEntries(Object.entries(results).map(([name, list]) => [name, list.map(number)]));
}

/** Entry of the command: loads it, with what earlier starts have compiled of it. */
import { keepCompiled } from '../server/compile-cache.js';
import { tuneEngine } from '../server/engine.js';

/** Runs one command line (without node and script); resolves to the exit code. */
export async function run(args: readonly string[]): Promise<number> {
  tuneEngine();
  keepCompiled();
  return (await import('./main.js')).run(args);
}

/**
 * Where things are. The harness runs compiled from bench/.build and, in the tests, straight from bench/: both find the
 * checkout by walking up to its package.json.
 */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

function findRoot(from: string): string {
  for (let folder = from; folder !== dirname(folder); folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json'))) return folder;
  }
  throw new Error(`no package.json above ${from}`);
}

export const rootFolder = findRoot(dirname(fileURLToPath(import.meta.url)));
export const buildFolder = join(rootFolder, 'bench', '.build');
export const resultsFolder = join(rootFolder, 'bench', 'results');
export const loadSourceFolder = join(rootFolder, 'bench', 'load');

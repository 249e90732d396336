/**
 * Reading /proc and /sys below a root, so that tests can bring their own tree. What does not exist, or may not be read, is
 * "not known" here, never an error.
 */
import { readdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { readIfThere } from '../config/machine.js';

export { readIfThere };

/** Names in a folder, sorted; none where it does not exist. */
export function listIfThere(path: string): string[] {
  try {
    return readdirSync(path).sort();
  } catch {
    return [];
  }
}

/** Where a link of the tree leads, or undefined. */
export function resolveIfThere(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

export function readNumber(...parts: string[]): number | undefined {
  const text = readIfThere(join(...parts));
  const value = Number(text);
  return text === undefined || text === '' || Number.isNaN(value) ? undefined : value;
}

/** '0-2,8' -> [0, 1, 2, 8], as the kernel writes sets of CPUs and nodes. */
export function parseNumberList(text: string): number[] {
  const numbers: number[] = [];
  for (const part of text.split(',')) {
    const [, first, last] = /^\s*(\d+)(?:-(\d+))?\s*$/.exec(part) ?? [];
    if (first === undefined) continue;
    for (let n = Number(first); n <= Number(last ?? first); n++) numbers.push(n);
  }
  return numbers;
}

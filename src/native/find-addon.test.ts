import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { findAddon, interpreterOf, targetName } from './find-addon.js';

/** What readelf says, the judge. */
function interpreter(program: string): string {
  const text = execFileSync('readelf', ['-W', '-l', program], { encoding: 'utf8' });
  return /interpreter: (.+)\]/.exec(text)?.[1] ?? '';
}

describe('findAddon', () => {
  it('reads which loader a program names', () => {
    expect(interpreterOf(process.execPath)).toBe(interpreter(process.execPath));
    expect(interpreterOf('/bin/sh')).toBe(interpreter('/bin/sh'));
    // A library names none.
    expect(interpreterOf(findAddon())).toBe('');
  });

  it('names the prebuilt addon of this machine', () => {
    const isMusl = interpreter(process.execPath).includes('musl');
    expect(targetName()).toBe(`linux-${process.arch}-${isMusl ? 'musl' : 'glibc'}`);
  });
});

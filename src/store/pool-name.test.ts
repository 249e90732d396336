import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makePoolName, readPoolName } from './pool-name.js';

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'entresol-name-'));
});

afterEach(() => rmSync(directory, { recursive: true }));

describe('pool name', () => {
  it('stays the same once made', () => {
    expect(readPoolName(directory)).toBeNull();
    const name = makePoolName(directory);
    expect(makePoolName(directory)).toBe(name);
    expect(readPoolName(directory)).toBe(name);
    expect(readdirSync(directory)).toEqual(['pool.id']);
  });

  it('is another for a directory that takes the place of a removed one', () => {
    const name = makePoolName(directory);
    rmSync(directory, { recursive: true });
    mkdirSync(directory);
    expect(makePoolName(directory)).not.toBe(name);
  });

  it('refuses an identity that is none', () => {
    writeFileSync(join(directory, 'pool.id'), '../../etc');
    expect(() => makePoolName(directory)).toThrow(/not the identity/);
  });
});

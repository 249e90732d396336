/** Claims: who may have a pool beside whom, in one process (other descriptions exclude each other there too) and across processes. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Claim, type ClaimKind, claimPool } from './claim.js';

let pool = '';
const claims: Claim[] = [];
beforeEach(() => {
  pool = mkdtempSync(join(tmpdir(), 'entresol-claim-'));
});
afterEach(() => {
  for (const claim of claims.splice(0)) claim.release();
  rmSync(pool, { recursive: true });
});

function claim(kind: ClaimKind): Claim {
  const taken = claimPool(pool, kind);
  claims.push(taken);
  return taken;
}

const refused = (what: RegExp) => expect.objectContaining({ code: 'POOL_BUSY', message: expect.stringMatching(what) });

test('one server, any number of others beside it', () => {
  claim('shared');
  const server = claim('server');
  claim('shared');
  expect(() => claim('server')).toThrow(refused(new RegExp(`server runs .* process ${process.pid}$`)));
  expect(() => claim('exclusive')).toThrow(refused(/server runs/));
  server.release();
  server.release();
  claim('server');
});

test('an exclusive user is alone', () => {
  const first = claim('shared');
  expect(() => claim('exclusive')).toThrow(refused(/others have the pool open/));
  first.release();
  const alone = claim('exclusive');
  for (const kind of ['shared', 'server', 'exclusive'] as const) {
    expect(() => claim(kind)).toThrow(refused(new RegExp(`process ${process.pid} has the pool open for itself`)));
  }
  alone.release();
  claim('shared');
});

test('a process killed with -9 leaves no claim', () => {
  const script = `
    const { claimPool } = await import(process.argv[1]);
    claimPool(process.argv[2], process.argv[3]);
    process.kill(process.pid, 'SIGKILL');`;
  const module = join(import.meta.dirname, '../../dist/store/claim.js');
  for (const kind of ['server', 'exclusive'] as const) {
    expect(() => execFileSync(process.execPath, ['--input-type=module', '-e', script, module, pool, kind])).toThrow(
      expect.objectContaining({ signal: 'SIGKILL' }),
    );
    expect(readFileSync(join(pool, 'pool.lock'), 'latin1').trim()).not.toBe(String(process.pid));
    claim('exclusive').release();
  }
});

/** The entresol command, as built: hotspots of named workloads and of recorded requests, as a table and as JSON. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it, vi } from 'vitest';

const PROGRAM = fileURLToPath(new URL('../../bin/entresol.js', import.meta.url));
const run = promisify(execFile);
// Traced writers are slow, and so are some machines.
vi.setConfig({ testTimeout: 120_000 });
const folder = mkdtempSync(join(tmpdir(), 'entresol-hotspots-test-'));
afterAll(() => rmSync(folder, { recursive: true }));

async function hotspots(...args: string[]): Promise<string> {
  const { stdout } = await run(process.execPath, [PROGRAM, 'hotspots', ...args]);
  return stdout;
}

interface Result {
  readonly errors: number;
  readonly hotspots: {
    readonly requests: number;
    readonly structures: readonly { structure: string; bytes: number; lines: number; distinctLines: number }[];
    readonly hotLines: readonly { structure: string; dimm: number; requests: number }[];
    readonly wholePool: { readonly imbalance: number; readonly dimms: readonly { writtenBytes: number }[] };
    readonly capacityTier: { readonly dimms: readonly { writtenBytes: number }[] };
  };
}

async function json(...args: string[]): Promise<Result> {
  return JSON.parse(await hotspots(...args, '--json')) as Result;
}

describe('entresol hotspots', () => {
  it('names the structures that updates write, and the DIMM that they lie on', async () => {
    const { hotspots: found, errors } = await json('--requests', '500', '--keys', '300');
    expect(errors).toBe(0);
    expect(found.requests).toBe(500);
    const by = (name: string) => found.structures.find(({ structure }) => structure === name);
    // Header, key and value of each.
    expect(by('slab pages')?.bytes).toBeGreaterThan(500 * 100);
    expect(by('participant: undo journal')?.lines).toBeGreaterThan(400);
    expect(found.wholePool.dimms).toHaveLength(4);
    expect(found.wholePool.imbalance).toBeGreaterThan(1.3);
    expect(found.hotLines[0].structure).toMatch(/^participant/);
    expect(found.capacityTier.dimms.every(({ writtenBytes }) => writtenBytes === 0)).toBe(true);
  });

  it('reads write next to nothing', async () => {
    const update = await json('--requests', '300', '--keys', '300');
    const read = await json('--workload', 'read', '--requests', '300', '--keys', '300');
    const bytes = ({ hotspots: { structures } }: Result) => structures.reduce((sum, one) => sum + one.bytes, 0);
    expect(bytes(read)).toBeLessThan(bytes(update) / 5);
  });

  it('runs recorded requests, from a file or a pipe', async () => {
    const file = join(folder, 'requests');
    const large = 'x'.repeat(200_000);
    writeFileSync(
      file,
      `SET a 1\r\n*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$${large.length}\r\n${large}\r\nLPUSH list x y z\r\nINCR b\r\n`,
    );
    const { hotspots: found, errors } = await json('--from', file);
    expect(found.requests).toBe(4);
    expect(errors).toBe(1);
    expect(found.structures[0].structure).toBe('slab pages');
    const pipe = run('sh', ['-c', `"$0" "$1" hotspots --from - --json < "$2"`, process.execPath, PROGRAM, file]);
    expect((JSON.parse((await pipe).stdout) as Result).hotspots.requests).toBe(4);
  });

  it('prints tables', async () => {
    const text = await hotspots('--requests', '200', '--keys', '100', '--device', 'optane', '--workers', '3');
    expect(text).toMatch(/^200 requests; per request:\n/);
    expect(text).toMatch(/ {2}slab pages +\d+\.\d\d/);
    expect(text).toContain('DIMM 5');
    expect(text).toContain('Hottest lines');
  });

  it.each([
    [['--workload', 'updat'], /'updat' is none of .* Did you mean update\? See entresol hotspots --help\.\n$/],
    [['--workers', '0'], /--workers: '0' must be 1 to 64\./],
    [['--nonsense'], /Unknown option '--nonsense'/],
  ])('refuses %j', async (args, message) => {
    await expect(hotspots(...args)).rejects.toMatchObject({ code: 2, stderr: expect.stringMatching(message) });
  });

  it('says which byte of a file is no request', async () => {
    const file = join(folder, 'broken');
    writeFileSync(file, 'PING\r\n*1\r\n+x\r\n');
    await expect(hotspots('--from', file)).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining('no request at byte 6'),
    });
  });
});

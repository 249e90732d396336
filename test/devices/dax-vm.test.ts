/**
 * A real DAX file system, in a virtual machine: doctor recognises it, auto chooses the dax tier, the capacity tier is mapped with
 * MAP_SYNC, and what was persisted is whole after the power was cut. Needs the build, qemu, busybox, mkfs.ext4 and a kernel
 * (dax-machine.ts); skipped with the reason where one is missing.
 */
import { afterAll, describe, expect, it } from 'vitest';
import { DaxMachine, obstacle } from './dax-machine.js';

/** Without hardware virtualisation a boot takes 15 s on an idle machine. */
const BOOT_MAX_MS = 300_000;
const RECORDS_MIN = 20;

const reason = obstacle();

describe.skipIf(reason !== '')(`on a DAX file system${reason === '' ? '' : ` (skipped: ${reason})`}`, () => {
  let machine: DaxMachine | undefined;
  afterAll(() => machine?.close());

  it('what was persisted is whole after a power cut', { timeout: 3 * BOOT_MAX_MS }, async () => {
    machine = new DaxMachine();
    const first = machine.boot('write');
    const cutAt = RECORDS_MIN + Math.floor(Math.random() * 200);
    await first.waitFor(new RegExp(`^PERSISTED ${cutAt}$`, 'm'), BOOT_MAX_MS);
    const written = await first.kill();

    const [, code, json] = /^DOCTOR (\d+) (.*)$/m.exec(written) ?? [];
    const report = JSON.parse(json) as { findings: { code: string }[] };
    expect(report).toMatchObject({
      kind: 'fsdax',
      mapSync: true,
      tier: 'dax',
      persistence: 'emulated',
      verdict: 'warnings',
      place: { fileSystem: 'ext4', blockDevice: { name: 'pmem0', isDax: true, region: { origin: 'e820' } } },
    });
    expect(report.findings.map((finding) => finding.code)).toContain('PERSISTENCE_EMULATED');
    expect(code).toBe('1');
    expect(written).toMatch(/^TIER dax mapped-sync=true$/m);
    const demoted = /^ITEMS intact=15000 demoted=(\d+)$/m.exec(written)?.[1];
    expect(Number(demoted)).toBeGreaterThan(3000);

    const printed = [...written.matchAll(/^PERSISTED (\d+)$/gm)].map(([, number]) => Number(number));
    const last = Math.max(...printed);
    expect(last).toBeGreaterThanOrEqual(cutAt);

    const second = machine.boot('verify');
    const verified = await Promise.race([second.ended, second.waitFor(/^GUEST-ENDED \d+$/m, BOOT_MAX_MS)]);
    expect(verified).toMatch(/^GUEST-ENDED 0$/m);
    expect(Number(/^WHOLE (\d+)$/m.exec(verified)?.[1])).toBeGreaterThan(last);
    expect(verified).toMatch(/^TIER dax mapped-sync=true$/m);
    expect(verified).toMatch(/^ITEMS intact=15000 /m);
  });
});

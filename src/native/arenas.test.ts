/** Arenas: reserving, mapping, sharing, releasing, and what a full, truncated or missing file does. */
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addon } from './addon.js';

const MiB = 1 << 20;
let directory: string;
let file: string;
beforeAll(() => {
  directory = fs.mkdtempSync(path.join(os.tmpdir(), 'entresol-arenas-'));
  file = path.join(directory, 'pool');
});
afterAll(() => {
  fs.rmSync(directory, { recursive: true });
});

function coded(code: keyof typeof os.constants.errno, syscall: string, where?: string): unknown {
  return expect.objectContaining({
    code,
    errno: -os.constants.errno[code],
    syscall,
    ...(where === undefined ? {} : { path: where, message: expect.stringContaining(where) }),
  });
}

describe('files', () => {
  it('opens, reserves without holes, tells the size', () => {
    const fd = addon.openFile(file, true, true);
    addon.reserve(fd, 0, 4 * MiB);
    expect(addon.fileBytes(fd)).toBe(4 * MiB);
    expect(fs.fstatSync(fd).blocks * 512).toBeGreaterThanOrEqual(4 * MiB);
    addon.closeFile(fd);
  });

  it('reports failures with code, errno, syscall and path', () => {
    const missing = path.join(directory, 'no', 'such');
    expect(() => addon.openFile(missing, true, false)).toThrow(coded('ENOENT', 'open', missing));
    expect(() => addon.openFile(file, true, true)).toThrow(coded('EEXIST', 'open', file));
    expect(() => addon.fileBytes(9999)).toThrow(coded('EBADF', 'fstat'));
    expect(() => addon.closeFile(9999)).toThrow(coded('EBADF', 'close'));
    expect(() => addon.openFile('with\0zero', true, false)).toThrow(TypeError);
  });

  it('maps copies on write: each its own, the file unchanged', () => {
    const fd = addon.openMemory('copies');
    addon.reserve(fd, 0, MiB);
    const shared = addon.mapArena(fd, 0, MiB, {});
    const bytes = new Uint8Array(addon.wrapArena(shared));
    bytes[0] = 1;
    const [one, two] = [0, 1].map(() => addon.mapArena(fd, 0, MiB, { copyOnWrite: true }));
    expect(new Set([shared, one, two]).size).toBe(3);
    const copy = new Uint8Array(addon.wrapArena(one));
    expect(copy[0]).toBe(1);
    copy[0] = 2;
    expect([bytes[0], new Uint8Array(addon.wrapArena(two))[0]]).toEqual([1, 1]);
    expect(addon.mapArena(fd, 0, MiB, {})).toBe(shared);
    for (const arena of [shared, shared, one, two]) addon.releaseArena(arena);
    addon.closeFile(fd);
  });

  it('punches holes: the range reads as zeros and gives its blocks back', () => {
    const fd = addon.openMemory('punch');
    addon.reserve(fd, 0, 2 * MiB);
    const arena = addon.mapArena(fd, 0, 2 * MiB, {});
    const bytes = new Uint8Array(addon.wrapArena(arena)).fill(7);
    const before = fs.fstatSync(fd).blocks;
    addon.punchHole(fd, MiB, MiB);
    expect([bytes[MiB - 1], bytes[MiB], bytes[2 * MiB - 1]]).toEqual([7, 0, 0]);
    addon.punchHole(fd, 0, MiB);
    expect(fs.fstatSync(fd).blocks).toBeLessThan(before);
    addon.releaseArena(arena);
    addon.closeFile(fd);
  });

  it('a full file system: ENOSPC names the file, which keeps its former size', ({ skip }) => {
    const mount = path.join(directory, 'small');
    fs.mkdirSync(mount);
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', mount], { stdio: 'ignore' });
    } catch {
      skip('mounting a small tmpfs needs root');
    }
    try {
      const full = path.join(mount, 'pool');
      const fd = addon.openFile(full, true, false);
      addon.reserve(fd, 0, MiB);
      expect(() => addon.reserve(fd, MiB, 16 * MiB)).toThrow(coded('ENOSPC', 'posix_fallocate', full));
      expect(addon.fileBytes(fd)).toBe(MiB);
      addon.reserve(fd, MiB, MiB);
      addon.closeFile(fd);
    } finally {
      execFileSync('umount', [mount]);
    }
  });
});

describe('arenas', () => {
  it('the same range is the same arena and the same bytes; references are counted', () => {
    const first = addon.openFile(file, false, false);
    const second = addon.openFile(file, false, false);
    const arena = addon.mapArena(first, 0, MiB, { populate: true, hugePages: true });
    expect(addon.mapArena(second, 0, MiB, {})).toBe(arena);
    const next = addon.mapArena(first, MiB, MiB, {});
    expect(next).not.toBe(arena);
    const view = new Uint8Array(addon.wrapArena(arena));
    expect(addon.wrapArena(arena)).toBe(view.buffer);
    view[5] = 99;
    expect(fs.readFileSync(file)[5]).toBe(99);
    addon.releaseArena(arena);
    expect(view[5]).toBe(99);
    addon.releaseArena(arena);
    expect(view.byteLength).toBe(0);
    expect(() => addon.releaseArena(arena)).toThrow(RangeError);
    expect(() => addon.wrapArena(arena)).toThrow(RangeError);
    addon.releaseArena(next);
    addon.closeFile(first);
    addon.closeFile(second);
  });

  it('anonymous arenas start as zeros and report what they occupy', () => {
    const arena = addon.allocateArena(8 * MiB, { hugePages: true });
    const view = new Uint8Array(addon.wrapArena(arena));
    expect(view[4 * MiB]).toBe(0);
    view.fill(1);
    const info = addon.arenaInfo(arena);
    expect(info.bytes).toBe(8 * MiB);
    expect(info.residentBytes).toBeGreaterThanOrEqual(8 * MiB);
    expect(info.hugePageBytes).toBeGreaterThanOrEqual(0);
    addon.releaseArena(arena);
  });

  it('populates where asked', () => {
    const arena = addon.allocateArena(8 * MiB, { populate: true });
    expect(addon.arenaInfo(arena).residentBytes).toBeGreaterThanOrEqual(8 * MiB);
    addon.releaseArena(arena);
  });

  it('binds to NUMA node 0, and says so when there is no such node', () => {
    addon.releaseArena(addon.allocateArena(MiB, { numaNode: 0, populate: true }));
    expect(() => addon.allocateArena(MiB, { numaNode: 900 })).toThrow(coded('EINVAL', 'mbind'));
  });

  it('refuses MAP_SYNC on a file system without it, ranges beyond the file, sizes that are none', () => {
    const fd = addon.openFile(file, false, false);
    expect(() => addon.mapArena(fd, 0, MiB, { sync: true })).toThrow(coded('EOPNOTSUPP', 'mmap', file));
    expect(() => addon.mapArena(fd, 4 * MiB, MiB, {})).toThrow(coded('EINVAL', 'mmap', file));
    expect(() => addon.mapArena(fd, 1, 4096, {})).toThrow(coded('EINVAL', 'mmap', file));
    expect(() => addon.mapArena(fd, 0, 0, {})).toThrow(RangeError);
    expect(() => addon.allocateArena(2 ** 31, {})).toThrow(RangeError);
    addon.closeFile(fd);
  });

  it('persists a range to the file', () => {
    const fd = addon.openFile(file, false, false);
    const arena = addon.mapArena(fd, 0, MiB, {});
    new Uint8Array(addon.wrapArena(arena)).set([1, 2, 3], 5000);
    addon.persist(arena, 5000, 3);
    addon.persist(arena, 0, 0);
    expect(() => addon.persist(arena, MiB - 1, 2)).toThrow(RangeError);
    addon.releaseArena(arena);
    addon.closeFile(fd);
  });

  it('a truncated file: reads give zeros, the fault is counted, the process lives', () => {
    const truncated = path.join(directory, 'truncated');
    const fd = addon.openFile(truncated, true, false);
    addon.reserve(fd, 0, MiB);
    const arena = addon.mapArena(fd, 0, MiB, {});
    const view = new Uint8Array(addon.wrapArena(arena)).fill(5);
    const before = addon.sigbusCount();
    fs.truncateSync(truncated, 4096);
    expect(view[100]).toBe(5);
    expect(view[500_000]).toBe(0);
    view.set([1, 2, 3], 900_000);
    const other = addon.allocateArena(MiB, {});
    const control = new Int32Array(addon.copyControl());
    control.set([1, other, 0, arena, 700_000, 10_000]);
    addon.copy();
    expect(addon.sigbusCount()).toBeGreaterThanOrEqual(before + 3);
    addon.releaseArena(other);
    addon.releaseArena(arena);
    addon.closeFile(fd);
  });

  // The address sanitizer has a handler of its own, whose report would be taken for a fault of ours.
  it.skipIf(process.env.ENTRESOL_ADDON !== undefined)('any other SIGBUS ends the process as before', () => {
    const script = `
      const addon = require(process.argv[1]);
      const fd = addon.openMemory('sigbus');
      addon.reserve(fd, 0, 4096);
      addon.mapArena(fd, 0, 4096, {});
      process.kill(process.pid, 'SIGBUS');
      setTimeout(() => {}, 5000);`;
    const addonPath = path.resolve('native/addon/build/Release/entresol.node');
    expect(spawnSync(process.execPath, ['-e', script, addonPath]).signal).toBe('SIGBUS');
  });
});

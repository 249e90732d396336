/** Byte locks, futexes, eventfds, clocks, machine facts. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { addon } from './addon.js';

let directory: string;
let file: string;
beforeAll(() => {
  directory = fs.mkdtempSync(path.join(os.tmpdir(), 'entresol-sync-'));
  file = path.join(directory, 'control');
});
afterAll(() => {
  fs.rmSync(directory, { recursive: true });
});

test('a byte lock excludes other open file descriptions, in this process too, and dies with its descriptor', () => {
  const mine = addon.openFile(file, true, false);
  const theirs = addon.openFile(file, false, false);
  expect(addon.lockByte(mine, 3)).toBe(true);
  expect(addon.lockByte(mine, 3)).toBe(true);
  expect(addon.lockByte(theirs, 3)).toBe(false);
  expect(addon.lockByte(theirs, 4)).toBe(true);
  expect(addon.isByteLocked(theirs, 3)).toBe(true);
  expect(addon.isByteLocked(mine, 3)).toBe(false);
  addon.unlockByte(mine, 3);
  expect(addon.isByteLocked(theirs, 3)).toBe(false);
  expect(addon.lockByte(mine, 3)).toBe(true);
  addon.closeFile(mine);
  expect(addon.isByteLocked(theirs, 3)).toBe(false);
  addon.closeFile(theirs);
  expect(() => addon.lockByte(9999, 0)).toThrow(expect.objectContaining({ code: 'EBADF', syscall: 'fcntl' }));
});

test('a process killed with -9 loses its byte lock', () => {
  const addonPath = process.env.ENTRESOL_ADDON ?? path.resolve('native/addon/build/Release/entresol.node');
  const script = `
    const addon = require(process.argv[1]);
    const fd = addon.openFile(process.argv[2], true, false);
    console.log(addon.lockByte(fd, 9));
    process.kill(process.pid, 'SIGKILL');`;
  let output = '';
  try {
    execFileSync(process.execPath, ['-e', script, addonPath, file], { stdio: 'pipe' });
  } catch (error) {
    output = (error as { stdout: Buffer }).stdout.toString();
  }
  expect(output.trim()).toBe('true');
  const fd = addon.openFile(file, true, false);
  expect(addon.isByteLocked(fd, 9)).toBe(false);
  addon.closeFile(fd);
});

test('closeAtExit forgets a descriptor that was closed before', () => {
  const fd = addon.openFile(file, true, false);
  addon.closeAtExit(fd);
  addon.closeFile(fd);
  const again = fs.openSync(file, 'r');
  expect(() => fs.fstatSync(again)).not.toThrow();
  fs.closeSync(again);
});

test('futexWait: at once when the word differs, by time-out when nobody wakes', () => {
  const arena = addon.allocateArena(4096, {});
  const words = new Int32Array(addon.wrapArena(arena));
  words[2] = 7;
  expect(addon.futexWait(arena, 8, 6, 10_000)).toBe(false);
  const start = addon.monotonicMs();
  expect(addon.futexWait(arena, 8, 7, 30)).toBe(false);
  expect(addon.monotonicMs() - start).toBeGreaterThanOrEqual(29);
  expect(addon.futexWake(arena, 8, 1)).toBe(0);
  expect(() => addon.futexWait(arena, 6, 0, 1)).toThrow(RangeError);
  expect(() => addon.futexWake(arena, 4096, 1)).toThrow(RangeError);
  addon.releaseArena(arena);
});

test('eventfds count; only ours are woken', () => {
  const event = addon.openEvent();
  addon.wake(event);
  addon.wake(event);
  const bytes = Buffer.alloc(8);
  fs.readSync(event, bytes);
  expect(bytes.readBigUInt64LE()).toBe(2n);
  const fd = addon.openFile(file, true, false);
  expect(() => addon.wake(fd)).toThrow(expect.objectContaining({ code: 'EBADF' }));
  addon.closeFile(fd);
});

test('clocks', () => {
  expect(Math.abs(addon.realtimeMs() - Date.now())).toBeLessThan(1000);
  const first = addon.monotonicMs();
  expect(addon.monotonicMs()).toBeGreaterThanOrEqual(first);
});

test('file systems: kind and room', () => {
  const info = addon.fileSystem(directory);
  expect(info.type).toMatch(/^[a-z0-9]+$/);
  expect(info.bytes).toBeGreaterThan(0);
  expect(info.freeBytes).toBeLessThanOrEqual(info.bytes);
  expect(info.dax).toBe(false);
  expect(addon.fileSystem('/dev/shm').type).toBe('tmpfs');
  expect(() => addon.fileSystem('/no/such')).toThrow(expect.objectContaining({ code: 'ENOENT', path: '/no/such' }));
});

test('pinning: an empty list changes nothing, a CPU that is none is refused', () => {
  addon.pinThread([]);
  addon.pinThread(os.cpus().map((_, i) => i));
  expect(() => addon.pinThread([5000])).toThrow(RangeError);
});

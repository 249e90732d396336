/** Each finding of doctor from facts that call for it, and none from a machine as it should be. */
import { describe, expect, it } from 'vitest';
import type { PmemRegion } from './block-device.js';
import { FINDINGS, type FindingCode, levelOf } from './findings.js';
import { judge, type Plan } from './judge.js';
import type { MachineFacts } from './machine-facts.js';
import { persistenceOf } from './persistence.js';
import type { Subject } from './subject.js';

const GIB = 2 ** 30;

const region: PmemRegion = {
  name: 'region0',
  persistenceDomain: 'memory_controller',
  moduleCount: 6,
  origin: 'hardware',
  moduleFlags: [],
};
const pmem = { name: 'pmem0', isRotational: false, isDax: true, numaNode: 0, region };
const disk = { name: 'sda', isRotational: false, isDax: false, numaNode: -1, region: undefined };
const DAX = { isDax: true, isSync: true, obstacle: '' };
const NO_DAX = { isDax: false, isSync: false, obstacle: '' };

/** A folder on interleaved persistent memory, mounted for DAX. */
function subject(changes: Partial<Subject> = {}): Subject {
  return {
    path: '/mnt/pmem/pool',
    place: '/mnt/pmem',
    exists: false,
    kind: 'fsdax',
    fileSystem: 'ext4',
    bytes: 100 * GIB,
    freeBytes: 90 * GIB,
    isWritable: true,
    mount: { point: '/mnt/pmem', type: 'ext4', source: '/dev/pmem0', device: '259:0', options: ['rw', 'dax=always'] },
    block: pmem,
    daxDevice: undefined,
    node: -1,
    dax: DAX,
    ...changes,
  };
}

const plainDisk: Partial<Subject> = { kind: 'file-system', dax: NO_DAX, block: disk };

function machine(changes: Partial<MachineFacts> = {}, memory: Partial<MachineFacts['memory']> = {}): MachineFacts {
  return {
    limits: { memoryBytes: 32 * GIB, memoryLimitBytes: undefined, cpuCount: 8, openFilesMax: 65536 },
    nodes: [{ node: 0, cpus: [0, 1], bytes: 32 * GIB, freeBytes: 16 * GIB, distances: [10] }],
    allowedCpus: [0, 1],
    usedNodes: [0],
    memory: {
      hugePages: 'madvise',
      shmemHugePages: 'never',
      hugetlbBytes: 0,
      hugetlbFreeBytes: 0,
      overcommit: 0,
      commitFreeBytes: 0,
      swapBytes: 0,
      swappiness: 60,
      lockedBytesMax: 0,
      addressSpaceMax: Number.POSITIVE_INFINITY,
      ...memory,
    },
    shm: { bytes: 16 * GIB, freeBytes: 16 * GIB, hugePages: 'advise' },
    pmemDevices: ['pmem0'],
    ...changes,
  };
}

function plan(changes: Partial<Plan> = {}): Plan {
  return {
    dramBytes: 4 * GIB,
    capacityBytes: 50 * GIB,
    tier: 'dax',
    refusal: '',
    poolProblem: '',
    hasPool: false,
    numaNode: -1,
    clientsMax: 10_000,
    ...changes,
  };
}

const codes = (s: Subject, m = machine(), p = plan()): FindingCode[] => judge(s, m, p).map(({ code }) => code);

const cxl = { node: 1, cpus: [], bytes: 64 * GIB, freeBytes: 64 * GIB, distances: [] };
const numaPlan = plan({ tier: 'numa', numaNode: 1, capacityBytes: 8 * GIB });

type Case = [FindingCode, Partial<Subject>, MachineFacts?, Plan?];
const CASES: readonly Case[] = [
  ['NO_DIRECTORY', { kind: 'no-directory' }],
  ['DEVDAX', { kind: 'devdax', daxDevice: { name: 'dax0.0', bytes: GIB, numaNode: 0, targetNode: 3 } }],
  ['BLOCK_DEVICE', { kind: 'block-device' }],
  ['HUGETLBFS', { kind: 'hugetlbfs', dax: NO_DAX }],
  ['VIRTUAL_FILE_SYSTEM', { kind: 'virtual', dax: NO_DAX }],
  ['NO_PERMISSION', { isWritable: false }],
  ['READ_ONLY', { mount: { point: '/', type: 'ext4', source: '', device: '', options: ['ro'] } }],
  ['NO_SPACE', { freeBytes: GIB }],
  ['TIER_REFUSED', {}, machine(), plan({ tier: undefined, refusal: 'no' })],
  ['POOL_REFUSED', {}, machine(), plan({ poolProblem: 'no' })],
  ['ABOVE_70_PERCENT', {}, machine(), plan({ capacityBytes: 80 * GIB })],
  ['NUMA_REMOTE', { block: { ...pmem, numaNode: 1 } }],
  ['PMEM_NOT_DAX', { kind: 'file-system', dax: NO_DAX }],
  ['MAP_SYNC_REFUSED', { dax: { isDax: true, isSync: false, obstacle: '' } }],
  ['DAX_NOT_TRIED', { dax: { isDax: false, isSync: false, obstacle: 'EACCES' } }],
  [
    'DAX_BY_INODE',
    { ...plainDisk, mount: { point: '/m', type: 'xfs', source: '', device: '', options: ['dax=inode'] } },
  ],
  [
    'JOURNALED_DATA',
    { ...plainDisk, mount: { point: '/m', type: 'ext4', source: '', device: '', options: ['data=journal'] } },
  ],
  ['PERSISTENCE_EMULATED', { block: { ...pmem, region: { ...region, origin: 'e820' } } }],
  ['PERSISTENCE_OF_HOST', { block: { ...pmem, region: { ...region, origin: 'virtio' } } }],
  ['MODULE_ALARM', { block: { ...pmem, region: { ...region, moduleFlags: ['nmem0 not_armed'] } } }],
  ['NOT_INTERLEAVED', { block: { ...pmem, region: { ...region, moduleCount: 1 } } }],
  ['POWER_PROTECTION', {}],
  ['TMPFS', { ...plainDisk, kind: 'tmpfs', fileSystem: 'tmpfs' }],
  ['NETWORK_FILE_SYSTEM', { ...plainDisk, kind: 'network', fileSystem: 'nfs' }],
  ['COPY_ON_WRITE', { ...plainDisk, fileSystem: 'btrfs' }],
  ['OVERLAY', { ...plainDisk, fileSystem: 'overlay' }],
  ['ROTATIONAL', { ...plainDisk, block: { ...disk, isRotational: true } }],
  ['NOT_DAX', plainDisk],
  ['NODE_MISSING', {}, machine(), numaPlan],
  ['NODE_TOO_SMALL', {}, machine({ nodes: [{ ...cxl, bytes: GIB }] }), numaPlan],
  ['NODE_IS_DRAM', {}, machine({ nodes: [{ ...cxl, cpus: [4] }] }), numaPlan],
  ['SHM_TOO_SMALL', {}, machine({ nodes: [cxl], shm: { bytes: GIB, freeBytes: GIB, hugePages: '' } }), numaPlan],
  ['DRAM_IN_POOL', {}, machine({ shm: { bytes: GIB, freeBytes: GIB, hugePages: 'advise' } })],
  ['HUGE_PAGES', {}, machine({ shm: { bytes: 16 * GIB, freeBytes: 16 * GIB, hugePages: '' } })],
  ['HUGETLB_RESERVED', {}, machine({}, { hugetlbFreeBytes: GIB })],
  ['STRICT_OVERCOMMIT', {}, machine({}, { overcommit: 2, commitFreeBytes: GIB })],
  ['SWAP', {}, machine({}, { swapBytes: GIB })],
  ['OPEN_FILES', {}, machine(), plan({ clientsMax: 100_000 })],
  ['ADDRESS_SPACE', {}, machine({}, { addressSpaceMax: GIB })],
  ['MEMORY_NODE', {}, machine({ nodes: [cxl] })],
  ['PMEM_ELSEWHERE', plainDisk],
];

describe('findings', () => {
  it('are none but what durability rests on, for interleaved persistent memory with DAX at the CPUs', () => {
    expect(codes(subject())).toEqual(['POWER_PROTECTION']);
  });

  it.each(CASES)('%s is found', (code, changes, facts, plans) => {
    const found = judge(subject(changes), facts ?? machine(), plans ?? plan());
    expect(found.map((finding) => finding.code)).toContain(code);
    for (const { message, advice } of found) {
      expect(message).not.toMatch(/undefined|NaN|Infinity/);
      expect(advice).not.toMatch(/undefined|NaN|Infinity/);
    }
  });

  it('of every code have a case above', () => {
    const covered = new Set<string>(CASES.map(([code]) => code));
    expect(Object.keys(FINDINGS).filter((code) => !covered.has(code))).toEqual([]);
  });

  it('do not speak of disks that turn where a virtual machine cannot know', () => {
    expect(codes(subject({ ...plainDisk, block: { ...disk, name: 'vda', isRotational: true } }))).not.toContain(
      'ROTATIONAL',
    );
  });

  it('do not count the space of a pool that is there already', () => {
    expect(codes(subject({ freeBytes: 0 }), machine(), plan({ hasPool: true }))).toEqual(['POWER_PROTECTION']);
  });

  it('name the node of a devdax device and the command', () => {
    const device = { name: 'dax1.0', bytes: GIB, numaNode: 0, targetNode: 3 };
    const [finding] = judge(subject({ kind: 'devdax', daxDevice: device }), machine(), plan());
    expect(finding.advice).toContain('--mode=system-ram dax1.0, then --tier numa --numa-node 3');
    expect(levelOf(finding)).toBe('error');
  });
});

describe('persistence', () => {
  it('follows from tier, mapping and region', () => {
    expect(persistenceOf(subject(), 'dax')).toBe('flush');
    const eadr = { ...pmem, region: { ...region, persistenceDomain: 'cpu_cache' } };
    expect(persistenceOf(subject({ block: eadr }), 'dax')).toBe('cache');
    expect(persistenceOf(subject({ block: { ...pmem, region: { ...region, origin: 'e820' } } }), 'dax')).toBe(
      'emulated',
    );
    expect(persistenceOf(subject(), 'file')).toBe('msync');
    expect(persistenceOf(subject(plainDisk), 'file')).toBe('msync');
    expect(persistenceOf(subject({ kind: 'tmpfs' }), 'file')).toBe('none');
    expect(persistenceOf(subject(), 'numa')).toBe('none');
  });
});

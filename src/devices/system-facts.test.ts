/** What is read out of made-up /proc and /sys trees: mounts, nodes, devices, memory settings. */
import { tmpdir } from 'node:os';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SystemTree } from '../../test/helpers/system-tree.js';
import { listPmemDevices, readBlockDevice, readDaxDevice } from './block-device.js';
import { probeDax } from './dax-probe.js';
import { readMemorySettings } from './memory-settings.js';
import { findMount, parseMounts, readMounts } from './mounts.js';
import { nodesInUse, readAllowedCpus, readNodes } from './numa.js';
import { deviceNumber, examine, kindOf } from './subject.js';
import { parseNumberList } from './system-files.js';

let tree: SystemTree;
beforeEach(() => {
  tree = new SystemTree();
});
afterEach(() => tree.remove());

describe('mounts', () => {
  const text = [
    '27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard',
    '40 27 259:0 / /mnt/pmem rw,relatime shared:7 master:1 - ext4 /dev/pmem0 rw,dax=always',
    '41 40 259:1 / /mnt/pmem/deep\\040er ro,nosuid - xfs /dev/pmem1 rw,dax=inode',
    '42 27 0:40 / /mnt/pmem rw - tmpfs tmpfs rw,size=1k',
  ].join('\n');

  it('are parsed with the options of mount and file system, and escapes undone', () => {
    expect(parseMounts(text)[2]).toEqual({
      point: '/mnt/pmem/deep er',
      type: 'xfs',
      source: '/dev/pmem1',
      device: '259:1',
      options: ['ro', 'nosuid', 'dax=inode'],
    });
  });

  it('are found by path: the deepest point, and of two at one point the later', () => {
    const mounts = parseMounts(text);
    expect(findMount(mounts, '/mnt/pmem/deep er/x')?.device).toBe('259:1');
    expect(findMount(mounts, '/mnt/pmem/x')?.type).toBe('tmpfs');
    expect(findMount(mounts, '/mnt/pmemory')?.device).toBe('254:0');
    expect(findMount([], '/')).toBeUndefined();
    expect(readMounts(tree.root)).toEqual([]);
  });
});

describe('NUMA nodes', () => {
  it('are read with what tells CXL memory from DRAM', () => {
    tree.writeAll({
      'sys/devices/system/node/node0/cpulist': '0-3,8',
      'sys/devices/system/node/node0/meminfo': 'Node 0 MemTotal:       1024 kB\nNode 0 MemFree:         512 kB',
      'sys/devices/system/node/node0/distance': '10 21',
      'sys/devices/system/node/node1/cpulist': '',
      'sys/devices/system/node/node1/meminfo': 'Node 1 MemTotal:       4096 kB\nNode 1 MemFree:        4096 kB',
      'sys/devices/system/node/online': '0-1',
      'proc/self/status': 'Name:\tnode\nCpus_allowed_list:\t8\n',
    });
    const nodes = readNodes(tree.root);
    expect(nodes).toEqual([
      { node: 0, cpus: [0, 1, 2, 3, 8], bytes: 1 << 20, freeBytes: 1 << 19, distances: [10, 21] },
      { node: 1, cpus: [], bytes: 4 << 20, freeBytes: 4 << 20, distances: [] },
    ]);
    expect(nodesInUse(nodes, readAllowedCpus(tree.root))).toEqual([0]);
  });

  it('are unknown where the kernel does not show them', () => {
    expect(readNodes(tree.root)).toEqual([]);
    expect(readAllowedCpus(tree.root)).toEqual([]);
    expect(parseNumberList('')).toEqual([]);
  });
});

describe('devices', () => {
  const REGION = 'sys/devices/LNXSYSTM:00/ndbus0/region3';

  it('of persistent memory show their region, node, modules and alarms', () => {
    tree.writeAll({
      [`${REGION}/persistence_domain`]: 'memory_controller',
      [`${REGION}/mappings`]: '2',
      [`${REGION}/numa_node`]: '1',
      [`${REGION}/mapping0`]: 'nmem0,0,1024,0',
      [`${REGION}/mapping1`]: 'nmem1,0,1024,1',
      [`${REGION}/namespace3.0/block/pmem3/queue/dax`]: '1',
      [`${REGION}/namespace3.0/block/pmem3/queue/rotational`]: '0',
      [`${REGION}/namespace3.0/block/pmem3/pmem3p1/partition`]: '1',
      'sys/bus/nd/devices/nmem0/nfit/flags': '',
      'sys/bus/nd/devices/nmem1/nfit/flags': 'not_armed smart_notify',
    });
    tree.link('sys/dev/block/259:1', `${REGION}/namespace3.0/block/pmem3/pmem3p1`);
    tree.link('sys/block/pmem3', `${REGION}/namespace3.0/block/pmem3`);
    expect(readBlockDevice(tree.root, '259:1')).toEqual({
      name: 'pmem3',
      isRotational: false,
      isDax: true,
      numaNode: 1,
      region: {
        name: 'region3',
        persistenceDomain: 'memory_controller',
        moduleCount: 2,
        origin: 'hardware',
        moduleFlags: ['nmem1 not_armed'],
      },
    });
    expect(listPmemDevices(tree.root)).toEqual(['pmem3']);
  });

  it.each([
    ['platform/e820_pmem/ndbus0/region0', 'e820'],
    ['pci0000:00/0000:00:05.0/virtio2/ndbus0/region0', 'virtio'],
  ])('below %s are told from real ones', (folder, origin) => {
    tree.write(`sys/devices/${folder}/namespace0.0/block/pmem0/queue/dax`, '1');
    tree.link('sys/dev/block/259:0', `sys/devices/${folder}/namespace0.0/block/pmem0`);
    expect(readBlockDevice(tree.root, '259:0')?.region).toMatchObject({
      origin,
      persistenceDomain: '',
      moduleCount: 0,
    });
  });

  it('that lie on others are judged by what is below', () => {
    tree.write('sys/devices/pci/nvme0n1/queue/rotational', '1');
    tree.write('sys/devices/pci/nvme0n1/nvme0n1p2/partition', '2');
    tree.write('sys/devices/virtual/block/dm-0/dm/name', 'x');
    tree.link('sys/devices/virtual/block/dm-0/slaves/nvme0n1p2', 'sys/devices/pci/nvme0n1/nvme0n1p2');
    tree.link('sys/dev/block/253:0', 'sys/devices/virtual/block/dm-0');
    expect(readBlockDevice(tree.root, '253:0')).toMatchObject({ name: 'nvme0n1', isRotational: true, numaNode: -1 });
    expect(readBlockDevice(tree.root, '0:40')).toBeUndefined();
  });

  it('of the devdax kind are known by their name', () => {
    tree.writeAll({
      'sys/devices/x/dax0.0/size': '1073741824',
      'sys/devices/x/dax0.0/target_node': '2',
      'sys/devices/x/dax0.0/numa_node': '0',
      'sys/devices/x/tty7/dev': '4:7',
    });
    tree.link('sys/dev/char/252:0', 'sys/devices/x/dax0.0');
    tree.link('sys/dev/char/4:7', 'sys/devices/x/tty7');
    expect(readDaxDevice(tree.root, '252:0')).toEqual({ name: 'dax0.0', bytes: 1 << 30, numaNode: 0, targetNode: 2 });
    expect(readDaxDevice(tree.root, '4:7')).toBeUndefined();
  });

  it('have the numbers that the kernel packs into a dev_t', () => {
    expect(deviceNumber(0xfe00)).toBe('254:0');
    // Minor 0x12345: its low byte stands below the major number, the rest above.
    expect(deviceNumber(0x123 * 2 ** 20 + 259 * 256 + 0x45)).toBe(`259:${0x12345}`);
  });
});

describe('memory settings', () => {
  it('are read', () => {
    tree.writeAll({
      'proc/meminfo': 'SwapTotal:  2048 kB\nCommitLimit:  4096 kB\nCommitted_AS:  1024 kB',
      'proc/sys/vm/overcommit_memory': '2',
      'proc/sys/vm/swappiness': '60',
      'proc/self/limits': [
        'Limit                     Soft Limit           Hard Limit           Units',
        'Max locked memory         8388608              8388608              bytes',
        'Max address space         unlimited            unlimited            bytes',
      ].join('\n'),
      'sys/kernel/mm/transparent_hugepage/enabled': 'always [madvise] never',
      'sys/kernel/mm/transparent_hugepage/shmem_enabled': 'always within_size advise [never] deny force',
      'sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages': '4',
      'sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages': '1',
    });
    expect(readMemorySettings(tree.root)).toEqual({
      hugePages: 'madvise',
      shmemHugePages: 'never',
      hugetlbBytes: 8 << 20,
      hugetlbFreeBytes: 2 << 20,
      overcommit: 2,
      commitFreeBytes: 3 << 20,
      swapBytes: 2 << 20,
      swappiness: 60,
      lockedBytesMax: 8388608,
      addressSpaceMax: Number.POSITIVE_INFINITY,
    });
  });
});

describe('a path', () => {
  it('is told by form and file system', () => {
    const none = { isDax: false, isSync: false, obstacle: '' };
    const dax = { isDax: true, isSync: true, obstacle: '' };
    expect(kindOf('directory', 'ext4', none, false, -1)).toBe('file-system');
    expect(kindOf('directory', 'xfs', dax, false, -1)).toBe('fsdax');
    expect(kindOf('directory', 'tmpfs', none, false, -1)).toBe('tmpfs');
    expect(kindOf('directory', 'hugetlbfs', none, false, -1)).toBe('hugetlbfs');
    expect(kindOf('directory', 'nfs', none, false, -1)).toBe('network');
    expect(kindOf('directory', 'proc', none, false, -1)).toBe('virtual');
    expect(kindOf('directory', 'sysfs', none, false, 1)).toBe('numa-node');
    expect(kindOf('character', 'tmpfs', none, true, -1)).toBe('devdax');
    expect(kindOf('character', 'tmpfs', none, false, -1)).toBe('no-directory');
    expect(kindOf('block', 'tmpfs', none, false, -1)).toBe('block-device');
    expect(kindOf('file', 'ext4', none, false, -1)).toBe('no-directory');
  });

  it('that does not exist is judged by the folder above', () => {
    const subject = examine(`${tree.root}/not/there`);
    expect(subject).toMatchObject({ exists: false, place: tree.root, isWritable: true, node: -1 });
    expect(subject.bytes).toBeGreaterThan(0);
  });

  it('that cannot be written to is not probed', () => {
    expect(probeDax('/proc').isDax).toBe(false);
    expect(probeDax(tmpdir()).obstacle).toBe('');
  });
});

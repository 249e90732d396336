/** Findings about the whole machine, whatever the path: huge pages, overcommit, swap, limits, unused memory. Pure. */
import { approximateSize } from '../config/size.js';
import type { Plan, Report } from './judge.js';
import type { MachineFacts } from './machine-facts.js';
import type { Subject } from './subject.js';

/** Below this the kernel swaps only when it must. */
const SWAPPINESS_MILD = 10;
/** Descriptors that are not client connections; as config/resolve reckons. */
const RESERVED_FILES = 64;
const STRICT = 2;

export function judgeMachine(subject: Subject, machine: MachineFacts, plan: Plan, report: Report): void {
  const { memory, shm, limits } = machine;
  if (shm !== undefined && (shm.hugePages === '' || shm.hugePages === 'never') && memory.shmemHugePages !== 'force') {
    report(
      'HUGE_PAGES',
      '/dev/shm is mounted without huge=: the DRAM tier lies in pages of 4 KiB',
      'mount -o remount,huge=advise /dev/shm, and --hugepages auto: up to 5 % faster reads.',
    );
  }
  if (memory.hugetlbFreeBytes > 0) {
    report(
      'HUGETLB_RESERVED',
      `${approximateSize(memory.hugetlbFreeBytes)} are reserved as huge pages and free; the store does not use them`,
      'sysctl vm.nr_hugepages=0, unless another program needs them.',
    );
  }
  if (memory.overcommit === STRICT && !plan.hasPool && memory.commitFreeBytes < plan.dramBytes) {
    report(
      'STRICT_OVERCOMMIT',
      `vm.overcommit_memory is 2 and leaves ${approximateSize(memory.commitFreeBytes)}; the DRAM tier takes ${approximateSize(plan.dramBytes)}`,
      'raise vm.overcommit_ratio, or set vm.overcommit_memory to 0: the tiers are reserved at the start anyway.',
    );
  }
  if (memory.swapBytes > 0 && memory.swappiness > SWAPPINESS_MILD) {
    report(
      'SWAP',
      `${approximateSize(memory.swapBytes)} of swap with vm.swappiness ${memory.swappiness}: the DRAM tier may be swapped out`,
      'sysctl vm.swappiness=1, or swapoff.',
    );
  }
  if (plan.clientsMax + RESERVED_FILES > limits.openFilesMax) {
    report(
      'OPEN_FILES',
      `this process may open ${limits.openFilesMax} files: ${Math.max(0, limits.openFilesMax - RESERVED_FILES)} clients instead of ${plan.clientsMax}`,
      'ulimit -n 65536, or LimitNOFILE=65536 in the unit.',
    );
  }
  const mapped = plan.dramBytes + plan.capacityBytes;
  if (mapped > memory.addressSpaceMax) {
    report(
      'ADDRESS_SPACE',
      `the tiers are mapped whole (${approximateSize(mapped)}), the limit of address space is ${approximateSize(memory.addressSpaceMax)}`,
      'ulimit -v unlimited.',
    );
  }
  judgeUnused(subject, machine, plan, report);
}

function judgeUnused(subject: Subject, machine: MachineFacts, plan: Plan, report: Report): void {
  for (const { node, bytes, cpus } of machine.nodes) {
    if (cpus.length > 0 || bytes === 0 || (plan.tier === 'numa' && plan.numaNode === node)) continue;
    report(
      'MEMORY_NODE',
      `NUMA node ${node} has ${approximateSize(bytes)} and no CPUs: CXL or persistent memory`,
      `--tier numa --numa-node ${node} puts the capacity tier there.`,
    );
  }
  if (subject.block?.region !== undefined || machine.pmemDevices.length === 0) return;
  const devices = machine.pmemDevices.map((name) => `/dev/${name}`).join(', ');
  report(
    'PMEM_ELSEWHERE',
    `the machine has persistent memory (${devices}), and ${subject.path} does not lie on it`,
    'mount it with -o dax=always, and let --pool lie there.',
  );
}

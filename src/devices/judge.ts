/**
 * Facts in, findings out: what speaks against a path, and what the production reports advise. Pure.
 *
 * The advice on persistent memory (70 % of the capacity at most, the same node, modules in all channels, power protection) is that
 * of the reports in docs/doctor.md.
 */
import { approximateSize } from '../config/size.js';
import type { Finding, FindingCode } from './findings.js';
import { judgeMachine } from './judge-machine.js';
import type { MachineFacts } from './machine-facts.js';
import type { Subject } from './subject.js';

/** What shall be put there. */
export interface Plan {
  readonly dramBytes: number;
  readonly capacityBytes: number;
  /** What the store has chosen; undefined when it refused. */
  readonly tier: 'none' | 'dax' | 'numa' | 'file' | undefined;
  /** Its refusal, or ''. */
  readonly refusal: string;
  /** A pool that cannot be used: why; or ''. */
  readonly poolProblem: string;
  /** A usable pool is there already: its space is taken. */
  readonly hasPool: boolean;
  readonly numaNode: number;
  readonly clientsMax: number;
}

export type Report = (code: FindingCode, message: string, advice?: string) => void;

/** The share of a medium that data should take: wear levelling and the log's reclaim need the rest. */
const FILL_MAX = 0.7;

export function judge(subject: Subject, machine: MachineFacts, plan: Plan): Finding[] {
  const findings: Finding[] = [];
  const report: Report = (code, message, advice = '') => void findings.push({ code, message, advice });
  if (subject.kind === 'devdax' || subject.kind === 'block-device' || subject.kind === 'no-directory') {
    judgeForm(subject, report);
    return findings;
  }
  if (subject.kind !== 'numa-node') judgePlace(subject, machine, plan, report);
  if (plan.tier === 'numa' || subject.kind === 'numa-node') judgeNode(machine, plan, report);
  if (plan.capacityBytes > 0 && plan.tier !== 'numa') judgeMedium(subject, machine, plan, report);
  judgeMachine(subject, machine, plan, report);
  return findings;
}

function judgeForm({ kind, path, daxDevice, block }: Subject, report: Report): void {
  if (kind === 'devdax' && daxDevice !== undefined) {
    const node = daxDevice.targetNode < 0 ? 'N' : String(daxDevice.targetNode);
    report(
      'DEVDAX',
      `${path} is a devdax device of ${approximateSize(daxDevice.bytes)}: it has no files`,
      `as a NUMA node: daxctl reconfigure-device --mode=system-ram ${daxDevice.name}, then --tier numa --numa-node ${node}. Persistent: ndctl create-namespace -f -e NAMESPACE --mode=fsdax, then a file system on /dev/pmemN, mounted with -o dax.`,
    );
  } else if (kind === 'block-device') {
    const isPmem = block?.region !== undefined;
    report(
      'BLOCK_DEVICE',
      `${path} is a block device${isPmem ? ' of persistent memory' : ''}: a pool needs a folder`,
      isPmem
        ? `mkfs.ext4 -b 4096 ${path} (or mkfs.xfs), mount -o dax=always ${path} /mnt/pmem, --pool /mnt/pmem/entresol. This empties the device.`
        : 'make a file system on it, mount it, and name a folder of it.',
    );
  } else {
    report('NO_DIRECTORY', `${path} is not a folder`, 'name the folder of the pool.');
  }
}

function judgePlace(subject: Subject, machine: MachineFacts, plan: Plan, report: Report): void {
  const { kind, place, fileSystem, mount } = subject;
  if (kind === 'virtual') report('VIRTUAL_FILE_SYSTEM', `${place} lies on ${fileSystem}`, 'choose another folder.');
  else if (kind === 'hugetlbfs') {
    report(
      'HUGETLBFS',
      `${place} lies on hugetlbfs, whose files can be mapped but not written`,
      'choose another folder. For huge pages in the DRAM tier: mount -o remount,huge=advise /dev/shm.',
    );
  } else if (mount?.options.includes('ro')) {
    report('READ_ONLY', `${mount.point} is mounted read-only`, 'mount it read-write, or choose another folder.');
  } else if (!subject.isWritable) {
    report('NO_PERMISSION', `this user may not write in ${place}`, 'chown the folder to the user of the server.');
  }
  if (plan.poolProblem !== '') report('POOL_REFUSED', plan.poolProblem);
  else if (plan.refusal !== '') report('TIER_REFUSED', plan.refusal);
  judgeSpace(subject, machine, plan, report);
}

function judgeSpace(subject: Subject, machine: MachineFacts, plan: Plan, report: Report): void {
  if (plan.hasPool || subject.kind === 'virtual' || subject.kind === 'hugetlbfs') return;
  const shmFree = machine.shm?.freeBytes ?? 0;
  const isInPool = shmFree < plan.dramBytes;
  if (isInPool) {
    report(
      'DRAM_IN_POOL',
      `/dev/shm has ${approximateSize(shmFree)} free, the DRAM tier takes ${approximateSize(plan.dramBytes)}: it becomes a file in the pool`,
      'enlarge it (mount -o remount,size=..., docker run --shm-size=..., an emptyDir of medium Memory), or lower --dram.',
    );
  }
  const needed = (plan.tier === 'numa' ? 0 : plan.capacityBytes) + (isInPool ? plan.dramBytes : 0);
  if (needed > subject.freeBytes) {
    report(
      'NO_SPACE',
      `${approximateSize(needed)} are needed, ${subject.place} has ${approximateSize(subject.freeBytes)} free`,
      'free some, or lower --capacity.',
    );
  }
}

function judgeNode(machine: MachineFacts, plan: Plan, report: Report): void {
  const node = machine.nodes.find((entry) => entry.node === plan.numaNode);
  if (node === undefined || node.bytes === 0) {
    report(
      'NODE_MISSING',
      `the machine has no memory on a NUMA node ${plan.numaNode}`,
      'numactl --hardware lists them.',
    );
    return;
  }
  const needed = approximateSize(plan.capacityBytes);
  if (node.bytes < plan.capacityBytes) {
    report('NODE_TOO_SMALL', `node ${node.node} has ${approximateSize(node.bytes)}, ${needed} are needed`);
  } else if (plan.capacityBytes > node.bytes * FILL_MAX) reportFill(`node ${node.node}`, node.bytes, plan, report);
  if (node.cpus.length > 0) {
    report(
      'NODE_IS_DRAM',
      `node ${node.node} has CPUs, so its memory is most likely DRAM`,
      'choose a node without CPUs.',
    );
  }
  const shmFree = machine.shm?.freeBytes ?? 0;
  if (!plan.hasPool && shmFree < plan.capacityBytes) {
    report(
      'SHM_TOO_SMALL',
      `the numa tier is a file in /dev/shm: ${needed} are needed, ${approximateSize(shmFree)} are free there`,
      'mount -o remount,size=... /dev/shm: its size may be above the DRAM of the machine.',
    );
  }
}

function reportFill(what: string, bytes: number, plan: Plan, report: Report): void {
  report(
    'ABOVE_70_PERCENT',
    `the capacity tier of ${approximateSize(plan.capacityBytes)} takes ${Math.round((plan.capacityBytes / bytes) * 100)} % of ${what} (${approximateSize(bytes)})`,
    `keep data to 70 % of the medium: --capacity ${Math.floor((bytes * FILL_MAX) / 2 ** 20)}mb.`,
  );
}

function judgeMedium(subject: Subject, machine: MachineFacts, plan: Plan, report: Report): void {
  const { kind, bytes, place, fileSystem, mount } = subject;
  if (kind === 'virtual' || kind === 'hugetlbfs') return;
  if (plan.capacityBytes <= subject.bytes && plan.capacityBytes > bytes * FILL_MAX) {
    reportFill(`the file system at ${mount?.point ?? place}`, bytes, plan, report);
  }
  if (kind === 'tmpfs') {
    report(
      'TMPFS',
      `${place} lies on ${fileSystem}, which is DRAM`,
      'choose a disk or persistent memory, or --tier none with more --dram.',
    );
  } else if (kind === 'network') {
    report('NETWORK_FILE_SYSTEM', `${place} lies on ${fileSystem}`, 'choose a local file system.');
  } else if (fileSystem === 'overlay') {
    report(
      'OVERLAY',
      `${place} lies in the writable layer of a container`,
      'mount a volume, and let --pool lie on it.',
    );
  } else if (['btrfs', 'zfs', 'bcachefs'].includes(fileSystem)) {
    report('COPY_ON_WRITE', `${place} lies on ${fileSystem}`, 'ext4 or XFS; on btrfs, chattr +C on the empty folder.');
  }
  if (fileSystem === 'ext4' && mount?.options.includes('data=journal')) {
    report('JOURNALED_DATA', `${mount.point} is mounted with data=journal`, 'mount it with data=ordered, the default.');
  }
  const { block } = subject;
  if (block?.isRotational === true && block.region === undefined && !UNRELIABLE_ROTATION.test(block.name)) {
    report('ROTATIONAL', `${block.name} is a disk that turns`, 'use an SSD, persistent memory or CXL memory.');
  }
  judgeDax(subject, report);
  judgeRegion(subject, machine, report);
}

/** Disks of virtual machines and stacked devices say that they turn when nobody has told them otherwise. */
const UNRELIABLE_ROTATION = /^(vd|xvd|dm-|md|loop|nbd|rbd|zram)/;

/** What is to be done where files are not mapped directly. */
function judgeDax({ dax, mount, block, place, fileSystem, kind }: Subject, report: Report): void {
  const device = block === undefined ? '/dev/pmemN' : `/dev/${block.name}`;
  if (dax.obstacle !== '') {
    report('DAX_NOT_TRIED', `DAX could not be tried in ${place}: ${dax.obstacle}`);
    return;
  }
  if (dax.isSync) return;
  if (dax.isDax) {
    report(
      'MAP_SYNC_REFUSED',
      `${place} has DAX, but the kernel refuses MAP_SYNC: the device does not promise that stores stay`,
      'virtual persistent memory (virtio-pmem) is like that; pass it through as an NVDIMM to have MAP_SYNC.',
    );
    return;
  }
  if (block?.region !== undefined) {
    report(
      'PMEM_NOT_DAX',
      `${place} lies on persistent memory without DAX (${fileSystem})`,
      pmemAdvice(block.isDax, device, mount?.point),
    );
  } else if (kind === 'file-system') {
    report(
      'NOT_DAX',
      `${fileSystem} without DAX: the capacity tier is a file behind the page cache`,
      'it works so. With persistent memory: ndctl create-namespace --mode=fsdax, mkfs.ext4 -b 4096 or mkfs.xfs on /dev/pmemN, mount -o dax=always; with CXL memory: --tier numa.',
    );
  }
  if (mount?.options.includes('dax=inode')) {
    report(
      'DAX_BY_INODE',
      `${mount.point} is mounted with dax=inode`,
      "xfs_io -c 'chattr +x' FOLDER before the pool is made.",
    );
  }
}

function pmemAdvice(canDax: boolean, device: string, point = 'FOLDER'): string {
  if (!canDax) {
    return `the namespace is not in fsdax mode: ndctl create-namespace -f -e NAMESPACE --mode=fsdax (this empties it), then mkfs and mount -o dax=always.`;
  }
  return `umount ${point}; mount -o dax=always ${device} ${point}. It needs blocks of 4096 bytes; ext4 needs data=ordered, XFS before Linux 6.0 needs mkfs.xfs -m reflink=0. A file system that begins at a multiple of 2 MiB is mapped in huge pages.`;
}

function judgeRegion({ block, place, dax }: Subject, machine: MachineFacts, report: Report): void {
  if (block === undefined) return;
  const { region, numaNode, name } = block;
  const used = machine.usedNodes;
  if (numaNode >= 0 && used.length > 0 && !used.includes(numaNode)) {
    report(
      'NUMA_REMOTE',
      `${name} belongs to NUMA node ${numaNode}, this process runs on node ${used.join(', ')}`,
      `numactl --cpunodebind=${numaNode} entresol serve ..., or a pool on a device of node ${used[0]}.`,
    );
  }
  if (region === undefined) return;
  if (region.origin === 'e820') {
    report(
      'PERSISTENCE_EMULATED',
      `${name} is a range that the firmware or memmap= calls persistent; nothing shows that it is`,
      'in a virtual machine its contents live as long as the host keeps them; on DRAM they end with the power.',
    );
  } else if (region.origin === 'virtio') {
    report('PERSISTENCE_OF_HOST', `${name} is a file of the host (virtio-pmem)`);
  }
  if (region.moduleFlags.length > 0) {
    report(
      'MODULE_ALARM',
      `${region.name}: ${region.moduleFlags.join(', ')}`,
      'the modules cannot save what they hold when the power fails: ndctl list -DH, and the vendor.',
    );
  }
  if (region.origin !== 'hardware') return;
  if (region.moduleCount === 1) {
    report(
      'NOT_INTERLEAVED',
      `${region.name} lies on one module, with the bandwidth of one`,
      'populate all memory channels of the socket alike, and make one interleaved region of them (AppDirect interleaved).',
    );
  }
  if (dax.isSync) {
    report(
      'POWER_PROTECTION',
      region.persistenceDomain === 'cpu_cache'
        ? `${place}: caches are flushed when the power fails (eADR)`
        : `${place}: what has been flushed stays when the power fails (ADR); caches do not`,
      'have the power supply and the modules tested: ndctl list -DH shows their health.',
    );
  }
}

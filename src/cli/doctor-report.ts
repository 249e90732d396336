/** A diagnosis as text for people and as JSON for programs. */
import { approximateSize } from '../config/index.js';
import { type Finding, levelOf } from '../devices/findings.js';
import type { MachineFacts } from '../devices/machine-facts.js';
import { PERSISTENCE_WORDS, persistenceOf } from '../devices/persistence.js';
import type { Kind, Subject } from '../devices/subject.js';
import { type Diagnosis, type Verdict, verdictOf } from './diagnosis.js';

/** Version of the JSON form: goes up when a field changes its meaning or goes. */
const JSON_VERSION = 1;

const VERDICT_WORDS: Readonly<Record<Verdict, string>> = {
  fit: 'fit',
  warnings: 'works, with warnings',
  unusable: 'cannot be used so',
};

const KIND_WORDS: Readonly<Record<Kind, string>> = {
  fsdax: 'fsdax: files are mapped without the page cache',
  'file-system': 'ordinary file system',
  tmpfs: 'tmpfs: DRAM as files',
  hugetlbfs: 'hugetlbfs: huge pages as files',
  network: 'network or user-space file system',
  virtual: 'file system of the kernel',
  devdax: 'devdax: memory without files',
  'block-device': 'block device',
  'numa-node': 'NUMA node',
  'no-directory': 'no folder',
};

export function doctorText(diagnosis: Diagnosis): string {
  const { subject, machine, findings } = diagnosis;
  const facts: [string, string][] = [
    ['path', placeWords(subject)],
    ['kind', `${KIND_WORDS[subject.kind]}${syncWords(subject)}`],
    ...tierFacts(diagnosis),
    ['NUMA', numaWords(subject, machine)],
    ...memoryFacts(machine),
  ];
  const lines = [`${subject.path}: ${VERDICT_WORDS[verdictOf(diagnosis)]}`];
  for (const [name, words] of facts) lines.push(`  ${name.padEnd(12)} ${words}`);
  lines.push(...section('Errors', findings, 'error'));
  lines.push(...section('Warnings', findings, 'warning'));
  lines.push(...section('Advice', findings, 'note'));
  return lines.join('\n');
}

function section(title: string, findings: readonly Finding[], level: string): string[] {
  const chosen = findings.filter((finding) => levelOf(finding) === level);
  if (chosen.length === 0) return [];
  const lines = [`${title}:`];
  for (const { code, message, advice } of chosen) {
    lines.push(`  ${code}: ${message}`);
    if (advice !== '') lines.push(`      -> ${advice}`);
  }
  return lines;
}

function placeWords({ kind, exists, place, fileSystem, bytes, freeBytes, mount, block, daxDevice }: Subject): string {
  const where = exists ? '' : `does not exist yet; looked at ${place}: `;
  if (daxDevice !== undefined) return `${where}${daxDevice.name}, ${approximateSize(daxDevice.bytes)}`;
  if (kind === 'block-device') return block?.name ?? 'not known';
  const device = block === undefined ? '' : ` on ${block.name}`;
  const mounted = mount === undefined ? '' : `, mounted at ${mount.point} (${mount.options.join(',')})`;
  const size = bytes === 0 ? '' : `, ${approximateSize(bytes)}, ${approximateSize(freeBytes)} free`;
  return `${where}${fileSystem}${device}${mounted}${size}`;
}

function syncWords({ kind, dax }: Subject): string {
  if (dax.obstacle !== '') return `; DAX not tried (${dax.obstacle})`;
  if (kind !== 'fsdax') return '';
  return dax.isSync ? '; MAP_SYNC tried: granted' : '; MAP_SYNC tried: refused';
}

function tierFacts({ subject, decision, plan }: Diagnosis): [string, string][] {
  if (decision === undefined) return [];
  const size = decision.tier === 'none' ? '' : ` of ${approximateSize(plan.capacityBytes)}`;
  return [
    ['tier', `${decision.tier}${size}: ${decision.reason}`],
    ['durability', PERSISTENCE_WORDS[persistenceOf(subject, decision.tier)]],
  ];
}

function numaWords({ block, daxDevice }: Subject, { nodes, usedNodes, allowedCpus }: MachineFacts): string {
  const list = nodes.map(({ node, bytes, cpus }) => {
    return `node ${node} ${approximateSize(bytes)}${cpus.length === 0 ? ' without CPUs' : ''}`;
  });
  const device = block?.numaNode ?? daxDevice?.numaNode ?? -1;
  const where = device < 0 ? '' : `; the device is at node ${device}`;
  const own =
    usedNodes.length === 0 ? '' : `; this process runs on ${allowedCpus.length} CPUs of node ${usedNodes.join(', ')}`;
  return `${list.join(', ') || 'not known'}${own}${where}`;
}

function memoryFacts({ memory, shm, limits }: MachineFacts): [string, string][] {
  const size = (bytes: number): string => (Number.isFinite(bytes) ? approximateSize(bytes) : 'unlimited');
  const shmWords =
    shm === undefined
      ? 'no /dev/shm'
      : `/dev/shm ${approximateSize(shm.freeBytes)} free of ${approximateSize(shm.bytes)}`;
  const swap =
    memory.swapBytes === 0 ? 'no swap' : `swap ${approximateSize(memory.swapBytes)} (swappiness ${memory.swappiness})`;
  const group = limits.memoryLimitBytes === undefined ? 'none' : approximateSize(limits.memoryLimitBytes);
  return [
    ['memory', `${approximateSize(limits.memoryBytes)}; ${shmWords}; ${swap}; overcommit ${memory.overcommit}`],
    [
      'huge pages',
      `transparent ${memory.hugePages || 'not there'}, /dev/shm ${shm?.hugePages || 'never'}, hugetlb ${memory.hugetlbBytes === 0 ? 'none' : approximateSize(memory.hugetlbBytes)}`,
    ],
    [
      'limits',
      `control group memory ${group}, CPUs ${limits.cpuCount}; open files ${Number.isFinite(limits.openFilesMax) ? limits.openFilesMax : 'unlimited'}; locked memory ${size(memory.lockedBytesMax)} (nothing is locked)`,
    ],
  ];
}

/** JSON has no Infinity: no limit is null. */
function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}

export function doctorJson(diagnosis: Diagnosis): object {
  const { subject, machine, plan, decision, findings } = diagnosis;
  const { memory, limits } = machine;
  return {
    version: JSON_VERSION,
    path: subject.path,
    verdict: verdictOf(diagnosis),
    kind: subject.kind,
    tier: decision?.tier ?? null,
    tierReason: decision?.reason ?? plan.refusal,
    persistence: decision === undefined ? null : persistenceOf(subject, decision.tier),
    mapSync: subject.dax.isSync,
    findings: findings.map((finding) => ({
      code: finding.code,
      level: levelOf(finding),
      message: finding.message,
      advice: finding.advice,
    })),
    place: {
      path: subject.place,
      exists: subject.exists,
      hasPool: plan.hasPool,
      fileSystem: subject.fileSystem,
      bytes: subject.bytes,
      freeBytes: subject.freeBytes,
      mount: subject.mount ?? null,
      blockDevice: subject.block ?? null,
      daxDevice: subject.daxDevice ?? null,
    },
    plan: { dramBytes: plan.dramBytes, capacityBytes: plan.capacityBytes, numaNode: plan.numaNode },
    machine: {
      nodes: machine.nodes,
      allowedCpus: machine.allowedCpus,
      shm: machine.shm ?? null,
      memoryBytes: limits.memoryBytes,
      memoryLimitBytes: limits.memoryLimitBytes ?? null,
      cpuCount: limits.cpuCount,
      openFilesMax: finite(limits.openFilesMax),
      memory: {
        ...memory,
        lockedBytesMax: finite(memory.lockedBytesMax),
        addressSpaceMax: finite(memory.addressSpaceMax),
      },
    },
  };
}

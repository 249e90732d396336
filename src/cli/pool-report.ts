/** What `entresol pool` prints. */
import { approximateSize } from '../config/index.js';
import { Page } from '../layout/location.js';
import type { PoolCopy } from '../store/pool-copy.js';
import type { PoolFacts } from '../store/pool-facts.js';
import type { Repair } from '../store/pool-repair.js';
import type { Upgrade } from '../store/pool-upgrade.js';

const plural = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`;

function deathWords(pids: readonly number[]): string {
  const who = pids.length === 1 ? `process ${pids[0]}` : `processes ${[...new Set(pids)].join(', ')}`;
  return `${plural(pids.length, 'participant')} ended without leaving (${who}); the next start mends what was left`;
}

export function infoText(path: string, copy: PoolCopy, facts: PoolFacts): string {
  const { handle, existing } = copy;
  const { stats } = facts;
  const deaths = copy.deaths();
  const pages = (counts: Readonly<Record<string, number | undefined>>): string =>
    Object.entries(counts)
      .map(([kind, count]) => `${kind} ${count}`)
      .join(', ');
  const lines = [
    path,
    `  layout      version ${facts.layoutVersion}, identity ${facts.identity}, ${facts.shards} shards, ${facts.policy}`,
    `  DRAM        ${approximateSize(stats.dramBytes)} (can become ${approximateSize(copy.memory.dramRoom * Page.BYTES)}), ${approximateSize(stats.dramFreeBytes)} free, ${handle.dramPath}`,
    `              pages of ${approximateSize(Page.BYTES)}: ${pages(facts.dramPages)}`,
  ];
  if (handle.capacityPath !== null) {
    const node = existing.tier === 'numa' ? ` on node ${existing.numaNode}` : '';
    lines.push(
      `  capacity    ${approximateSize(stats.capacityBytes)} (can become ${approximateSize(copy.memory.capacityRoom * Page.BYTES)}), ${approximateSize(stats.capacityFreeBytes)} free, ${existing.tier}${node}, ${handle.capacityPath}`,
      `              pages: ${pages(facts.capacityPages)}; ${approximateSize(stats.logLiveBytes)} of ${approximateSize(stats.logBytes)} of log in use`,
      `              written: each page ${stats.capacityPageWritesMean.toFixed(1)} times in the mean, one ${stats.capacityPageWritesMax} times`,
    );
  } else lines.push('  capacity    none');
  lines.push(`  items       ${stats.items}, ${stats.expiring} with an expiry`);
  for (const { database, items, expiring } of facts.databases) {
    lines.push(`              database ${database}: ${items}, ${expiring} with an expiry`);
  }
  if (facts.flushedItems > 0)
    lines.push(`              of flushed databases, still to be removed: ${facts.flushedItems}`);
  lines.push(
    `  data        ${approximateSize(stats.slabUsedBytes)} in slab chunks, ${approximateSize(stats.largeBytes)} in large items, ${approximateSize(stats.metadataBytes)} of metadata`,
    `  counted     ${stats.stored} stored, ${stats.hits} hits, ${stats.misses} misses, ${stats.evicted} evicted, ${stats.expired} expired, ${stats.demoted} demoted`,
  );
  if (deaths.length > 0) lines.push(`  left over   ${deathWords(deaths)}`);
  if (stats.classes.length > 0) lines.push('  classes     chunk bytes: pages, chunks used of all');
  for (const { chunkBytes, pages: count, usedChunks, chunksPerPage } of stats.classes) {
    lines.push(`              ${chunkBytes}: ${count}, ${usedChunks} of ${count * chunksPerPage}`);
  }
  return lines.join('\n');
}

export function infoJson(copy: PoolCopy, facts: PoolFacts): object {
  const { handle, existing } = copy;
  return {
    dramPath: handle.dramPath,
    capacityPath: handle.capacityPath,
    tier: existing.tier,
    numaNode: existing.tier === 'numa' ? existing.numaNode : null,
    deaths: copy.deaths(),
    ...facts,
  };
}

export interface CheckOutcome {
  readonly items: number;
  /** '' = none. */
  readonly problem: string;
  readonly deaths: readonly number[];
}

export function checkText(path: string, { memory }: PoolCopy, { items, problem, deaths }: CheckOutcome): string {
  const lines =
    problem === ''
      ? [
          `${path}: sound`,
          `  walked      ${plural(items, 'item')}, ${plural(memory.dramPages, 'page')} of DRAM, ${memory.capacityPages} of capacity`,
        ]
      : [
          `${path}: damaged`,
          `  found       ${problem}`,
          "  what to do  the walk ends at the first thing that does not hold. 'entresol pool repair' keeps what is sound; and report it.",
        ];
  if (deaths.length > 0) lines.push(`  left over   ${deathWords(deaths)}`);
  return lines.join('\n');
}

export function upgradeText(path: string, outcome: Upgrade): string {
  const { state, from, to, problem, items, deaths, dramBytes, capacityBytes } = outcome;
  if (state === 'kept') return `${path}: has layout version ${to}: nothing to do`;
  if (state === 'damaged') {
    return [
      `${path}: damaged, and not changed`,
      `  found       ${problem}`,
      `  what to do  the program that made it (layout version ${from}) may still run on it, or begin with an empty pool (move this one away).`,
    ].join('\n');
  }
  const lines = [`${path}: upgraded from layout version ${from} to ${to}`];
  if (items === null) {
    lines.push('  after a reboot: what its capacity tier keeps comes back with the next start');
    return lines.join('\n');
  }
  lines.push(
    `  walked      ${plural(items, 'item')}: sound`,
    `  sizes       ${approximateSize(dramBytes)} of DRAM, ${approximateSize(capacityBytes)} of capacity: start it with these; it cannot become larger`,
  );
  if (deaths.length > 0) lines.push(`  left over   ${deathWords(deaths)}`);
  return lines.join('\n');
}

export function repairText(path: string, { state, problem, items, torn, broken, orphans }: Repair): string {
  switch (state) {
    case 'sound':
      return `${path}: sound, with ${plural(items, 'item')}: nothing to do`;
    case 'damaged':
      return [
        `${path}: damaged, and not changed`,
        `  found       ${problem}`,
        '  what to do  begin with an empty pool (move this one away), and report it.',
      ].join('\n');
    case 'given-up':
      return [
        `${path}: its DRAM tier is given up`,
        `  found       ${problem}`,
        '  what to do  start the server: it rebuilds the pool from what it keeps for a reboot.',
      ].join('\n');
    default:
      return [
        `${path}: repaired`,
        `  found       ${problem}`,
        `  kept        ${plural(items, 'item')}`,
        `  dropped     ${plural(torn, 'entry', 'entries')} without a sound item, ${plural(broken, 'damaged collection')}`,
        `  freed       ${plural(orphans, 'chunk')} of memory that nothing led to`,
      ].join('\n');
  }
}

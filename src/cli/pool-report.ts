/** What `entresol pool` prints. */
import { approximateSize } from '../config/index.js';
import { Page } from '../layout/location.js';
import type { PoolCopy } from '../store/pool-copy.js';
import type { PoolFacts } from '../store/pool-facts.js';

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
          '  what to do  the walk ends at the first thing that does not hold. Begin with an empty pool (move this one away), and report it.',
        ];
  if (deaths.length > 0) lines.push(`  left over   ${deathWords(deaths)}`);
  return lines.join('\n');
}

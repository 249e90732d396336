/** What `entresol hotspots` prints. */
import type { HotspotRun } from '../hotspots/run.js';
import { TAIR_THREADS, type TairRow } from '../hotspots/tair.js';
import type { DeviceCounts } from '../hotspots/tally.js';

type Row = readonly (string | number)[];

/** Columns: the first to the left, numbers to the right. */
function table(head: Row, rows: readonly Row[]): string[] {
  const cells = [head, ...rows].map((row) => row.map(String));
  const widths = head.map((_, column) => Math.max(...cells.map((row) => row[column].length)));
  return cells.map((row) =>
    `  ${row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[column]))).join('  ')}`.trimEnd(),
  );
}

const count = (value: number): string => Math.round(value).toLocaleString('en');
const each = (value: number, of: number): string => (value / of).toFixed(2);

function deviceLines(title: string, { dimms, imbalance, mediaImbalance, writeAmplification }: DeviceCounts): string[] {
  if (dimms.every(({ writtenBytes }) => writtenBytes === 0)) return [`${title}: nothing is written`];
  const rows = dimms.map(({ writtenBytes, mediaWrittenBytes }, dimm) => [
    `DIMM ${dimm}`,
    count(writtenBytes),
    count(mediaWrittenBytes),
  ]);
  return [
    `${title}: the busiest DIMM gets ${imbalance.toFixed(2)} times the mean, its medium writes ${mediaImbalance.toFixed(2)} times; ${writeAmplification.toFixed(2)} bytes of medium a byte`,
    ...table(['', 'bytes sent', 'bytes of medium'], rows),
  ];
}

export function hotspotsText({ hotspots, errors }: HotspotRun, { device }: { readonly device: string }): string {
  const { requests, structures, hotLines, wholePool, capacityTier } = hotspots;
  const refused = errors === 0 ? '' : `, ${count(errors)} of them answered with an error`;
  const lines = [
    `${count(requests)} requests${refused}; per request:`,
    ...table(
      ['', 'stores', 'bytes', 'lines of 256 B', 'different lines in all'],
      structures.map((one) => [
        one.structure,
        each(one.stores, requests),
        each(one.bytes, requests),
        each(one.lines, requests),
        count(one.distinctLines),
      ]),
    ),
    '',
    ...deviceLines(`Capacity tier on ${device}`, capacityTier),
    '',
    ...deviceLines(`If the whole pool lay on ${device}`, wholePool),
  ];
  if (hotLines.length > 0) {
    const rows = hotLines.map((line) => [
      line.structure,
      `0x${line.address.toString(16)}`,
      line.dimm,
      `${((100 * line.requests) / requests).toFixed(1)} %`,
    ]);
    lines.push('', 'Hottest lines', ...table(['', 'address', 'DIMM', 'of requests'], rows));
  }
  return lines.join('\n');
}

interface TairTable {
  readonly mapLocks: number;
  readonly rows: readonly TairRow[];
}

const GIGA = 1e9;

export function tairText({ mapLocks, rows }: TairTable): string {
  const locks = mapLocks === 1 ? 'one lock' : `${mapLocks} locks`;
  const head = ['', 'M writes/s', 'published', 'us', 'published', 'hot DIMM', 'GB/s by DIMM', 'lock busy'];
  return [
    `${TAIR_THREADS} threads, ${locks} for the map`,
    ...table(
      head,
      rows.map(({ name, published, outcome, hotDimmRatio, dimmBandwidth }) => [
        name,
        (outcome.perSecond / 1e6).toFixed(2),
        (published.perSecond / 1e6).toFixed(2),
        (outcome.meanLatencyNs / 1000).toFixed(1),
        published.latencyUs ?? '-',
        hotDimmRatio === 0 ? '-' : `x${hotDimmRatio.toFixed(2)}`,
        hotDimmRatio === 0 ? '-' : dimmBandwidth.map((bytes) => (bytes / GIGA).toFixed(2)).join(' '),
        `${Math.round(100 * outcome.lockBusy)} %`,
      ]),
    ),
  ].join('\n');
}

export function tairJson({ mapLocks, rows }: TairTable): object {
  const shown = rows.map(({ name, published, outcome, hotDimmRatio, dimmBandwidth }) => {
    const { perSecond, meanLatencyNs, lockBusy } = outcome;
    return { name, published, perSecond, latencyUs: meanLatencyNs / 1000, lockBusy, hotDimmRatio, dimmBandwidth };
  });
  return { threads: TAIR_THREADS, mapLocks, rows: shown };
}

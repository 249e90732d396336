/**
 * The report: every figure with its peers' of the same run, then every bar with its verdict; the same as JSON under
 * bench/results/ (git-ignored, except reference.json).
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bars, judge, type Verdict } from '../bars.js';
import { machineFacts } from './machine.js';
import type { Measurement } from './measurement.js';
import { resultsFolder } from './paths.js';
import type { Profile } from './profile.js';

export function formatFigure(value: number): string {
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString('en');
  if (size >= 100) return value.toFixed(0);
  return value.toFixed(size >= 10 ? 1 : size >= 0.1 || size === 0 ? 2 : 3);
}

function table(rows: readonly (readonly string[])[]): string {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column]))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

export function figureLine(m: Measurement): string {
  const figures = Object.entries(m.figures).map(
    ([name, value]) => `${name} ${formatFigure(value)} (+-${Math.round(100 * m.spreads[name])} %)`,
  );
  const ratios = Object.entries(m.ratios).map(([peer, ratio]) => `x${ratio.toFixed(2)} of ${peer}`);
  const note = m.note === undefined ? '' : `\n      ${m.note}`;
  return `${m.metric} [${m.unit}, ${m.better} is better]: ${[...figures, ...ratios].join(', ')}${note}`;
}

function verdictRow({ bar, judged, ours, peer, outcome }: Verdict): string[] {
  const figure = (value: number | undefined): string => (value === undefined ? '-' : formatFigure(value));
  const limit = `${bar.relation === 'atLeast' ? '>=' : '<='} ${bar.limit}`;
  return [bar.about, bar.against, figure(ours), figure(peer), figure(judged), limit, outcome];
}

export function verdictTable(verdicts: readonly Verdict[]): string {
  return table([['bar', 'against', 'ours', 'peer', 'judged', 'limit', 'outcome'], ...verdicts.map(verdictRow)]);
}

/** Prints the verdicts (not of a tiny run: it proves nothing about speed) and writes the JSON file; true when no measured bar falls short. */
export function writeReport(profile: Profile, names: readonly string[], measurements: readonly Measurement[]): boolean {
  const judgedBars = profile.name === 'tiny' ? [] : bars;
  const verdicts = judgedBars
    .map((bar) => judge(bar, measurements))
    .filter((verdict) => verdict.outcome !== 'not measured');
  const finished = new Date().toISOString();
  const content = { finished, profile: profile.name, benches: names, machine: machineFacts(), measurements, verdicts };
  mkdirSync(resultsFolder, { recursive: true });
  const file = join(resultsFolder, `${finished.replace(/[:.]/g, '-')}-${profile.name}.json`);
  writeFileSync(file, `${JSON.stringify(content, null, 2)}\n`);
  if (verdicts.length > 0) console.log(`\n${verdictTable(verdicts)}`);
  const missing = judgedBars.length - verdicts.length;
  if (missing > 0) console.log(`\n${missing} of ${judgedBars.length} bars were not measured in this run.`);
  console.log(`\nWritten to ${file}`);
  return verdicts.every((verdict) => verdict.outcome === 'holds');
}

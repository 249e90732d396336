import { expect, test } from 'vitest';
import {
  CommandStat,
  Counter,
  CounterRow,
  CounterTotals,
  createCounterBaseline,
  createCounterBlock,
  SharedWord,
} from './counters.js';

test('totals sum the rows, and a reset keeps gauges', () => {
  const block = createCounterBlock(2);
  const totals = new CounterTotals(block, createCounterBaseline());
  const first = new CounterRow(block, 0);
  const second = new CounterRow(block, 1);
  first.values[Counter.hits] += 3;
  second.values[Counter.hits] += 4;
  second.values[Counter.connections] = 1;
  first.commandStats[511 * CommandStat.WORDS + CommandStat.failed]++;
  second.commandStats[CommandStat.calls]++;

  expect(totals.workerCount).toBe(2);
  expect(totals.total(Counter.hits)).toBe(7);
  expect(totals.ofWorker(1, Counter.hits)).toBe(4);
  expect(totals.commandTotal(511, CommandStat.failed)).toBe(1);
  expect(totals.commandTotal(0, CommandStat.calls)).toBe(1);

  totals.reset();
  first.values[Counter.hits]++;
  expect(totals.total(Counter.hits)).toBe(1);
  expect(totals.total(Counter.connections)).toBe(1);
  expect(totals.commandTotal(511, CommandStat.failed)).toBe(0);
});

test('a reset in one place is seen by every reader of the same blocks', () => {
  const block = createCounterBlock(1);
  const baseline = createCounterBaseline();
  const row = new CounterRow(block, 0);
  row.values[Counter.commands] = 9;
  new CounterTotals(block, baseline).reset();
  expect(new CounterTotals(block, baseline).total(Counter.commands)).toBe(0);
});

test('shared words are the same memory in every row', () => {
  const block = createCounterBlock(3);
  Atomics.add(new CounterRow(block, 0).shared, SharedWord.clientId, 1);
  Atomics.add(new CounterRow(block, 2).shared, SharedWord.clientId, 1);
  expect(new CounterTotals(block, createCounterBaseline()).sharedWord(SharedWord.clientId)).toBe(2);
});

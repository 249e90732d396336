import { expect, test } from 'vitest';
import { RollCall } from './roll-call.js';

test('a call ends when every worker has answered, each once', () => {
  const rollCall = new RollCall();
  const ends: unknown[][] = [];
  const id = rollCall.open([0, 1, 2], (answers) => ends.push(answers));
  rollCall.answer(id, 1, 'b');
  rollCall.answer(id, 1, 'again');
  rollCall.answer(id, 0, 'a');
  expect(ends).toEqual([]);
  rollCall.answer(id, 2, 'c');
  rollCall.answer(id, 2, 'late');
  expect(ends).toEqual([['b', 'a', 'c']]);
});

test('nobody waits for a worker that has died', () => {
  const rollCall = new RollCall();
  const ends: unknown[][] = [];
  const first = rollCall.open([0, 1], (answers) => ends.push(answers));
  rollCall.open([1], (answers) => ends.push(answers));
  rollCall.answer(first, 0, 'a');
  rollCall.workerGone(1);
  expect(ends).toEqual([['a'], []]);
});

test('a call over no worker ends at once', () => {
  const ends: unknown[][] = [];
  new RollCall().open([], (answers) => ends.push(answers));
  expect(ends).toEqual([[]]);
});

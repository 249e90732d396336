/**
 * Error replies by code, from the reply writer that wrote them into the worker's counters (INFO errorstats).
 */
import { Counter, type CounterRow } from '../layout/counters.js';
import type { Reply } from '../protocol/resp/reply.js';

export function countErrors({ values, errorNames }: CounterRow, { errorsByCode, otherErrors }: Reply): void {
  for (let i = 0; i < errorsByCode.length; i++) {
    values[Counter.errorsByCode + i] += errorsByCode[i];
    errorsByCode[i] = 0;
  }
  if (otherErrors.size === 0) return;
  for (const [code, count] of otherErrors) {
    const number = errorNames.numberOf(code);
    if (number >= 0) values[Counter.otherErrors + number] += count;
  }
  otherErrors.clear();
}

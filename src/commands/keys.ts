/**
 * Key extraction: which arguments of a request are keys. Used for locking, COMMAND GETKEYS and later for cluster slots.
 *
 * Invariant: after `extractKeys` returned n >= 0, context.keyArguments[0..n) are argument indices below argc and keyUses
 * holds their KeyUse bits. It returns -1 when the arguments make no sense (a count that is none); the handler then
 * replies the error and touches no key.
 */
import { type Command, KeyMode } from './command.js';
import type { Context } from './context.js';
import type { KeySpec } from './spec.js';
import { KeyUse } from './spec.js';

export function extractKeys(context: Context, command: Command): number {
  context.keyCount = 0;
  switch (command.keyMode) {
    case KeyMode.NONE:
      return 0;
    case KeyMode.ONE:
      addKey(context, command.firstKey, command.keys[0].use);
      return context.keyCount;
    case KeyMode.RANGE:
      addRange(context, command.firstKey, command.lastKey, command.keyStep, command.keys[0].use);
      return context.keyCount;
    case KeyMode.SEARCH:
      return search(context, command);
  }
}

function search(context: Context, command: Command): number {
  if (command.findKeys != null) {
    command.findKeys(context, (argument, use) => addKey(context, argument, use));
    return context.keyCount;
  }
  for (const spec of command.keys) {
    if ((spec.use & KeyUse.NOT_KEY) !== 0) continue;
    if (!addSpec(context, spec)) {
      context.keyCount = 0;
      return -1;
    }
  }
  return context.keyCount;
}

function addSpec(context: Context, spec: KeySpec): boolean {
  const begin = beginOf(context, spec);
  if (begin < 0) return true;
  const find = spec.find;
  if ('last' in find) {
    let last: number;
    if (find.last >= 0) last = begin + find.last;
    else if (find.limit <= 1) last = context.argc + find.last;
    else last = begin + Math.floor((context.argc - begin) / find.limit) + find.last;
    addRange(context, begin, last, find.step, spec.use);
    return true;
  }
  if ('isUnknown' in find) return true;
  const countArgument = begin + find.countAt;
  if (countArgument >= context.argc) return false;
  const count = context.argInteger(countArgument);
  const first = begin + find.firstAt;
  if (!(count > 0) || first + (count - 1) * find.step >= context.argc) return false;
  addRange(context, first, first + (count - 1) * find.step, find.step, spec.use);
  return true;
}

/** The argument where a spec begins, or -1 when its keyword is not there. */
function beginOf(context: Context, spec: KeySpec): number {
  if ('index' in spec.begin) return spec.begin.index < context.argc ? spec.begin.index : -1;
  if ('isUnknown' in spec.begin) return -1;
  const { keyword, from } = spec.begin;
  if (from >= 0) {
    for (let i = from; i < context.argc; i++) if (context.argIs(i, keyword)) return i + 1 < context.argc ? i + 1 : -1;
  } else {
    for (let i = context.argc + from; i > 0; i--) {
      if (context.argIs(i, keyword)) return i + 1 < context.argc ? i + 1 : -1;
    }
  }
  return -1;
}

function addRange(context: Context, first: number, last: number, step: number, use: number): void {
  if (last < 0) last += context.argc;
  if (last >= context.argc) last = context.argc - 1;
  for (let i = first; i <= last; i += step) addKey(context, i, use);
}

function addKey(context: Context, argument: number, use: number): void {
  if (argument >= context.argc) return;
  const n = context.keyCount;
  context.reserveKeys(n + 1);
  context.keyArguments[n] = argument;
  context.keyUses[n] = use;
  context.keyCount = n + 1;
}

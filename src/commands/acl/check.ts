/**
 * May this user run this request? Command, keys and channels against the user's selectors.
 *
 * Runs only for users who may not do everything. Invariant: it reads the request and changes nothing but the context's key
 * arrays, which every later step fills anew.
 */
import { Bytes } from '../../layout/bytes.js';
import type { Command } from '../command.js';
import { KeyMode } from '../command.js';
import type { Context } from '../context.js';
import { globMatches } from '../glob.js';
import { extractKeys } from '../keys.js';
import { Flag, KeyUse } from '../spec.js';
import { Access, type Selector } from './selector.js';
import type { User } from './user.js';

/** In order of weight: of several selectors' refusals, the heaviest is told. */
export const enum Verdict {
  ALLOWED = 0,
  COMMAND = 1,
  KEY = 2,
  CHANNEL = 3,
}

/** Why, and at which argument (0 = the command itself). One object, reused. */
export interface Decision {
  verdict: Verdict;
  argument: number;
}

/** Commands that name channels: from argument 1 on, `many` or one; patterns must be given to the user literally. */
const CHANNELS: ReadonlyMap<string, { readonly many: boolean; readonly arePatterns: boolean }> = new Map([
  ['publish', { many: false, arePatterns: false }],
  ['spublish', { many: false, arePatterns: false }],
  ['subscribe', { many: true, arePatterns: false }],
  ['ssubscribe', { many: true, arePatterns: false }],
  ['psubscribe', { many: true, arePatterns: true }],
]);

const decision: Decision = { verdict: Verdict.ALLOWED, argument: 0 };

/** The decision about the bound request; valid until the next one. */
export function decide(user: User, command: Command, context: Context): Readonly<Decision> {
  let verdict = Verdict.COMMAND;
  let argument = 0;
  for (const selector of user.selectors) {
    decideSelector(selector, command, context);
    if (decision.verdict === Verdict.ALLOWED) return decision;
    if (decision.verdict > verdict || (decision.verdict === verdict && decision.argument > argument)) {
      verdict = decision.verdict;
      argument = decision.argument;
    }
  }
  return settle(verdict, argument);
}

/** SORT's BY and GET reach keys that no argument names: the user must be allowed to run this and to read every key. */
export function mayReadEveryKey(user: User, command: Command, context: Context): boolean {
  return user.selectors.some(
    (selector) =>
      (selector.allKeys || selector.keys.some((key) => key.pattern === '*' && (key.access & Access.READ) !== 0)) &&
      decideSelector(selector, command, context).verdict === Verdict.ALLOWED,
  );
}

/** True when one of the user's selectors allows this channel (a byte string), or has this very pattern. */
export function mayUseChannel(user: User, channel: Uint8Array, isPattern: boolean): boolean {
  return user.selectors.some((selector) => selector.allChannels || allowsChannel(selector, channel, isPattern));
}

function settle(verdict: Verdict, argument: number): Decision {
  decision.verdict = verdict;
  decision.argument = argument;
  return decision;
}

function decideSelector(selector: Selector, command: Command, context: Context): Decision {
  if (!selector.allCommands && !command.has(Flag.NO_AUTH) && selector.allowed[command.index] === 0) {
    if (!allowsFirstArgument(selector, command, context)) return settle(Verdict.COMMAND, 0);
  }
  if (!selector.allKeys && command.keyMode !== KeyMode.NONE) {
    const argument = refusedKey(selector, command, context);
    if (argument > 0) return settle(Verdict.KEY, argument);
  }
  if (!selector.allChannels && command.has(Flag.PUBSUB)) {
    const argument = refusedChannel(selector, command, context);
    if (argument > 0) return settle(Verdict.CHANNEL, argument);
  }
  return settle(Verdict.ALLOWED, 0);
}

function allowsFirstArgument(selector: Selector, command: Command, context: Context): boolean {
  const words = selector.firstArguments.get(command.index);
  return words?.some((word) => context.argc > 1 && context.argString(1).toLowerCase() === word) === true;
}

/** The first key that no pattern allows, as an argument's index; 0 = none. */
function refusedKey(selector: Selector, command: Command, context: Context): number {
  const count = extractKeys(context, command);
  const variable = count > 0 ? command.spec.variableUse?.(context) : undefined;
  for (let k = 0; k < count; k++) {
    const argument = context.keyArguments[k];
    if (!allowsKey(selector, context, argument, variable ?? context.keyUses[k])) return argument;
  }
  return 0;
}

function allowsKey(selector: Selector, context: Context, argument: number, use: number): boolean {
  const reads = (use & KeyUse.ACCESS) !== 0 ? Access.READ : 0;
  const writes = (use & (KeyUse.INSERT | KeyUse.DELETE | KeyUse.UPDATE)) !== 0 ? Access.WRITE : 0;
  const wanted = reads | writes;
  const offset = context.argOffset(argument);
  const length = context.argLength(argument);
  for (const { bytes, access } of selector.keys) {
    if ((access & wanted) !== wanted) continue;
    if (globMatches(bytes, 0, bytes.length, context.input, offset, length, false)) return true;
  }
  return false;
}

function refusedChannel(selector: Selector, command: Command, context: Context): number {
  const named = CHANNELS.get(command.spec.name);
  if (named === undefined) return 0;
  const end = named.many ? context.argc : Math.min(2, context.argc);
  for (let i = 1; i < end; i++) {
    if (!allowsChannel(selector, context.argBytes(i), named.arePatterns)) return i;
  }
  return 0;
}

function allowsChannel(selector: Selector, channel: Uint8Array, isPattern: boolean): boolean {
  if (isPattern) {
    const text = Buffer.from(channel).toString('latin1');
    return selector.channels.some(({ pattern }) => pattern === text);
  }
  const name = Bytes.from(channel);
  return selector.channels.some(({ bytes }) => globMatches(bytes, 0, bytes.length, name, 0, name.length, false));
}

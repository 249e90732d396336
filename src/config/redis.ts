/**
 * The settings as Redis's CONFIG GET and CONFIG SET show them.
 *
 * A setting answers under its Redis names, or under its flag name where Redis has none. A few parameters that clients ask
 * for and that have one truth here (appendonly ...) answer with a constant. Invariant: CONFIG SET is all or nothing.
 */

import { acceptedValues, acceptValue, isAccepted } from './accepted.js';
import { ValueError } from './kinds.js';
import { protectionProblems } from './resolve.js';
import {
  assignText,
  formatSetting,
  type SettingKey,
  type Settings,
  schema,
  settingKeys,
  settingName,
} from './schema.js';
import { parseSize } from './size.js';

/** Parameters that cannot be other than this while the server runs; setting them to the same value is accepted. */
const CONSTANTS = new Map<string, (settings: Readonly<Settings>) => string>([
  ['appendonly', ({ durability }) => (durability === 'durable' ? 'yes' : 'no')],
  ['cluster-enabled', () => 'no'],
]);

/** Why one of them cannot be set, where that says more than that it cannot. */
const CANNOT: Readonly<Record<string, string>> = {
  appendonly: 'whether changes are written down is decided at the start, by the setting durability: durable is yes',
};

const keyByParameter: ReadonlyMap<string, SettingKey> = new Map(
  settingKeys.flatMap((key) => {
    const { redisNames, isHidden } = schema[key];
    if (isHidden) return [];
    return (redisNames.length > 0 ? redisNames : [settingName(key)]).map((name) => [name, key] as const);
  }),
);

const OUTPUT_LIMIT = 'client-output-buffer-limit';
/**
 * One pair of limits holds for all classes of clients but subscribers; the seconds of their soft limit, above which reading stops, have
 * no meaning.
 */
const CLIENT_CLASSES = ['normal', 'slave', 'pubsub'];

function formatOutputLimit(settings: Settings): string {
  const limits = `${settings.clientOutputBufferHard} ${settings.clientOutputBufferSoft} 0`;
  const { pubsubOutputBufferHard, pubsubOutputBufferSoft, pubsubOutputBufferSeconds } = settings;
  return `normal ${limits} slave ${limits} pubsub ${pubsubOutputBufferHard} ${pubsubOutputBufferSoft} ${pubsubOutputBufferSeconds}`;
}

/** 'normal HARD SOFT SECONDS ...'; a soft limit of 0, Redis's "none", leaves the soft limit of ordinary clients as it is. */
function assignOutputLimit(settings: Settings, value: string): void {
  const words = value.trim().split(/\s+/);
  if (words.length % 4 !== 0) throw new ValueError('wrong number of arguments in buffer limit configuration.');
  const pairs = new Set<string>();
  for (let i = 0; i < words.length; i += 4) {
    const [name, hard, soft, seconds] = words.slice(i, i + 4);
    if (![...CLIENT_CLASSES, 'replica'].includes(name.toLowerCase())) {
      throw new ValueError('invalid client class specified in buffer limit configuration.');
    }
    if (parseSize(hard) === undefined || parseSize(soft) === undefined || !/^\d+$/.test(seconds)) {
      throw new ValueError('error in hard, soft or soft_seconds setting in buffer limit configuration.');
    }
    if (name.toLowerCase() === 'pubsub') {
      assignText(settings, 'pubsubOutputBufferHard', hard);
      assignText(settings, 'pubsubOutputBufferSoft', soft);
      assignText(settings, 'pubsubOutputBufferSeconds', seconds);
      continue;
    }
    pairs.add(`${parseSize(hard)} ${parseSize(soft)}`);
    assignText(settings, 'clientOutputBufferHard', hard);
    if (parseSize(soft) !== 0) assignText(settings, 'clientOutputBufferSoft', soft);
  }
  if (pairs.size > 1)
    throw new ValueError('must be the same for normal clients and replicas: here one limit holds for both.');
}

/** Glob match of a parameter name: * ? [set]; case does not matter. No recursion, so no pattern is expensive. */
function matches(pattern: string, name: string): boolean {
  let p = 0;
  let n = 0;
  let starPattern = -1;
  let starName = 0;
  while (n < name.length) {
    if (pattern[p] === '*') {
      starPattern = p++;
      starName = n;
      continue;
    }
    const length = p < pattern.length ? matchOne(pattern, p, name[n]) : 0;
    if (length > 0) {
      p += length;
      n++;
    } else if (starPattern >= 0) {
      p = starPattern + 1;
      n = ++starName;
    } else {
      return false;
    }
  }
  while (pattern[p] === '*') p++;
  return p === pattern.length;
}

/** Length of the pattern element at `p` if it matches the character, else 0. */
function matchOne(pattern: string, p: number, character: string): number {
  if (pattern[p] === '?') return 1;
  const end = pattern[p] === '[' ? pattern.indexOf(']', p + 1) : -1;
  if (end < 0) return pattern[p] === character ? 1 : 0;
  const isNegated = pattern[p + 1] === '^';
  const set = pattern.slice(p + (isNegated ? 2 : 1), end);
  let isMember = false;
  for (let i = 0; i < set.length; i++) {
    if (set[i + 1] === '-' && i + 2 < set.length) {
      isMember ||= set[i] <= character && character <= set[i + 2];
      i += 2;
    } else {
      isMember ||= set[i] === character;
    }
  }
  return isMember !== isNegated ? end - p + 1 : 0;
}

/** Name, value, name, value ... of every parameter that one of the patterns matches; each once. */
export function configGet(settings: Settings, patterns: readonly string[]): string[] {
  const lowered = patterns.map((pattern) => pattern.toLowerCase());
  const reply: string[] = [];
  const add = (name: string, value: () => string): void => {
    if (lowered.some((pattern) => matches(pattern, name))) reply.push(name, value());
  };
  for (const [name, key] of keyByParameter) add(name, () => formatSetting(settings, key));
  for (const [name, value] of CONSTANTS) add(name, () => value(settings));
  for (const [name, value] of acceptedValues(settings.redisSetting, lowered)) add(name, () => value);
  add(OUTPUT_LIMIT, () => formatOutputLimit(settings));
  return reply;
}

/** Either all parameters were set and `changed` says which settings differ now, or none was and `error` is the reply. */
export type ConfigSetResult =
  | { readonly ok: true; readonly changed: readonly SettingKey[] }
  | { readonly ok: false; readonly error: string };

/** What speaks against new sizes of the tiers; null = nothing. */
export type SizeCheck = (
  dramBytes: number,
  capacityBytes: number,
) => { readonly setting: 'dram' | 'capacity'; readonly reason: string } | null;

/** Changes `settings` in place. The error is a reply without its leading '-'. */
export function configSet(
  settings: Settings,
  pairs: readonly (readonly [name: string, value: string])[],
  checkSizes?: SizeCheck,
): ConfigSetResult {
  const next = { ...settings };
  const seen = new Set<string>();
  for (const [givenName, value] of pairs) {
    const name = givenName.toLowerCase();
    const isKnown = keyByParameter.has(name) || CONSTANTS.has(name) || name === OUTPUT_LIMIT || isAccepted(name);
    if (!isKnown) {
      return { ok: false, error: `ERR Unknown option or number of arguments for CONFIG SET - '${givenName}'` };
    }
    if (seen.has(name)) return failed(name, 'duplicate parameter');
    seen.add(name);
    const reason = setOne(next, name, value);
    if (reason !== undefined) return failed(name, reason);
  }
  const wasOpen = protectionProblems(settings).length > 0;
  const [problem] = wasOpen ? [] : protectionProblems(next);
  if (problem !== undefined) return failed(pairs[0][0].toLowerCase(), problem);

  const { dram, capacity } = next;
  if (dram !== settings.dram || capacity !== settings.capacity) {
    const sizes = checkSizes?.(dram, capacity) ?? null;
    if (sizes !== null) return failed(sizes.setting, sizes.reason);
  }

  const changed = settingKeys.filter((key) => formatSetting(settings, key) !== formatSetting(next, key));
  Object.assign(settings, next);
  return { ok: true, changed };
}

function failed(name: string, reason: string): ConfigSetResult {
  return { ok: false, error: `ERR CONFIG SET failed (possibly related to argument '${name}') - ${reason}` };
}

/** Sets one known parameter; returns why it cannot be set, or undefined. */
function setOne(settings: Settings, name: string, value: string): string | undefined {
  const constant = CONSTANTS.get(name);
  if (constant !== undefined)
    return value === constant(settings) ? undefined : (CANNOT[name] ?? "can't set immutable config");
  const key = keyByParameter.get(name);
  if (key !== undefined && !schema[key].live) {
    // Programs write back what they have read.
    return value === formatSetting(settings, key) ? undefined : "can't set immutable config";
  }
  try {
    if (isAccepted(name)) settings.redisSetting = acceptValue(settings.redisSetting, name, value);
    else if (key === undefined) assignOutputLimit(settings, value);
    else assignText(settings, key, value);
    return undefined;
  } catch (error) {
    if (!(error instanceof ValueError)) throw error;
    if (key === 'notifyKeyspaceEvents') return "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.";
    return inRedisWords(error.message);
  }
}

/** A ValueError's words as an error of CONFIG SET. */
function inRedisWords(message: string): string {
  if (message.startsWith('must be one of')) return `argument(s) ${message}`;
  return /^(must|couldn't) /.test(message) ? `argument ${message}` : message;
}

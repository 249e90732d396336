/**
 * A command line of memcached -> a Plan, as getopt reads it: -p 1, -p1, -vvA, --port=1, --port 1, -o a,b=1.
 *
 * Knows forms only; which options there are stands in memcached-options.ts.
 */
import { type MemcachedOption, OptionError, type Plan } from './memcached-option.js';
import { OPTIONS } from './memcached-options.js';

const PLAIN = OPTIONS.filter(({ name }) => !name.startsWith('-o '));
const BY_LETTER = new Map(PLAIN.map((option) => [option.name.slice(1), option]));
const BY_LONG = new Map(PLAIN.map((option) => [option.long, option]));
const EXTENDED = new Map(
  OPTIONS.filter(({ name }) => name.startsWith('-o ')).map((option) => [option.name.slice(3), option]),
);

export function emptyPlan(): Plan {
  return {
    flags: new Map(),
    memoryMib: 64,
    addresses: [],
    tcpPort: null,
    udpPort: null,
    verbosity: 0,
    isDaemon: false,
    pidFile: null,
    user: null,
    memoryFile: null,
    hasSasl: false,
    itemSizeMax: 1024 * 1024,
  };
}

/** Throws OptionError. */
export function parseMemcachedArguments(args: readonly string[]): Plan {
  const plan = emptyPlan();
  for (let i = 0; i < args.length; i++) {
    const arg = args[i];
    const takeNext = (name: string): string => {
      if (i + 1 >= args.length) throw new OptionError(`option requires an argument -- '${name}'`);
      return args[++i];
    };
    if (arg.startsWith('--')) applyLong(plan, arg.slice(2), takeNext);
    else if (arg.startsWith('-') && arg.length > 1) applyLetters(plan, arg.slice(1), takeNext);
    else throw new OptionError(`'${arg}' is no option`);
  }
  return plan;
}

function applyLong(plan: Plan, text: string, takeNext: (name: string) => string): void {
  const equals = text.indexOf('=');
  const name = equals < 0 ? text : text.slice(0, equals);
  const given = equals < 0 ? undefined : text.slice(equals + 1);
  if (name === 'extended') return applyExtended(plan, given ?? takeNext(name));
  const option = BY_LONG.get(name);
  if (option === undefined) throw new OptionError(`unrecognized option '--${name}'`);
  if (option.value === undefined) {
    if (given !== undefined) throw new OptionError(`option '--${name}' doesn't allow an argument`);
    option.apply(plan, '');
  } else {
    option.apply(plan, given ?? takeNext(name));
  }
}

function applyLetters(plan: Plan, letters: string, takeNext: (name: string) => string): void {
  for (let at = 0; at < letters.length; at++) {
    const letter = letters[at];
    const rest = letters.slice(at + 1);
    const take = (): string => (rest !== '' ? rest : takeNext(letter));
    if (letter === 'o') return applyExtended(plan, take());
    const option = BY_LETTER.get(letter);
    if (option === undefined) throw new OptionError(`invalid option -- '${letter}'`);
    if (option.value !== undefined) return option.apply(plan, take());
    option.apply(plan, '');
  }
}

function applyExtended(plan: Plan, list: string): void {
  for (const part of list.split(',').filter((text) => text !== '')) {
    const equals = part.indexOf('=');
    const name = equals < 0 ? part : part.slice(0, equals);
    const value = equals < 0 ? undefined : part.slice(equals + 1);
    const option: MemcachedOption | undefined = EXTENDED.get(name);
    if (option === undefined) throw new OptionError(`Illegal suboption "${name}"`);
    if (option.value !== undefined && value === undefined && option.isValueOptional !== true) {
      throw new OptionError(`Missing ${name} argument`);
    }
    option.apply(plan, value ?? '');
  }
}

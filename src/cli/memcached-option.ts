/**
 * What a command line of memcached amounts to, and the form of one declared option of it (memcached-options.ts lists them).
 */

/** What a command line of memcached asks for, in our terms. */
export interface Plan {
  /** Our flags, without the dashes: name -> value. */
  readonly flags: Map<string, string>;
  /** Arguments that need more than a flag. */
  memoryMib: number;
  addresses: string[];
  tcpPort: string | null;
  udpPort: string | null;
  verbosity: number;
  isDaemon: boolean;
  pidFile: string | null;
  user: string | null;
  memoryFile: string | null;
  hasSasl: boolean;
  itemSizeMax: number;
}

/** An option that cannot be: the message for the user. */
export class OptionError extends Error {
  override readonly name = 'OptionError';
}

export interface MemcachedOption {
  /** As typed: `-p`, or `-o idle_timeout`. */
  readonly name: string;
  readonly long?: string;
  /** Placeholder of the value; absent for switches. */
  readonly value?: string;
  /** The value may be left out (some -o options). */
  readonly isValueOptional?: boolean;
  readonly doc: string;
  /** What it is here, for the documentation: our flag, or words. */
  readonly ours: string;
  readonly apply: (plan: Plan, value: string) => void;
}

export function flag(name: string): (plan: Plan, value: string) => void {
  return (plan, value) => void plan.flags.set(name, value);
}

export function fixed(name: string, text: string): (plan: Plan) => void {
  return (plan) => void plan.flags.set(name, text);
}

export function count(what: string, least: number, set: (plan: Plan, value: number) => void) {
  return (plan: Plan, value: string): void => {
    const number = Number(value);
    if (!/^-?\d+$/.test(value) || number < least) throw new OptionError(`${what} must be at least ${least}`);
    set(plan, number);
  };
}

export function keep(key: 'tcpPort' | 'udpPort' | 'pidFile' | 'user' | 'memoryFile') {
  return (plan: Plan, value: string): void => {
    plan[key] = value;
  };
}

export function switchOn(key: 'isDaemon' | 'hasSasl') {
  return (plan: Plan): void => {
    plan[key] = true;
  };
}

export const NOTHING = (): void => undefined;

export function without(name: string, doc: string, why: string, value?: string, long?: string): MemcachedOption {
  return { name, long, value, isValueOptional: name.startsWith('-o'), doc, ours: `no effect: ${why}`, apply: NOTHING };
}

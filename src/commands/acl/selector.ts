/**
 * One set of rights of a user: which commands, on which keys, with which channels.
 *
 * A user has a root selector and any number of further ones; a command runs if one of them allows all of it. Invariant:
 * `describe()` gives rules that, applied to a new selector, make an equal one.
 */
import { Bytes } from '../../layout/bytes.js';
import type { Command } from '../command.js';
import { categoryBit } from '../server/command-docs.js';
import type { CommandTable } from '../table.js';

/** What a key pattern permits. */
export const enum Access {
  READ = 1,
  WRITE = 2,
  BOTH = 3,
}

export interface KeyPattern {
  readonly pattern: string;
  readonly bytes: Bytes;
  access: number;
}

export interface ChannelPattern {
  readonly pattern: string;
  readonly bytes: Bytes;
}

/** Why a rule was refused, in Redis's words. */
export const RuleError = {
  UNKNOWN: 'Unknown command or category name in ACL',
  SYNTAX: 'Syntax error',
  AFTER_ALL_KEYS:
    "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try 'resetkeys' to start with an empty list of patterns",
  AFTER_ALL_CHANNELS:
    "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any effect. Try 'resetchannels' to start with an empty list of channels",
  NO_SUCH_PASSWORD: 'The password you are trying to remove from the user does not exist',
  BAD_HASH: 'The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters',
  ARGUMENT_OF_SUBCOMMAND: 'Allowing first-arg of a subcommand is not supported',
} as const;

/** Spaces and zero bytes would break the text form of rules. */
export function hasSpaces(text: string): boolean {
  return /[\s\0]/.test(text);
}

export class Selector {
  allKeys = false;
  allChannels: boolean;
  /** Every command, those of the future included. */
  allCommands = false;
  /** By Command.index: 1 = allowed. */
  readonly allowed: Uint8Array;
  /** Command index -> first arguments (lower case) with which a command that is not allowed may run all the same. */
  readonly firstArguments = new Map<number, string[]>();
  readonly keys: KeyPattern[] = [];
  readonly channels: ChannelPattern[] = [];

  private readonly table: CommandTable;
  /** True after +@all: rules take away from everything, instead of adding to nothing. */
  private startsWithAll = false;
  /** Rules about commands as they were given, the ones without effect left out: '+get', '-@slow', '+client|id'. */
  private rules: string[] = [];

  constructor(table: CommandTable, allChannels: boolean) {
    this.table = table;
    this.allowed = new Uint8Array(table.all.length);
    this.allChannels = allChannels;
  }

  /** Nothing that this selector could refuse. */
  get isUnrestricted(): boolean {
    return this.allCommands && this.allKeys && this.allChannels;
  }

  /** Applies one rule (a byte string); returns why it was refused, or null. */
  apply(rule: string): string | null {
    const word = rule.toLowerCase();
    switch (word) {
      case 'allkeys':
      case '~*':
        return this.setAllKeys(true);
      case 'resetkeys':
        return this.setAllKeys(false);
      case 'allchannels':
      case '&*':
        return this.setAllChannels(true);
      case 'resetchannels':
        return this.setAllChannels(false);
      case 'allcommands':
      case '+@all':
        return this.setAllCommands(true);
      case 'nocommands':
      case '-@all':
        return this.setAllCommands(false);
    }
    const sign = rule[0];
    if (sign === '~' || sign === '%') return this.addKeys(rule);
    if (sign === '&') return this.addChannels(rule.slice(1));
    if (sign !== '+' && sign !== '-') return RuleError.SYNTAX;
    if (rule[1] === '@') return this.changeCategory(word, sign === '+');
    return sign === '+' ? this.allow(word.slice(1)) : this.forbid(word.slice(1));
  }

  /** Keys, channels and commands as rules: what ACL LIST shows. */
  describe(): string {
    const channels = this.allChannels
      ? '&*'
      : ['resetchannels', ...this.channels.map((c) => `&${c.pattern}`)].join(' ');
    const keys = this.describeKeys();
    return `${keys === '' ? '' : `${keys} `}${channels} ${this.describeCommands()}`;
  }

  describeKeys(): string {
    return this.allKeys ? '~*' : this.keys.map(({ access, pattern }) => `${KEY_SIGNS[access]}${pattern}`).join(' ');
  }

  describeChannels(): string {
    return this.allChannels ? '&*' : this.channels.map(({ pattern }) => `&${pattern}`).join(' ');
  }

  describeCommands(): string {
    return [this.startsWithAll ? '+@all' : '-@all', ...this.rules].join(' ');
  }

  private setAllKeys(all: boolean): null {
    this.allKeys = all;
    this.keys.length = 0;
    return null;
  }

  private setAllChannels(all: boolean): null {
    this.allChannels = all;
    this.channels.length = 0;
    return null;
  }

  private setAllCommands(all: boolean): null {
    this.allCommands = all;
    this.startsWithAll = all;
    this.allowed.fill(all ? 1 : 0);
    this.rules = [];
    this.firstArguments.clear();
    return null;
  }

  /** '~pattern', '%R~pattern', '%W~pattern', '%RW~pattern'. */
  private addKeys(rule: string): string | null {
    if (this.allKeys) return RuleError.AFTER_ALL_KEYS;
    const match = /^(?:~|%([rw]|rw|wr)~)(.*)$/is.exec(rule);
    if (match === null || hasSpaces(match[2])) return RuleError.SYNTAX;
    const [, letters = 'rw', pattern] = match;
    const lower = letters.toLowerCase();
    const access = (lower.includes('r') ? Access.READ : 0) | (lower.includes('w') ? Access.WRITE : 0);
    const known = this.keys.find((key) => key.pattern === pattern);
    if (known !== undefined) known.access |= access;
    else this.keys.push({ pattern, bytes: bytesOf(pattern), access });
    return null;
  }

  private addChannels(pattern: string): string | null {
    if (this.allChannels) return RuleError.AFTER_ALL_CHANNELS;
    if (hasSpaces(pattern)) return RuleError.SYNTAX;
    if (!this.channels.some((channel) => channel.pattern === pattern)) {
      this.channels.push({ pattern, bytes: bytesOf(pattern) });
    }
    return null;
  }

  private changeCategory(rule: string, allow: boolean): string | null {
    const bit = categoryBit(rule.slice(2));
    if (bit === 0) return RuleError.UNKNOWN;
    this.keepRule(rule.slice(1), allow);
    for (const command of this.table.all) if ((command.categories & bit) !== 0) this.change(command, allow);
    return null;
  }

  /** 'get', 'config|get', or 'select|0': the first argument of a command that is not a container. */
  private allow(name: string): string | null {
    const bar = name.lastIndexOf('|');
    const command = this.table.findByName(bar < 0 ? name : name.slice(0, bar));
    if (command === null) return RuleError.UNKNOWN;
    if (bar >= 0) {
      const argument = name.slice(bar + 1);
      if (command.parent !== null) return RuleError.ARGUMENT_OF_SUBCOMMAND;
      if (argument === '') return RuleError.SYNTAX;
      if (!command.container) return this.allowFirstArgument(command, argument);
    }
    const wanted = bar < 0 ? command : this.table.findByName(name);
    if (wanted === null) return RuleError.UNKNOWN;
    this.change(wanted, true);
    this.keepRule(wanted.fullName, true);
    return null;
  }

  private allowFirstArgument(command: Command, argument: string): null {
    const known = this.firstArguments.get(command.index);
    if (known === undefined) this.firstArguments.set(command.index, [argument]);
    else if (!known.includes(argument)) known.push(argument);
    this.keepRule(`${command.fullName}|${argument}`, true);
    return null;
  }

  private forbid(name: string): string | null {
    const command = this.table.findByName(name);
    if (command === null) return RuleError.UNKNOWN;
    this.change(command, false);
    this.keepRule(command.fullName, false);
    return null;
  }

  /** A container's rights are those of all its subcommands. */
  private change(command: Command, allow: boolean): void {
    this.allowed[command.index] = allow ? 1 : 0;
    if (!allow) this.allCommands = false;
    this.firstArguments.delete(command.index);
    for (const sub of command.subcommands) this.allowed[sub.index] = allow ? 1 : 0;
  }

  /** Later rules replace earlier ones about the same command or category; those about a command, its subcommands' too. */
  private keepRule(body: string, allow: boolean): void {
    this.rules = this.rules.filter((rule) => rule.slice(1) !== body && !rule.slice(1).startsWith(`${body}|`));
    this.rules.push(`${allow ? '+' : '-'}${body}`);
  }
}

const KEY_SIGNS = ['', '%R~', '%W~', '~'];

function bytesOf(text: string): Bytes {
  return Bytes.from(Buffer.from(text, 'latin1'));
}

/**
 * The command table: all commands and subcommands, found by the bytes of a request without allocating.
 *
 * A word is hashed by its length and its case-folded bytes into an open-addressed table of commands. Invariant: two
 * different commands of one level have different names, and every name is lower case ASCII.
 */
import type { Bytes } from '../layout/bytes.js';
import { COMMANDS_MAX } from '../layout/counters.js';
import { Command } from './command.js';
import type { CommandSpec } from './spec.js';

/** Bytes of a word that are compared as one integer. */
const SHORT_BYTES = 4;

export class CommandTable {
  /** All commands by index, subcommands included. */
  readonly all: readonly Command[];
  /** Top level, in order of declaration. */
  readonly commands: readonly Command[];

  private readonly top: WordTable;
  private readonly subcommands: (WordTable | null)[];
  /** The last short word that was looked up, as it was written: requests of a kind come in rows. */
  private lastWord = 0;
  private lastLength = 0;
  private last: Command | null = null;

  constructor(families: readonly (readonly CommandSpec[])[]) {
    const all: Command[] = [];
    const commands: Command[] = [];
    for (const family of families) {
      for (const spec of family) {
        const command = new Command(spec, all.length, null);
        all.push(command);
        commands.push(command);
        for (const sub of spec.subcommands ?? []) {
          const child = new Command(sub, all.length, command);
          all.push(child);
          command.subcommands.push(child);
        }
      }
    }
    if (all.length > COMMANDS_MAX) throw new Error(`${all.length} commands; the counters hold ${COMMANDS_MAX}`);
    this.all = all;
    this.commands = commands;
    this.top = new WordTable(commands);
    this.subcommands = all.map((command) =>
      command.subcommands.length > 0 ? new WordTable(command.subcommands) : null,
    );
  }

  /** The top-level command of this name, or null. */
  find(bytes: Bytes, offset: number, length: number): Command | null {
    if (length > SHORT_BYTES || length === 0 || offset + SHORT_BYTES > bytes.length)
      return this.top.find(bytes.u8, offset, length);
    const word = bytes.view.getInt32(offset, true) & (-1 >>> ((SHORT_BYTES - length) * 8));
    if (word === this.lastWord && length === this.lastLength) return this.last;
    this.lastWord = word;
    this.lastLength = length;
    this.last = this.top.find(bytes.u8, offset, length);
    return this.last;
  }

  /** The subcommand of a container, or null. */
  findSubcommand(container: Command, bytes: Bytes, offset: number, length: number): Command | null {
    const table = this.subcommands[container.index];
    return table === null ? null : table.find(bytes.u8, offset, length);
  }

  /** By text, 'config|get' included, in any case. Slow path. */
  findByName(name: string): Command | null {
    const lower = name.toLowerCase();
    return this.all.find((command) => command.fullName === lower) ?? null;
  }
}

/** One level of names. */
class WordTable {
  private readonly slots: (Command | null)[];
  private readonly names: (Uint8Array | null)[];
  private readonly mask: number;

  constructor(commands: readonly Command[]) {
    let size = 16;
    while (size < commands.length * 4) size *= 2;
    this.mask = size - 1;
    this.slots = new Array<Command | null>(size).fill(null);
    this.names = new Array<Uint8Array | null>(size).fill(null);
    for (const command of commands) {
      const name = Buffer.from(command.spec.name, 'latin1');
      let slot = hashWord(name, 0, name.length) & this.mask;
      while (this.names[slot] !== null) {
        if (wordEquals(this.names[slot]!, name, 0, name.length))
          throw new Error(`duplicate command ${command.fullName}`);
        slot = (slot + 1) & this.mask;
      }
      this.slots[slot] = command;
      this.names[slot] = Uint8Array.from(name);
    }
  }

  find(u8: Uint8Array, offset: number, length: number): Command | null {
    let slot = hashWord(u8, offset, length) & this.mask;
    for (let name = this.names[slot]; name !== null; name = this.names[slot]) {
      if (wordEquals(name, u8, offset, length)) return this.slots[slot];
      slot = (slot + 1) & this.mask;
    }
    return null;
  }
}

/** Names differ in length and in their first and last bytes mostly; three bytes tell most of them apart. */
function hashWord(u8: Uint8Array, offset: number, length: number): number {
  if (length === 0) return 0;
  const first = u8[offset] | 0x20;
  const middle = u8[offset + (length >> 1)] | 0x20;
  const last = u8[offset + length - 1] | 0x20;
  return (Math.imul(first, 31) + Math.imul(middle, 577) + Math.imul(last, 7_919) + length * 131) ^ (first << 7);
}

function wordEquals(name: Uint8Array, u8: Uint8Array, offset: number, length: number): boolean {
  if (name.length !== length) return false;
  for (let i = 0; i < length; i++) {
    const byte = u8[offset + i];
    const wanted = name[i];
    if (byte !== wanted && !(byte >= 0x41 && byte <= 0x5a && (byte | 0x20) === wanted)) return false;
  }
  return true;
}

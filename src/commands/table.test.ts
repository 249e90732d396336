import { describe, expect, it } from 'vitest';
import { Bytes } from '../layout/bytes.js';
import { createCommandTable } from './families.js';
import { syntaxOf } from './server/help.js';
import { type CommandSpec, Flag, KeyUse } from './spec.js';
import { CommandTable } from './table.js';

const table = createCommandTable();

function find(name: string): string | undefined {
  const bytes = Bytes.from(`xx${name}yy`);
  return table.find(bytes, 2, name.length)?.fullName;
}

describe('command table', () => {
  it('finds every command in any case, and nothing else', () => {
    for (const command of table.commands) {
      const { name } = command.spec;
      expect(find(name)).toBe(name);
      expect(find(name.toUpperCase())).toBe(name);
      expect(find(`${name}~`)).toBeUndefined();
      expect(find(name.slice(0, -1))).not.toBe(name);
    }
    expect(find('')).toBeUndefined();
    // Bytes that differ from letters in the case bit only.
    expect(find('\x07et')).toBeUndefined();
    expect(find('client\r')).toBeUndefined();
  });

  it('finds subcommands within their container', () => {
    const config = table.findByName('config');
    const bytes = Bytes.from('ReSetStat');
    expect(table.findSubcommand(config!, bytes, 0, bytes.length)?.fullName).toBe('config|resetstat');
    expect(table.findByName('CONFIG|GET')?.fullName).toBe('config|get');
  });

  it('refuses two commands of one name', () => {
    const spec: CommandSpec = { ...table.commands[0].spec };
    expect(() => new CommandTable([[spec, spec]])).toThrow(/duplicate/);
  });
});

describe('declarations', () => {
  it.each(table.all.map((command) => [command.fullName, command] as const))('%s is consistent', (_name, command) => {
    const { spec } = command;
    expect(spec.name).toMatch(/^[a-z][a-z0-9_-]*$/);
    expect(spec.arity).not.toBe(0);
    expect(spec.since).toMatch(/^\d+\.\d+\.\d+$/);
    expect(spec.summary).toMatch(/^[A-Z].*[^.\s]\.$/);
    expect(spec.run !== undefined || spec.subcommands !== undefined).toBe(true);
    expect(command.has(Flag.WRITE) && command.has(Flag.READONLY)).toBe(false);
    if (command.has(Flag.DENYOOM)) expect(command.has(Flag.WRITE)).toBe(true);
    for (const key of command.keys) {
      const kinds = [KeyUse.RO, KeyUse.RW, KeyUse.OW, KeyUse.RM].filter((bit) => (key.use & bit) !== 0);
      expect(kinds.length + (key.use & KeyUse.NOT_KEY ? 1 : 0)).toBe(1);
    }
    // Whoever changes keys says so; whoever has keys reads or writes (WATCH alone does neither). PFCOUNT keeps its result in the key.
    if (command.has(Flag.READONLY) && !command.has(Flag.MAY_REPLICATE))
      expect(command.keys.every((key) => (key.use & KeyUse.RO) !== 0)).toBe(true);
    if (spec.stage !== undefined) expect(command.has(Flag.DENYOOM)).toBe(true);
    expect(() => syntaxOf(spec.args ?? [])).not.toThrow();
  });
});

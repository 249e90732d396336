/**
 * The HELP subcommand that every container has, made from the declarations of its siblings, and argument syntax as text.
 */
import type { ArgumentSpec } from '../arguments.js';
import type { Context } from '../context.js';
import { type Category, type CommandGroup, type CommandSpec, Flag } from '../spec.js';

/** Declares HELP for a container. */
export function helpCommand(container: string, group: CommandGroup, categories: Category, since: string): CommandSpec {
  return {
    name: 'help',
    arity: 2,
    flags: Flag.LOADING | Flag.STALE,
    categories,
    since,
    group,
    summary: `Lists the subcommands of ${container.toUpperCase()}.`,
    complexity: 'O(1)',
    run: help,
  };
}

function help(context: Context): void {
  const container = context.command.parent;
  if (container === null) throw new Error('HELP outside a container');
  const name = container.spec.name.toUpperCase();
  const lines = [`${name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:`];
  const others = container.subcommands.filter((command) => command.spec.name !== 'help');
  for (const { spec } of others) {
    lines.push(`${spec.name.toUpperCase()} ${syntaxOf(spec.args ?? [])}`.trimEnd(), `    ${spec.summary}`);
  }
  lines.push('HELP', '    Print this help.');
  context.reply.array(lines.length);
  for (const line of lines) context.reply.simple(line);
}

/** 'key value [NX | XX] [EX seconds]' */
export function syntaxOf(args: readonly ArgumentSpec[]): string {
  return args.map(syntaxOfOne).join(' ');
}

function syntaxOfOne(argument: ArgumentSpec): string {
  let text: string;
  if (argument.type === 'oneof') {
    text = (argument.args ?? []).map(syntaxOfOne).join('|');
    if (argument.optional !== true) text = `(${text})`;
  } else if (argument.type === 'block') {
    text = syntaxOf(argument.args ?? []);
  } else if (argument.type === 'pure-token') {
    text = argument.token ?? argument.name;
  } else {
    text = argument.token === undefined ? `<${argument.name}>` : `${argument.token} <${argument.name}>`;
  }
  if (argument.multiple === true) text = `${text} [${text} ...]`;
  return argument.optional === true ? `[${text}]` : text;
}

/**
 * ACL: one user, `default`, who may do everything once logged in. Reading commands answer for it; changing ones say so.
 */
import { randomBytes } from 'node:crypto';
import { type ArgumentSpec, integerArg, optional, stringArg } from './arguments.js';
import { CATEGORY_NAMES, categoryBit } from './command-docs.js';
import type { Context } from './context.js';
import { helpCommand } from './help.js';
import { Category, type CommandSpec, Flag } from './spec.js';

const PLAIN = Flag.NOSCRIPT | Flag.LOADING | Flag.STALE;
const ADMIN = PLAIN | Flag.ADMIN;
const GENPASS_BITS = 256;
const GENPASS_BITS_MAX = 4096;

function whoAmI(context: Context): void {
  context.reply.bulkString('default');
}

function users(context: Context): void {
  context.reply.array(1);
  context.reply.bulkString('default');
}

/** Passwords are not shown, not even hashed: there is one, and who may read this knows it. */
function list(context: Context): void {
  const password = context.environment.settings.requirepass === '' ? 'nopass' : '#<hidden>';
  context.reply.array(1);
  context.reply.bulkString(`user default on ${password} sanitize-payload ~* &* +@all`);
}

function getUser(context: Context): void {
  const { reply } = context;
  if (context.argString(2) !== 'default') return reply.nil();
  reply.map(6);
  reply.bulkString('flags');
  const flags = context.environment.settings.requirepass === '' ? ['on', 'nopass'] : ['on'];
  reply.set(flags.length);
  for (const flag of flags) reply.bulkString(flag);
  reply.bulkString('passwords');
  reply.array(0);
  reply.bulkString('commands');
  reply.bulkString('+@all');
  reply.bulkString('keys');
  reply.bulkString('~*');
  reply.bulkString('channels');
  reply.bulkString('&*');
  reply.bulkString('selectors');
  reply.array(0);
}

function cat(context: Context): void {
  const { reply } = context;
  if (context.argc > 3) return reply.error("ERR wrong number of arguments for 'acl|cat' command");
  if (context.argc === 2) {
    reply.array(CATEGORY_NAMES.length);
    for (const name of CATEGORY_NAMES) reply.bulkString(name);
    return;
  }
  const name = context.argString(2);
  const bit = categoryBit(name);
  if (bit === 0) return reply.error(`ERR Unknown category '${name}'`);
  const members = context.executor.table.all.filter((command) => (command.categories & bit) !== 0);
  reply.array(members.length);
  for (const command of members) reply.bulkString(command.fullName);
}

function genPass(context: Context): void {
  const { reply } = context;
  if (context.argc > 3) return reply.error("ERR wrong number of arguments for 'acl|genpass' command");
  const bits = context.argc === 3 ? context.argInteger(2) : GENPASS_BITS;
  if (!(bits > 0 && bits <= GENPASS_BITS_MAX)) {
    return reply.error(
      'ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096',
    );
  }
  const digits = Math.ceil(bits / 4);
  reply.bulkString(
    randomBytes(Math.ceil(digits / 2))
      .toString('hex')
      .slice(0, digits),
  );
}

function log(context: Context): void {
  if (context.argc === 3 && context.argIs(2, 'RESET')) return context.reply.ok();
  context.reply.array(0);
}

function refuse(context: Context): void {
  context.reply.error(
    "ERR this version has one user, 'default': its password is the setting requirepass, its rights cannot be changed",
  );
}

function sub(
  name: string,
  arity: number,
  flags: number,
  summary: string,
  args: readonly ArgumentSpec[],
  run: (context: Context) => void,
): CommandSpec {
  const categories = Category.NONE;
  return { name, arity, flags, categories, since: '6.0.0', group: 'server', summary, complexity: 'O(1)', args, run };
}

const USERNAME = stringArg('username');

export const aclCommands: readonly CommandSpec[] = [
  {
    name: 'acl',
    arity: -2,
    flags: 0,
    categories: Category.NONE,
    since: '6.0.0',
    group: 'server',
    summary: 'Commands about users and their rights.',
    complexity: 'Depends on the subcommand',
    subcommands: [
      sub('whoami', 2, PLAIN, 'Returns the user of this connection.', [], whoAmI),
      sub('users', 2, ADMIN, 'Returns the names of the users.', [], users),
      sub('list', 2, ADMIN, 'Returns the rules of the users.', [], list),
      sub('getuser', 3, ADMIN, 'Describes a user.', [USERNAME], getUser),
      sub('cat', -2, PLAIN, 'Returns the categories, or the commands of one.', [optional(stringArg('category'))], cat),
      sub('genpass', -2, PLAIN, 'Returns a random password.', [optional(integerArg('bits'))], genPass),
      sub('log', -2, ADMIN, 'Returns refused attempts; none is kept.', [optional(stringArg('operation'))], log),
      sub('setuser', -3, ADMIN, 'Makes or changes a user: not in this version.', [USERNAME], refuse),
      sub('deluser', -3, ADMIN, 'Removes a user: not in this version.', [USERNAME], refuse),
      helpCommand('acl', 'server', Category.NONE, '6.0.0'),
    ],
  },
];

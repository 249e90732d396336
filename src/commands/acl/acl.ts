/**
 * ACL: users and their rights, read from this worker's copy and changed through the main thread, which tells every worker.
 *
 * Invariant: passwords never leave in clear, and no reply tells a client more than its user may know.
 */
import { crypto } from '../../native/crypto.js';
import type { Reply } from '../../protocol/resp/reply.js';
import { type ArgumentSpec, integerArg, oneOf, optional, stringArg, tokenArg } from '../arguments.js';
import type { Context } from '../context.js';
import { NOT_INTEGER, wrongArity } from '../errors.js';
import { CATEGORY_NAMES, categoryBit } from '../server/command-docs.js';
import { helpCommand } from '../server/help.js';
import { Category, type CommandSpec, Flag } from '../spec.js';
import { type AccessEntry, mergeEntries } from './access.js';
import { fullRefusalText } from './authorize.js';
import { decide, Verdict } from './check.js';
import type { Selector } from './selector.js';
import { DEFAULT_USER } from './users.js';

const PLAIN = Flag.NOSCRIPT | Flag.LOADING | Flag.STALE;
const ADMIN = PLAIN | Flag.ADMIN;
/** Answers come in a later turn, which a transaction cannot wait for. */
const ASKING = ADMIN | Flag.NO_MULTI;
const GENPASS_BITS = 256;
const GENPASS_BITS_MAX = 4096;
const LOG_ENTRIES = 10;

function whoAmI(context: Context): void {
  context.reply.bulkString(context.client.user.name);
}

function users(context: Context): void {
  const all = context.environment.users.all();
  context.reply.array(all.length);
  for (const user of all) context.reply.bulkString(user.name);
}

function list(context: Context): void {
  const lines = context.environment.users.lines();
  context.reply.array(lines.length);
  for (const line of lines) context.reply.bulkString(`user ${line}`);
}

function getUser(context: Context): void {
  const { reply } = context;
  const user = context.environment.users.get(context.argString(2));
  if (user === undefined) return reply.nil();
  const [root, ...others] = user.selectors;
  reply.map(6);
  reply.bulkString('flags');
  const { flags } = user;
  reply.set(flags.length);
  for (const flag of flags) reply.bulkString(flag);
  reply.bulkString('passwords');
  reply.array(user.passwords.length);
  for (const hash of user.passwords) reply.bulkString(hash);
  replySelector(reply, root);
  reply.bulkString('selectors');
  reply.array(others.length);
  for (const selector of others) {
    reply.map(3);
    replySelector(reply, selector);
  }
}

function replySelector(reply: Reply, selector: Selector): void {
  reply.bulkString('commands');
  reply.bulkString(selector.describeCommands());
  reply.bulkString('keys');
  reply.bulkString(selector.describeKeys());
  reply.bulkString('channels');
  reply.bulkString(selector.describeChannels());
}

function setUser(context: Context): void {
  const rules: string[] = [];
  for (let i = 3; i < context.argc; i++) rules.push(context.argString(i));
  context.askMain('userSet', { name: context.argString(2), rules }, (error) => finish(context, error));
}

function delUser(context: Context): void {
  const { reply } = context;
  const names: string[] = [];
  for (let i = 2; i < context.argc; i++) names.push(context.argString(i));
  if (names.includes(DEFAULT_USER)) return reply.error("ERR The 'default' user cannot be removed");
  context.askMain('usersRemove', names, (count) => reply.integer(count));
}

function load(context: Context): void {
  context.askMain('usersLoad', null, (error) => finish(context, error));
}

function save(context: Context): void {
  context.askMain('usersSave', null, (error) => finish(context, error));
}

function finish(context: Context, error: string | null): void {
  if (error === null) context.reply.ok();
  else context.reply.error(error);
}

function dryRun(context: Context): void {
  const { reply, executor } = context;
  const name = context.argString(2);
  const user = context.environment.users.get(name);
  if (user === undefined) return reply.error(`ERR User '${name}' not found`);
  const word = context.argString(3);
  context.shift(3);
  const command = executor.lookup();
  if (command === null) return reply.error(`ERR Command '${word}' not found`);
  if (!command.accepts(context.argc)) return reply.error(wrongArity(command.fullName));
  const decision = decide(user, command, context);
  if (decision.verdict === Verdict.ALLOWED) reply.ok();
  else reply.bulkString(fullRefusalText(context, user, command, decision));
}

function cat(context: Context): void {
  const { reply } = context;
  if (context.argc > 3) return reply.error(wrongSubcommand(context));
  if (context.argc === 2) {
    reply.array(CATEGORY_NAMES.length);
    for (const name of CATEGORY_NAMES) reply.bulkString(name);
    return;
  }
  const name = context.argString(2);
  const bit = categoryBit(name);
  if (bit === 0) return reply.error(`ERR Unknown category '${name.slice(0, 128)}'`);
  const members = context.executor.table.all.filter((command) => (command.categories & bit) !== 0);
  reply.array(members.length);
  for (const command of members) reply.bulkString(command.fullName);
}

function genPass(context: Context): void {
  const { reply } = context;
  if (context.argc > 3) return reply.error(wrongSubcommand(context));
  const bits = context.argc === 3 ? context.argInteger(2) : GENPASS_BITS;
  if (Number.isNaN(bits)) return reply.error(NOT_INTEGER);
  if (!(bits > 0 && bits <= GENPASS_BITS_MAX)) {
    return reply.error(
      'ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096',
    );
  }
  const digits = Math.ceil(bits / 4);
  reply.bulkString(
    crypto()
      .randomBytes(Math.ceil(digits / 2))
      .toString('hex')
      .slice(0, digits),
  );
}

function log(context: Context): void {
  const { reply, nowMs } = context;
  if (context.argc > 3) return reply.error(wrongSubcommand(context));
  if (context.argc === 3 && context.argIs(2, 'RESET')) {
    return context.askWorkers('accessLogReset', null, () => reply.ok());
  }
  const count = context.argc === 3 ? context.argInteger(2) : LOG_ENTRIES;
  if (Number.isNaN(count)) return reply.error(NOT_INTEGER);
  const capacity = context.environment.settings.acllogMaxLen;
  context.askWorkers('accessLogGet', null, (logs) => {
    const entries = mergeEntries(logs, capacity).slice(0, Math.max(0, count));
    reply.array(entries.length);
    for (const entry of entries) replyEntry(reply, entry, nowMs);
  });
}

function replyEntry(reply: Reply, entry: AccessEntry, nowMs: number): void {
  reply.map(10);
  reply.bulkString('count');
  reply.integer(entry.count);
  for (const field of ['reason', 'context', 'object', 'username'] as const) {
    reply.bulkString(field);
    reply.bulkString(entry[field]);
  }
  reply.bulkString('age-seconds');
  reply.double(Math.max(0, nowMs - entry.updatedMs) / 1000);
  reply.bulkString('client-info');
  reply.bulkString(entry.client);
  reply.bulkString('entry-id');
  reply.integer(entry.id);
  reply.bulkString('timestamp-created');
  reply.integer(entry.createdMs);
  reply.bulkString('timestamp-last-updated');
  reply.integer(entry.updatedMs);
}

/** What Redis says to a subcommand with too many words. */
function wrongSubcommand(context: Context): string {
  return `ERR unknown subcommand or wrong number of arguments for '${context.argString(1).slice(0, 128)}'. Try ACL HELP.`;
}

function sub(
  name: string,
  arity: number,
  flags: number,
  summary: string,
  args: readonly ArgumentSpec[],
  run: (context: Context) => void,
  tips?: readonly string[],
): CommandSpec {
  const categories = Category.NONE;
  return {
    name,
    arity,
    flags,
    categories,
    since: '6.0.0',
    group: 'server',
    summary,
    complexity: 'O(1)',
    args,
    tips,
    run,
  };
}

const USERNAME = stringArg('username');
const USERNAMES = stringArg('username', { multiple: true });
const RULES = optional(stringArg('rule', { multiple: true }));
const ALL_NODES = ['request_policy:all_nodes', 'response_policy:all_succeeded'];
const LOG_OPERATION = oneOf('operation', [integerArg('count'), tokenArg('RESET')], { optional: true });

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
      sub('log', -2, ADMIN | Flag.ASKS, 'Returns refused requests and failed logins.', [LOG_OPERATION], log),
      sub('setuser', -3, ASKING, 'Makes or changes a user.', [USERNAME, RULES], setUser, ALL_NODES),
      sub('deluser', -3, ASKING, 'Removes users; their connections end.', [USERNAMES], delUser, ALL_NODES),
      sub('load', 2, ASKING, 'Reads the users from the ACL file.', [], load),
      sub('save', 2, ASKING, 'Writes the users into the ACL file.', [], save, ALL_NODES),
      {
        ...sub(
          'dryrun',
          -4,
          ADMIN,
          'Says whether a user may run a command, without running it.',
          [USERNAME, stringArg('command'), optional(stringArg('arg', { multiple: true }))],
          dryRun,
        ),
        since: '7.0.0',
      },
      helpCommand('acl', 'server', Category.NONE, '6.0.0'),
    ],
  },
];

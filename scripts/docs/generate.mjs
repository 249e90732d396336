/**
 * The reference pages of the documentation, made from what the program itself declares: settings, commands, errors.
 *
 * They are written into docs/reference and not committed: a page cannot then differ from the program. Needs dist/.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../prepare.mjs';
import { MEMCACHED_COMMANDS, REPLY_CODES } from './words.mjs';

export const REFERENCE = join(ROOT, 'docs/reference');

const load = (path) => import(new URL(`../../dist/${path}.js`, import.meta.url).href);

/** Text in a cell: Markdown's and Vue's own signs mean nothing there. */
function cell(text) {
  return String(text).replaceAll('|', '\\|').replaceAll('<', '&lt;').replaceAll('{{', '&#123;{').replaceAll('\n', ' ');
}

function table(head, rows) {
  const line = (cells) => `| ${cells.map(cell).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

function page(title, ...parts) {
  return `# ${title}\n\n${parts.join('\n\n')}\n`;
}

function words(table_, name, what) {
  const text = table_[name];
  if (text === undefined) throw new Error(`scripts/docs/words.mjs has nothing for the ${what} ${name}`);
  return text;
}

async function configuration() {
  const { schema, settingKeys, settingName, environmentName } = await load('config/schema');
  const groups = groupBy(settingKeys, (key) => schema[key].group);
  const sections = [...groups].map(([group, keys]) => {
    const entries = keys.map((key) => {
      const { kind, default: value, doc, live, redisNames } = schema[key];
      const shown = kind.show(value);
      const facts = [`default ${shown === '' ? 'empty' : `\`${shown}\``}`];
      if (kind.range !== '') facts.push(kind.range);
      facts.push(live ? 'changes while the server runs' : 'fixed at the start');
      if (redisNames.length > 0) facts.push(`CONFIG name ${redisNames.map((name) => `\`${name}\``).join(', ')}`);
      return [
        `### ${settingName(key)}`,
        doc.replaceAll('<', '&lt;'),
        `\`--${settingName(key)} ${kind.placeholder}\`, \`${environmentName(key)}\`: ${facts.join('; ')}.`,
      ].join('\n\n');
    });
    return `## ${group}\n\n${entries.join('\n\n')}`;
  });
  return page(
    'Configuration',
    'Each setting is a flag of `entresol serve`, a variable of the environment, or a line of a TOML file (`--config FILE.toml`, `ENTRESOL_CONFIG`) under its name. A flag wins over the environment, the environment over the file. Sizes: `1gb` = `1GiB` = 1024^3 bytes, `1g` = 1000^3. Where a CONFIG name is given, `CONFIG GET` and `CONFIG SET` use it; elsewhere the name of the setting.',
    ...sections,
  );
}

function groupBy(items, keyOf) {
  const groups = new Map();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return groups;
}

/** Stands in the list for requests that are no command. */
const UNNAMED = 'unknown';

/** An arity counts the command's own words too, as in COMMAND INFO; a negative one is a least. */
function argumentCount(arity, wordCount) {
  const count = Math.max(0, Math.abs(arity) - wordCount);
  return arity < 0 ? `${count} or more` : String(count);
}

async function redisCommands() {
  const { createCommandTable } = await load('commands/families');
  const rowsOf = (command) => {
    const { spec, fullName, subcommands } = command;
    const name = fullName.replace('|', ' ').toUpperCase();
    const row = [
      name,
      spec.summary,
      argumentCount(spec.arity, name.split(' ').length),
      spec.complexity ?? '',
      spec.since,
    ];
    return [row, ...(subcommands ?? []).flatMap(rowsOf)];
  };
  const groups = groupBy(createCommandTable().commands, (command) => command.spec.group);
  const sections = [...groups].map(([group, commands]) => {
    const rows = commands.flatMap(rowsOf).sort((a, b) => (a[0] < b[0] ? -1 : 1));
    return `## ${group}\n\n${table(['command', 'what it does', 'arguments', 'time', 'since Redis'], rows)}`;
  });
  return page(
    'Redis commands',
    '`COMMAND DOCS` of the server says the same. What differs from Redis: [Redis](../redis.md).',
    ...sections,
  );
}

async function memcachedCommands() {
  const { COMMAND_NAMES } = await load('protocol/memcached/command-names');
  const rows = COMMAND_NAMES.filter((name) => name !== UNNAMED).map((name) => [
    `\`${name}\``,
    `\`${words(MEMCACHED_COMMANDS, name, 'memcached command')}\``,
  ]);
  return page(
    'memcached commands',
    'Text and meta protocol. What differs from memcached: [memcached](../memcached.md).',
    table(['command', 'request'], rows),
  );
}

async function errors() {
  const { CACHE_ERRORS } = await load('embed/errors');
  const { POOL_ERRORS } = await load('store/errors');
  const { ERROR_CODES } = await load('protocol/resp/error-codes');
  const { Replies } = await load('protocol/memcached/replies');
  const codes = (entries) =>
    table(
      ['code', 'meaning'],
      Object.entries(entries).map(([code, text]) => [`\`${code}\``, text]),
    );
  const lines = Object.values(Replies)
    .map((bytes) => new TextDecoder().decode(bytes).trim())
    .filter((line) => /^[A-Z_]+ /.test(line));
  return page(
    'Errors',
    '## Replies of the Redis protocol',
    'The first word of an error reply. `INFO errorstats` counts each.',
    codes(Object.fromEntries(ERROR_CODES.map((code) => [code, words(REPLY_CODES, code, 'error code')]))),
    '## Replies of the memcached protocol',
    '`CLIENT_ERROR`: the request is at fault. `SERVER_ERROR`: the server could not do it; the connection stays usable. `ERROR` alone: no such command.',
    table(
      ['line'],
      [...new Set(lines)].sort().map((line) => [`\`${line}\``]),
    ),
    '## Starting, and opening a pool',
    'What `entresol serve` prints, and the `code` of a `PoolError` of the library. `ERR_CONFIG`: a setting cannot be used; each is named on a line of its own.',
    codes(POOL_ERRORS),
    '## The library',
    'The `code` of a `CacheError`.',
    codes(CACHE_ERRORS),
  );
}

async function findings() {
  const { FINDINGS } = await load('devices/findings');
  const rows = Object.entries(FINDINGS).map(([code, { level, meaning }]) => [`\`${code}\``, level, meaning]);
  return page(
    'Findings of doctor',
    'What `entresol doctor` may find ([the right place](../doctor.md)). An `error` makes the exit code 2, a `warning` 1; a `note` is advice.',
    table(['code', 'level', 'meaning'], rows),
  );
}

/** File name -> text. */
export async function referencePages() {
  return {
    'configuration.md': await configuration(),
    'redis-commands.md': await redisCommands(),
    'memcached-commands.md': await memcachedCommands(),
    'errors.md': await errors(),
    'findings.md': await findings(),
  };
}

export async function writeReference(folder = REFERENCE) {
  const pages = await referencePages();
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of Object.entries(pages)) writeFileSync(join(folder, name), text);
}

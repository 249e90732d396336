/** `entresol memcached -h`, and the table of options in docs/memcached.md: both from the table of options. */
import { OPTIONS } from './memcached-options.js';

const NAME_COLUMNS = 34;

export function memcachedHelp(): string {
  const lines = OPTIONS.map(({ name, long, value, doc }) => {
    const names = long === undefined ? name : `${name}, --${long}`;
    const typed = value === undefined ? names : name.startsWith('-o') ? `${names}=${value}` : `${names} ${value}`;
    return `  ${typed.padEnd(NAME_COLUMNS)} ${doc}`;
  });
  return `Usage: entresol memcached [options]

Starts a server that takes memcached's place: memcached's protocols only, memcached's options and defaults. What each
option is in terms of entresol serve stands in docs/memcached.md.

Options:
${lines.join('\n')}
  ${'-h, --help'.padEnd(NAME_COLUMNS)} this text
  ${'-V, --version'.padEnd(NAME_COLUMNS)} version
  ${'-i, --license'.padEnd(NAME_COLUMNS)} licence`;
}

/** A Markdown table: option, what it says there, what it is here. */
export function optionTable(): string {
  const cell = (text: string): string => text.replaceAll('|', '\\|');
  const rows = OPTIONS.map(({ name, long, value, doc, ours }) => {
    const typed = value === undefined ? name : `${name}${name.startsWith('-o') ? '=' : ' '}${value}`;
    const names = long === undefined ? `\`${typed}\`` : `\`${typed}\`, \`--${long}\``;
    return `| ${cell(names)} | ${cell(doc)} | ${cell(ours)} |`;
  });
  return ['| option | in memcached | here |', '| --- | --- | --- |', ...rows].join('\n');
}

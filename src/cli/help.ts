/** --help texts; the list of options is made from the schema. */
import { environmentName, type Group, type SettingKey, schema, settingKeys, settingName } from '../config/index.js';

const LINE_COLUMNS = 100;
const DOC_COLUMN = 8;

export function generalHelp(): string {
  return `Entresol: a Redis- and memcached-compatible store for the memory tier between DRAM and disk.

Usage:
  entresol serve [options]     start the server
  entresol serve --help        all options, with examples
  entresol memcached [options] start it as memcached would, with memcached's own options (-p 11211 -m 64 ...)
  entresol doctor [PATH]       say what a path is good for as a pool, and what to do better
  entresol pool ACTION PATH    info, check, export, repair or upgrade: a pool without its server
  entresol hotspots [options]  what requests write to the store's memory, by structure and DIMM
  entresol --version

Try:
  entresol serve
  redis-cli -p 6379 SET greeting hello
  printf 'get greeting\\r\\nquit\\r\\n' | nc 127.0.0.1 11211`;
}

function wrap(text: string, indent: number): string {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && indent + line.length + 1 + word.length > LINE_COLUMNS) {
      lines.push(line);
      line = word;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  lines.push(line);
  return lines.map((part) => ' '.repeat(indent) + part).join('\n');
}

function optionHelp<K extends SettingKey>(key: K): string {
  const setting = schema[key];
  const value = setting.kind.show(setting.default);
  const facts = [`default ${value === '' ? 'empty' : value}`];
  if (setting.kind.range !== '') facts.push(setting.kind.range);
  if (setting.live) facts.push('CONFIG SET');
  return `  --${settingName(key)} ${setting.kind.placeholder}\n${wrap(`${setting.doc} [${facts.join('; ')}]`, DOC_COLUMN)}`;
}

export function serveHelp(): string {
  const groups = new Map<Group, string[]>();
  for (const key of settingKeys) {
    const { group } = schema[key];
    groups.set(group, [...(groups.get(group) ?? []), optionHelp(key)]);
  }
  const options = [...groups].map(([group, lines]) => `${group}:\n${lines.join('\n')}`).join('\n\n');
  return `Usage: entresol serve [options]

Starts the server. Without options: Redis on 127.0.0.1:6379, memcached on 127.0.0.1:11211, 128 MiB of DRAM and 1 GiB in ./data.

Examples:
  entresol serve --workers auto --dram 4GiB --capacity 64GiB --pool /var/lib/entresol
  entresol serve --port 0 --memcached-port 11211 --item-size-max 8mb
  entresol serve --tier dax --pool /mnt/pmem0/entresol --capacity 256GiB
  entresol serve --unix /run/entresol.sock --port 0 --memcached-port 0
  ENTRESOL_REQUIREPASS=secret entresol serve --bind 0.0.0.0
  entresol serve --config entresol.toml

Each option can be a flag (--dram 1gb), an environment variable (${environmentName('dram')}=1gb) or a line of the TOML file
(dram = "1gb"); a flag wins over the environment, the environment over the file. Sizes: 1gb = 1GiB = 1024^3,
1g = 1000^3, or bytes.

Options:
  --config FILE.toml
${wrap('Read settings from this file (also ENTRESOL_CONFIG). Keys are the names below without the dashes in front.', DOC_COLUMN)}
  --help

${options}`;
}

/**
 * Names of memcached commands -> CommandCode. Names are case-sensitive. The first four bytes, packed into one integer,
 * tell all commands of one length apart; longer names then have their rest compared.
 */
import { CommandCode } from './request.js';

/** Names of five bytes and more: rest after the fourth byte is compared with these. */
const LONG_NAMES = new Map<number, [name: string, code: CommandCode]>();

const MAX_NAME_BYTES = 'cache_memlimit'.length;

function pack(name: string): number {
  let packed = 0;
  for (let i = 0; i < 4; i++) packed = (packed << 8) | name.charCodeAt(i);
  return packed;
}

/** In order of CommandCode. */
const TABLE: readonly (readonly [string, CommandCode])[] = [
  ['get', CommandCode.GET],
  ['gets', CommandCode.GETS],
  ['gat', CommandCode.GAT],
  ['gats', CommandCode.GATS],
  ['set', CommandCode.SET],
  ['add', CommandCode.ADD],
  ['replace', CommandCode.REPLACE],
  ['append', CommandCode.APPEND],
  ['prepend', CommandCode.PREPEND],
  ['cas', CommandCode.CAS],
  ['ms', CommandCode.META_SET],
  ['mg', CommandCode.META_GET],
  ['md', CommandCode.META_DELETE],
  ['ma', CommandCode.META_ARITHMETIC],
  ['mn', CommandCode.META_NOOP],
  ['me', CommandCode.META_DEBUG],
  ['delete', CommandCode.DELETE],
  ['incr', CommandCode.INCR],
  ['decr', CommandCode.DECR],
  ['touch', CommandCode.TOUCH],
  ['stats', CommandCode.STATS],
  ['flush_all', CommandCode.FLUSH_ALL],
  ['version', CommandCode.VERSION],
  ['verbosity', CommandCode.VERBOSITY],
  ['quit', CommandCode.QUIT],
  ['shutdown', CommandCode.SHUTDOWN],
  ['lru', CommandCode.LRU],
  ['lru_crawler', CommandCode.LRU_CRAWLER],
  ['slabs', CommandCode.SLABS],
  ['cache_memlimit', CommandCode.CACHE_MEMLIMIT],
  ['watch', CommandCode.WATCH],
];

for (const [name, code] of TABLE) if (name.length > 4) LONG_NAMES.set(pack(name), [name, code]);

/** Names by code, for statistics and messages. */
export const COMMAND_NAMES: readonly string[] = TABLE.reduce<string[]>(
  (names, [name, code]) => {
    names[code] = name;
    return names;
  },
  ['unknown'],
);

/** `verb`osity and `vers`ion, `dele`te ...: no two long names share their first four bytes. */
function longCommand(u8: Uint8Array, offset: number, length: number): CommandCode {
  const packed = (u8[offset] << 24) | (u8[offset + 1] << 16) | (u8[offset + 2] << 8) | u8[offset + 3];
  const entry = LONG_NAMES.get(packed);
  if (entry === undefined || entry[0].length !== length) return CommandCode.UNKNOWN;
  for (let i = 4; i < length; i++) if (u8[offset + i] !== entry[0].charCodeAt(i)) return CommandCode.UNKNOWN;
  return entry[1];
}

export function commandOf(u8: Uint8Array, offset: number, length: number): CommandCode {
  const a = u8[offset];
  if (length === 3) return shortCommand((a << 16) | (u8[offset + 1] << 8) | u8[offset + 2]);
  if (length === 2) return a === 0x6d ? metaCommand(u8[offset + 1]) : CommandCode.UNKNOWN;
  if (length === 4) return mediumCommand((a << 24) | (u8[offset + 1] << 16) | (u8[offset + 2] << 8) | u8[offset + 3]);
  if (length > 4 && length <= MAX_NAME_BYTES) return longCommand(u8, offset, length);
  return CommandCode.UNKNOWN;
}

function shortCommand(packed: number): CommandCode {
  switch (packed) {
    case 0x676574:
      return CommandCode.GET;
    case 0x736574:
      return CommandCode.SET;
    case 0x676174:
      return CommandCode.GAT;
    case 0x616464:
      return CommandCode.ADD;
    case 0x636173:
      return CommandCode.CAS;
    case 0x6c7275:
      return CommandCode.LRU;
    default:
      return CommandCode.UNKNOWN;
  }
}

function mediumCommand(packed: number): CommandCode {
  switch (packed) {
    case 0x67657473:
      return CommandCode.GETS;
    case 0x67617473:
      return CommandCode.GATS;
    case 0x696e6372:
      return CommandCode.INCR;
    case 0x64656372:
      return CommandCode.DECR;
    case 0x71756974:
      return CommandCode.QUIT;
    default:
      return CommandCode.UNKNOWN;
  }
}

/** The letter after m. */
function metaCommand(letter: number): CommandCode {
  switch (letter) {
    case 0x67:
      return CommandCode.META_GET;
    case 0x73:
      return CommandCode.META_SET;
    case 0x64:
      return CommandCode.META_DELETE;
    case 0x61:
      return CommandCode.META_ARITHMETIC;
    case 0x6e:
      return CommandCode.META_NOOP;
    case 0x65:
      return CommandCode.META_DEBUG;
    default:
      return CommandCode.UNKNOWN;
  }
}

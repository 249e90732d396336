/** The settings of files as Redis writes them: RDB, append-only files. */
import { integer, savePoints, text, ValueError, yesNo } from './kinds.js';
import { declare, type Setting } from './setting.js';

export interface RdbSettings {
  dbfilename: string;
  load: string;
  rdbVersion: number;
  rdbcompression: boolean;
  rdbchecksum: boolean;
  save: readonly number[];
  stopWritesOnBgsaveError: boolean;
  appenddirname: string;
  appendfilename: string;
  aofLoadTruncated: boolean;
}

/** A file's name without a folder, as Redis wants it. */
const fileName = {
  ...text('NAME', 255),
  parse(value: string): string {
    if (value === '' || value.includes('/')) throw new ValueError("must be a file's name, without a path");
    return value;
  },
};

export const rdbSchema: { readonly [K in keyof RdbSettings]: Setting<RdbSettings[K]> } = {
  dbfilename: declare(
    'RDB files',
    fileName,
    'dump.rdb',
    "Name, in the pool's folder, of the file that SAVE and BGSAVE write, and that a new pool is filled from.",
    { redis: ['dbfilename'] },
  ),
  load: declare(
    'RDB files',
    text('PATH', 4096),
    '',
    'File of Redis that fills the pool at the start, if it holds no keys: RDB, an append-only file, or the manifest or folder of one.',
    { isHidden: true },
  ),
  rdbVersion: declare(
    'RDB files',
    integer(10, 12),
    10,
    'Version that SAVE, BGSAVE and DUMP write: Redis 7.0 reads 10, 7.2 reads 11, 7.4 reads 12 (which alone has fields with an expiry).',
    { live: true },
  ),
  rdbcompression: declare('RDB files', yesNo(), true, 'Packs strings of more than 20 bytes.', {
    live: true,
    redis: ['rdbcompression'],
  }),
  rdbchecksum: declare(
    'RDB files',
    yesNo(),
    true,
    'Writes a checksum behind files, and checks it when they are read.',
    {
      redis: ['rdbchecksum'],
    },
  ),
  save: declare(
    'RDB files',
    savePoints(),
    [],
    "When to save by itself: after so many seconds, if there were so many changes since the last save: '900 1 300 10'; empty = never. Also saves when the server stops.",
    { live: true, redis: ['save'] },
  ),
  stopWritesOnBgsaveError: declare(
    'RDB files',
    yesNo(),
    true,
    'Refuses writes after a save in the background has failed, if there is a schedule of saves.',
    { live: true, redis: ['stop-writes-on-bgsave-error'] },
  ),
  appenddirname: declare(
    'RDB files',
    fileName,
    'appendonlydir',
    "Folder, in the pool's folder, of the append-only file that BGREWRITEAOF writes.",
    { redis: ['appenddirname'] },
  ),
  appendfilename: declare('RDB files', fileName, 'appendonly.aof', 'What the names of its parts begin with.', {
    redis: ['appendfilename'],
  }),
  aofLoadTruncated: declare(
    'RDB files',
    yesNo(),
    true,
    'Loads an append-only file that ends in the middle of a command or transaction, without that; no = the start fails.',
    { redis: ['aof-load-truncated'] },
  ),
};

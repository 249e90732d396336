/** The settings of dumps and files as Redis writes them (RDB). */
import { integer, text, ValueError, yesNo } from './kinds.js';
import { declare, type Setting } from './setting.js';

export interface RdbSettings {
  dbfilename: string;
  load: string;
  rdbVersion: number;
  rdbcompression: boolean;
  rdbchecksum: boolean;
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
    'File of Redis (RDB) that fills the pool at the start, if it holds no keys.',
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
};

/** Values of modules, which are passed over: nobody but the module can say what they mean. Their parts are marked, so that their end is found. */
import { ModuleOpcode } from './format.js';
import type { RdbReader } from './reader.js';

const NAME_CHARACTERS = 9;
const NAME_ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const VERSION_BITS = 10n;

/** Passes over the value behind the position; returns the module's name and version of its format, as 'ReJSON-RL 3'. */
export function skipModuleValue(reader: RdbReader): string {
  reader.wide();
  const name = moduleName(reader.high, reader.low);
  for (;;) {
    const part = reader.length();
    switch (part) {
      case ModuleOpcode.EOF:
        return name;
      case ModuleOpcode.SINT:
      case ModuleOpcode.UINT:
        reader.wide();
        break;
      case ModuleOpcode.FLOAT:
        reader.skip(4);
        break;
      case ModuleOpcode.DOUBLE:
        reader.skip(8);
        break;
      case ModuleOpcode.STRING:
        reader.skipString();
        break;
      default:
        reader.fail(`the value of the module ${name} has a part of an unknown kind`);
    }
  }
}

/** A module's id is nine characters of six bits, then ten bits of version. */
function moduleName(high: number, low: number): string {
  const id = (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0);
  let name = '';
  for (let rest = id >> VERSION_BITS, i = 0; i < NAME_CHARACTERS; rest >>= 6n, i++) {
    name = NAME_ALPHABET[Number(rest & 0x3fn)] + name;
  }
  return `${name} ${id & ((1n << VERSION_BITS) - 1n)}`;
}

/**
 * The kinds of value a setting can have: how text becomes a value and a value becomes text.
 *
 * Flags, environment, TOML and CONFIG SET all arrive here as text, so a value means the same wherever it is written.
 * Invariant: parse(format(v)) equals v for every value a kind accepts. The words of a ValueError fit after "argument" (as
 * Redis words CONFIG SET errors) as well as after the name of a flag.
 */
import { isIP } from './address.js';
import { formatEndpoint, parseEndpoint } from './endpoint.js';
import { formatSize, parseSize } from './size.js';

/** Why a text is not a value of its kind, for example 'must be between 0 and 65535 inclusive'. */
export class ValueError extends Error {
  override readonly name = 'ValueError';
}

export interface Kind<T> {
  /** What --help prints for the value: SIZE, N, PATH, a|b. */
  readonly placeholder: string;
  /** Throws ValueError. */
  parse(text: string): T;
  /** The canonical text; CONFIG GET answers with it. */
  format(value: T): string;
  /** The text that people read in --help, where it differs from the canonical one. */
  show(value: T): string;
  /** The accepted range in words, empty when the placeholder says all. */
  readonly range: string;
  /** True when the flag may stand without a value (and as --no-NAME). */
  readonly isSwitch?: boolean;
  /** True when messages must not repeat the value. */
  readonly isSecret?: boolean;
  /** A TOML array of strings or numbers is accepted too; this stands between its elements in the text. */
  readonly listSeparator?: string;
  /** True when the flag may be given several times, each adding an element. */
  readonly isRepeatable?: boolean;
}

export function integer(min: number, max: number, placeholder = 'N'): Kind<number> {
  return {
    placeholder,
    range: `${min} to ${max}`,
    parse(text) {
      if (!/^[+-]?\d+$/.test(text)) throw new ValueError("couldn't be parsed into an integer");
      const value = Number(text);
      if (value < min || value > max) throw new ValueError(`must be between ${min} and ${max} inclusive`);
      return value === 0 ? 0 : value;
    },
    format: String,
    show: String,
  };
}

/** Bytes. `zero` allows 0 (off, or automatic) below `min`. */
export function size(min: number, max: number, zero = false): Kind<number> {
  return {
    placeholder: 'SIZE',
    range: `${zero ? '0, or ' : ''}${formatSize(min)} to ${formatSize(max)}`,
    parse(text) {
      const bytes = parseSize(text);
      if (bytes === undefined) throw new ValueError('must be a memory value, such as 512mb, 1GiB or a number of bytes');
      if (bytes === 0 && zero) return 0;
      if (bytes < min || bytes > max) {
        throw new ValueError(`must be ${zero ? '0 or ' : ''}between ${formatSize(min)} and ${formatSize(max)}`);
      }
      return bytes;
    },
    format: String,
    show: (bytes) => formatSize(bytes),
  };
}

export function oneOf<T extends string>(...names: readonly T[]): Kind<T> {
  return {
    placeholder: names.join('|'),
    range: '',
    parse(text) {
      const found = names.find((name) => name === text.toLowerCase());
      if (found === undefined) throw new ValueError(`must be one of the following: ${names.join(', ')}`);
      return found;
    },
    format: (name) => name,
    show: (name) => name,
  };
}

export function yesNo(): Kind<boolean> {
  const format = (value: boolean): string => (value ? 'yes' : 'no');
  return {
    placeholder: 'yes|no',
    range: '',
    isSwitch: true,
    parse(text) {
      const word = text.toLowerCase();
      if (word === 'yes' || word === 'true' || word === '1') return true;
      if (word === 'no' || word === 'false' || word === '0') return false;
      throw new ValueError("must be 'yes' or 'no'");
    },
    format,
    show: format,
  };
}

/** A count that may be 'auto', kept as 0 until the machine is known. */
export function countOrAuto(max: number): Kind<number> {
  const format = (value: number): string => (value === 0 ? 'auto' : String(value));
  const count = integer(1, max);
  return {
    placeholder: 'N|auto',
    range: `1 to ${max}, or auto`,
    parse: (text) => (text.toLowerCase() === 'auto' ? 0 : count.parse(text)),
    format,
    show: format,
  };
}

/** A power of two. */
export function powerOfTwo(min: number, max: number): Kind<number> {
  const within = integer(min, max);
  return {
    ...within,
    range: `${min} to ${max}, a power of two`,
    parse(text) {
      const value = within.parse(text);
      if (2 ** Math.round(Math.log2(value)) !== value) throw new ValueError('must be a power of two');
      return value;
    },
  };
}

/** Bytes, or 'N%' of something that the setting names: a percentage is kept as a negative number. */
export function bytesOrPercent(max: number): Kind<number> {
  const bytes = size(0, max);
  return {
    placeholder: 'SIZE|N%',
    range: `0 to ${formatSize(max)}, or 0% to 100%`,
    parse(text) {
      const percent = /^(\d+)%$/.exec(text);
      if (percent === null) return bytes.parse(text);
      if (Number(percent[1]) > 100) throw new ValueError('percentage argument must be less or equal to 100');
      return percent[1] === '0' ? 0 : -Number(percent[1]);
    },
    format: (value) => (value < 0 ? `${-value}%` : String(value)),
    show: (value) => (value < 0 ? `${-value}%` : bytes.show(value)),
  };
}

/** File permissions in octal. */
export function fileMode(): Kind<number> {
  const format = (mode: number): string => mode.toString(8);
  return {
    placeholder: 'MODE',
    range: 'octal, 0 to 777',
    parse(text) {
      if (!/^0?o?[0-7]{1,3}$/.test(text)) throw new ValueError('must be octal file permissions, such as 700');
      return Number.parseInt(text.replace(/^0?o/, ''), 8);
    },
    format,
    show: format,
  };
}

export function text(placeholder: string, maxBytes: number): Kind<string> {
  return {
    placeholder,
    range: '',
    parse(value) {
      if (value.includes('\0')) throw new ValueError('must not contain a zero byte');
      if (Buffer.byteLength(value) > maxBytes) throw new ValueError(`must be at most ${maxBytes} bytes long`);
      return value;
    },
    format: (value) => value,
    show: (value) => value,
  };
}

export function secret(placeholder: string, maxBytes: number): Kind<string> {
  return {
    ...text(placeholder, maxBytes),
    isSecret: true,
    // Redis allows any bytes in a password.
    parse(value) {
      if (Buffer.byteLength(value) > maxBytes) throw new ValueError(`must be at most ${maxBytes} bytes long`);
      return value;
    },
  };
}

/** IP addresses to listen on; 'localhost' and '*' are understood. */
export function addresses(): Kind<readonly string[]> {
  const format = (list: readonly string[]): string => list.join(' ');
  return {
    placeholder: 'IP[,IP...]',
    range: '',
    listSeparator: ',',
    parse(value) {
      const list = value.split(/[\s,]+/).filter((part) => part !== '');
      if (list.length === 0) throw new ValueError('must name at least one address');
      return list.map((part) => {
        if (part === 'localhost') return '127.0.0.1';
        if (part === '*') return '0.0.0.0';
        if (!isIP(part)) throw new ValueError(`must be IP addresses; '${part}' is none`);
        return part;
      });
    },
    format,
    show: format,
  };
}

/** Addresses of which each may have a port of its own; none is allowed. */
export function endpoints(): Kind<readonly string[]> {
  const format = (list: readonly string[]): string => list.join(' ');
  return {
    placeholder: 'IP[:PORT],...',
    range: '',
    listSeparator: ',',
    parse(value) {
      const list = value.split(/[\s,]+/).filter((part) => part !== '');
      return list.map((part) => {
        const endpoint = parseEndpoint(part);
        if (endpoint === null) throw new ValueError(`must be IP addresses, with :PORT or without; '${part}' is none`);
        return formatEndpoint(endpoint);
      });
    },
    format,
    show: format,
  };
}

/** Users with their rules, 'NAME RULE ...', one a line of the text. What the rules mean is the server's business. */
export function userLines(): Kind<readonly string[]> {
  const format = (list: readonly string[]): string => list.join('\n');
  return {
    placeholder: "'NAME RULE ...'",
    range: '',
    listSeparator: '\n',
    isRepeatable: true,
    isSecret: true,
    parse: (value) => value.split('\n').filter((line) => line.trim() !== ''),
    format,
    show: format,
  };
}

/** Pairs of seconds and changes, as Redis has them: '900 1 300 10'. */
export function savePoints(): Kind<readonly number[]> {
  const format = (points: readonly number[]): string => points.join(' ');
  return {
    placeholder: "'SECONDS CHANGES ...'",
    range: '',
    listSeparator: ' ',
    isRepeatable: true,
    parse(value) {
      const words = value.split(/\s+/).filter((word) => word !== '');
      const points = words.map(Number);
      const isValid = words.every((word) => /^\d{1,15}$/.test(word)) && points.every((n, i) => i % 2 === 1 || n > 0);
      if (points.length % 2 !== 0 || !isValid) throw new ValueError('Invalid save parameters');
      return points;
    },
    format,
    show: format,
  };
}

/** Percentiles, separated by blanks or commas; none is allowed. */
export function percentiles(): Kind<readonly number[]> {
  const format = (list: readonly number[]): string => list.join(' ');
  return {
    placeholder: 'P[,P...]',
    range: '0 to 100',
    listSeparator: ',',
    parse(value) {
      const list = value.split(/[\s,]+/).filter((part) => part !== '');
      return list.map((part) => {
        const percentile = Number(part);
        if (!(percentile >= 0 && percentile <= 100)) throw new ValueError('must be percentiles between 0.0 and 100.0');
        return percentile;
      });
    },
    format,
    show: format,
  };
}

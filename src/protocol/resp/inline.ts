/**
 * Inline commands: a line of words as a person types it into telnet, with Redis's quoting rules.
 *
 * `splitLine` works on bytes: words are recorded as (offset, length) pairs. A line without quotes is split in place; one
 * with quotes is unescaped into a scratch range, which is never longer than the line. Invariant: the input is not changed,
 * so a request that is not executed now can be parsed again later.
 */

const SPACE = 0x20;
const TAB = 0x09;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const QUOTE = 0x22;
const APOSTROPHE = 0x27;
const BACKSLASH = 0x5c;
const LOWER_X = 0x78;

/** True when the line needs `splitQuoted`. */
export function hasQuotes(u8: Uint8Array, start: number, end: number): boolean {
  for (let i = start; i < end; i++) {
    const byte = u8[i];
    if (byte === QUOTE || byte === APOSTROPHE) return true;
  }
  return false;
}

/** Records the words of an unquoted line from `pairs[top]` on (room for them is the caller's business); returns their number. */
export function splitPlain(u8: Uint8Array, start: number, end: number, pairs: Int32Array, top: number): number {
  let count = 0;
  let i = start;
  while (true) {
    while (i < end && isSpace(u8[i])) i++;
    if (i >= end) return count;
    const word = i;
    while (i < end && !endsWord(u8[i])) i++;
    pairs[top++] = word;
    pairs[top++] = i - word;
    count++;
  }
}

/**
 * The same for a line with quotes: words are written to `scratch` from `scratchTop` on and the pairs point there.
 * Returns the number of words, or -1 for unbalanced quotes.
 */
export function splitQuoted(
  u8: Uint8Array,
  start: number,
  end: number,
  pairs: Int32Array,
  top: number,
  scratch: Uint8Array,
  scratchTop: number,
): number {
  let count = 0;
  let i = start;
  let out = scratchTop;
  while (true) {
    while (i < end && isSpace(u8[i])) i++;
    if (i >= end) return count;
    const word = out;
    while (i < end && !endsWord(u8[i])) {
      const byte = u8[i++];
      if (byte !== QUOTE && byte !== APOSTROPHE) {
        scratch[out++] = byte;
        continue;
      }
      let closed = false;
      while (i < end && !closed) {
        const inside = u8[i++];
        if (inside === byte) {
          closed = true;
        } else if (inside === BACKSLASH && i < end && (byte === QUOTE || u8[i] === APOSTROPHE)) {
          const hex = byte === QUOTE && u8[i] === LOWER_X && i + 2 < end ? hexByte(u8[i + 1], u8[i + 2]) : -1;
          if (hex >= 0) {
            scratch[out++] = hex;
            i += 3;
          } else {
            scratch[out++] = byte === QUOTE ? unescapeByte(u8[i]) : APOSTROPHE;
            i++;
          }
        } else {
          scratch[out++] = inside;
        }
      }
      // A closing quote must be followed by white space or the end of the line.
      if (!closed || (i < end && !isSpace(u8[i]))) return -1;
      break;
    }
    pairs[top++] = word;
    pairs[top++] = out - word;
    count++;
  }
}

function isSpace(byte: number): boolean {
  return byte === SPACE || (byte >= TAB && byte <= CARRIAGE_RETURN);
}

/** Vertical tab and form feed separate words but do not end one: so in Redis, too. */
function endsWord(byte: number): boolean {
  return byte === SPACE || byte === TAB || byte === LINE_FEED || byte === CARRIAGE_RETURN;
}

function unescapeByte(byte: number): number {
  switch (byte) {
    case 0x6e:
      return LINE_FEED;
    case 0x72:
      return CARRIAGE_RETURN;
    case 0x74:
      return TAB;
    case 0x62:
      return 0x08;
    case 0x61:
      return 0x07;
    default:
      return byte;
  }
}

function hexByte(high: number, low: number): number {
  const h = hexDigit(high);
  const l = hexDigit(low);
  return h < 0 || l < 0 ? -1 : h * 16 + l;
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x61 + 10 : -1;
}

/**
 * Arithmetic of the x86 80-bit extended double, for INCRBYFLOAT: Redis computes with C's long double there, and clients see its digits.
 *
 * A value is sign * mantissa * 2^exponent in exact integers; reading a decimal and adding round once, to a 64-bit mantissa, half
 * to even, as the processor does. Invariant: a finite value's mantissa is below 2^64.
 */

/** mantissa * 2^exponent; the sign is the mantissa's. */
export interface LongDouble {
  readonly mantissa: bigint;
  readonly exponent: number;
}

const MANTISSA_BITS = 64;
/** The largest finite value is below 2^16384; the smallest denormal is 2^-16445. */
const MAX_EXPONENT = 16384;
const MIN_EXPONENT = -16445;
const MAX_TEXT_BYTES = 5 * 1024;
const SHOWN_DECIMALS = 17;
const DOUBLE_FRACTION_BITS = 52n;
/** Of the exponent of a double's mantissa, taken as an integer. */
const DOUBLE_BIAS = 1075;
const bits = new DataView(new ArrayBuffer(8));
const ZERO: LongDouble = { mantissa: 0n, exponent: 0 };
/** More digits of exponent than any value needs: what is beyond is zero or too large anyway. */
const EXPONENT_MAX = 20_000;

/** Reads a decimal or hexadecimal number; 'infinite' for an infinity, null when it is no number or out of range. */
export function parseLongDouble(text: string): LongDouble | 'infinite' | null {
  if (text.length === 0 || text.length >= MAX_TEXT_BYTES) return null;
  const decimal = /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/.exec(text);
  if (decimal !== null) {
    const [, sign, whole, fraction = '', exponent = '0'] = decimal;
    if (whole.length + fraction.length === 0) return null;
    const digits = BigInt(whole + fraction);
    if (digits === 0n) return ZERO;
    const power = clampExponent(exponent) - fraction.length;
    const magnitude = power >= 0 ? ratio(digits * 10n ** BigInt(power), 1n) : ratio(digits, 10n ** BigInt(-power));
    return signed(magnitude, sign);
  }
  const hexadecimal = /^([+-]?)0[xX]([\da-fA-F]*)(?:\.([\da-fA-F]*))?(?:[pP]([+-]?\d+))?$/.exec(text);
  if (hexadecimal !== null) {
    const [, sign, whole, fraction = '', exponent = '0'] = hexadecimal;
    if (whole.length + fraction.length === 0) return null;
    const digits = BigInt(`0x${whole}${fraction}`);
    if (digits === 0n) return ZERO;
    return signed(round(digits, clampExponent(exponent) - 4 * fraction.length), sign);
  }
  return /^[+-]?inf(inity)?$/i.test(text) ? 'infinite' : null;
}

/** A finite double, which a long double holds exactly. */
export function longDoubleOf(value: number): LongDouble {
  if (value === 0) return ZERO;
  bits.setFloat64(0, value);
  const word = bits.getBigUint64(0);
  const fraction = word & ((1n << DOUBLE_FRACTION_BITS) - 1n);
  const biased = Number((word >> DOUBLE_FRACTION_BITS) & 0x7ffn);
  // Denormals have no hidden bit.
  const mantissa = biased === 0 ? fraction : fraction | (1n << DOUBLE_FRACTION_BITS);
  return { mantissa: value < 0 ? -mantissa : mantissa, exponent: Math.max(biased, 1) - DOUBLE_BIAS };
}

/** The rounded sum, or null when it is too large to be finite. */
export function addLongDoubles(a: LongDouble, b: LongDouble): LongDouble | null {
  const exponent = Math.min(a.exponent, b.exponent);
  const sum = (a.mantissa << BigInt(a.exponent - exponent)) + (b.mantissa << BigInt(b.exponent - exponent));
  if (sum === 0n) return ZERO;
  const magnitude = round(sum < 0n ? -sum : sum, exponent);
  return magnitude === null ? null : signed(magnitude, sum < 0n ? '-' : '');
}

/** Up to 17 decimals, zeros at the end left out: what C's %.17Lf gives, trimmed. */
export function formatLongDouble(value: LongDouble): string {
  const negative = value.mantissa < 0n;
  const magnitude = negative ? -value.mantissa : value.mantissa;
  const scaled = magnitude * 10n ** BigInt(SHOWN_DECIMALS);
  const digits = value.exponent >= 0 ? scaled << BigInt(value.exponent) : shiftRightHalfToEven(scaled, -value.exponent);
  const text = digits.toString().padStart(SHOWN_DECIMALS + 1, '0');
  const decimals = text.slice(-SHOWN_DECIMALS).replace(/0+$/, '');
  const whole = text.slice(0, -SHOWN_DECIMALS);
  const shown = decimals === '' ? whole : `${whole}.${decimals}`;
  return negative && shown !== '0' ? `-${shown}` : shown;
}

function clampExponent(text: string): number {
  return Math.max(-EXPONENT_MAX, Math.min(EXPONENT_MAX, Number(text)));
}

function signed(value: LongDouble | null, sign: string): LongDouble | null {
  if (value === null || sign !== '-') return value;
  return { mantissa: -value.mantissa, exponent: value.exponent };
}

/** numerator / denominator, rounded. */
function ratio(numerator: bigint, denominator: bigint): LongDouble | null {
  if (denominator === 1n) return round(numerator, 0);
  // As many bits of quotient as the mantissa has and two more; a remainder is kept as a sticky lowest bit.
  const shift = MANTISSA_BITS + 2 + bitLength(denominator) - bitLength(numerator);
  const scaled = shift > 0 ? numerator << BigInt(shift) : numerator;
  const divisor = shift < 0 ? denominator << BigInt(-shift) : denominator;
  const quotient = scaled / divisor;
  const sticky = quotient * divisor === scaled ? 0n : 1n;
  return round((quotient << 1n) | sticky, -shift - 1);
}

/** magnitude * 2^exponent with a 64-bit mantissa; null when out of range (a value that becomes zero too, as strtold says). */
function round(magnitude: bigint, exponent: number): LongDouble | null {
  const bits = bitLength(magnitude);
  const excess = Math.max(bits - MANTISSA_BITS, MIN_EXPONENT - exponent);
  let mantissa = magnitude;
  if (excess > 0) {
    mantissa = shiftRightHalfToEven(magnitude, excess);
    exponent += excess;
  }
  if (mantissa === 0n || bitLength(mantissa) + exponent > MAX_EXPONENT) return null;
  return { mantissa, exponent };
}

function shiftRightHalfToEven(value: bigint, bits: number): bigint {
  const shift = BigInt(bits);
  const shifted = value >> shift;
  const rest = value - (shifted << shift);
  const half = 1n << (shift - 1n);
  if (rest > half || (rest === half && (shifted & 1n) === 1n)) return shifted + 1n;
  return shifted;
}

function bitLength(value: bigint): number {
  const hex = value.toString(16);
  return (hex.length - 1) * 4 + 32 - Math.clz32(Number.parseInt(hex[0], 16));
}

/**
 * Scores as listpacks keep them: integers as such, others as text. Redis 7.0 writes 17 digits (C's %.17g), 7.2 and later the shortest text
 * that is read back as the same number.
 */

const DIGITS = 17;
/** Digits that tell whether what follows the 17th is exactly a half: a double has no more that could follow. */
const TIE_DIGITS = 100;
const INTEGER_MAX = 2 ** 62;

/** True when Redis keeps the score as an integer. */
export function isIntegerScore(score: number): boolean {
  return Number.isInteger(score) && Math.abs(score) <= INTEGER_MAX;
}

export function scoreText(score: number, isShortest: boolean): string {
  if (score === Number.POSITIVE_INFINITY) return 'inf';
  if (score === Number.NEGATIVE_INFINITY) return '-inf';
  return isShortest ? String(score) : seventeenDigits(score);
}

/** As %.17g: rounded half to even, without trailing zeros, an exponent below -4 and from 17 on. */
function seventeenDigits(value: number): string {
  const [mantissa, exponent] = rounded(value).split('e');
  const power = Number(exponent);
  const sign = mantissa.startsWith('-') ? '-' : '';
  const digits = mantissa.replace(/[-.]/g, '').replace(/0+$/, '');
  if (power < -4 || power >= DIGITS) {
    const fraction = digits.length > 1 ? `.${digits.slice(1)}` : '';
    return `${sign}${digits[0]}${fraction}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`;
  }
  if (power < 0) return `${sign}0.${'0'.repeat(-power - 1)}${digits}`;
  const whole = digits.slice(0, power + 1).padEnd(power + 1, '0');
  const fraction = digits.slice(power + 1);
  return fraction === '' ? `${sign}${whole}` : `${sign}${whole}.${fraction}`;
}

/** JavaScript rounds an exact half up, C to the even digit. */
function rounded(value: number): string {
  const up = value.toExponential(DIGITS - 1);
  // An exact half has one digit more, which is 5: seldom enough, so that the long look costs nothing.
  if (!value.toExponential(DIGITS).includes('5e')) return up;
  const [mantissa, exponent] = value.toExponential(TIE_DIGITS).split('e');
  const point = mantissa.indexOf('.');
  const kept = mantissa.slice(0, point + DIGITS);
  const isTie = /^50*$/.test(mantissa.slice(point + DIGITS));
  return isTie && Number(kept[kept.length - 1]) % 2 === 0 ? `${kept}e${exponent}` : up;
}

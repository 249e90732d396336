/**
 * The few statistics the reports use. Medians, because one stop of a shared machine must not decide a comparison.
 */

export function median(values: readonly number[]): number {
  if (values.length === 0) throw new Error('median of nothing');
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Half the distance between the quartiles, as a fraction of the median: how far runs of one thing lie apart. */
export function spread(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const quartile = (fraction: number): number => sorted[Math.round(fraction * (sorted.length - 1))];
  const centre = median(values);
  return centre === 0 ? 0 : (quartile(0.75) - quartile(0.25)) / 2 / Math.abs(centre);
}

/** Element by element a[i] / b[i]: the two are runs of one pair, side by side in time. */
export function ratios(a: readonly number[], b: readonly number[]): number[] {
  return a.map((value, index) => value / b[index]);
}

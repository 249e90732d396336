/** "Did you mean ...?": the known name closest to a mistyped one. */

/** Edit distance in which a swap of neighbours costs one, as typing errors do. */
function editDistance(a: string, b: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const current = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = previous[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
      current[j] = Math.min(substitution, previous[j] + 1, current[j - 1] + 1);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        current[j] = Math.min(current[j], beforePrevious[j - 2] + 1);
      }
    }
    beforePrevious = previous;
    previous = current;
  }
  return previous[b.length];
}

/** The nearest of `names`, or undefined when none is near enough to be what was meant (a third of its length). */
export function nearest(name: string, names: Iterable<string>): string | undefined {
  const wanted = name.toLowerCase().replaceAll('_', '-');
  let best: string | undefined;
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const candidate of names) {
    const distance = editDistance(wanted, candidate.toLowerCase().replaceAll('_', '-'));
    if (distance < bestDistance && distance <= Math.max(1, Math.floor(candidate.length / 3))) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** ' Did you mean X?' or nothing, to be appended to a message. `show` turns the name into what the user would type. */
export function suggestion(name: string, names: Iterable<string>, show: (name: string) => string = (s) => s): string {
  const found = nearest(name, names);
  return found === undefined ? '' : ` Did you mean ${show(found)}?`;
}

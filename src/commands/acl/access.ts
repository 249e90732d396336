/**
 * What is kept of a refused request or a failed login, and how the logs of several workers become one.
 *
 * Invariant: entries that say the same within a minute are one entry with a count.
 */

export type AccessReason = 'auth' | 'command' | 'key' | 'channel';
export type AccessContext = 'toplevel' | 'multi' | 'lua';

/** Texts are byte strings. */
export interface AccessEvent {
  readonly reason: AccessReason;
  readonly context: AccessContext;
  /** The command, key or channel that was refused. */
  readonly object: string;
  readonly username: string;
}

export interface AccessEntry extends AccessEvent {
  readonly id: number;
  count: number;
  /** The line of CLIENT LIST at the last time. */
  client: string;
  readonly createdMs: number;
  updatedMs: number;
}

const GROUPED_WITHIN_MS = 60_000;

export function isSameAccess(entry: AccessEntry, event: AccessEvent, nowMs: number): boolean {
  return (
    entry.reason === event.reason &&
    entry.context === event.context &&
    Math.abs(entry.updatedMs - nowMs) <= GROUPED_WITHIN_MS &&
    entry.object === event.object &&
    entry.username === event.username
  );
}

/** The logs of several workers as one. */
export function mergeEntries(logs: readonly (readonly AccessEntry[])[], capacity: number): AccessEntry[] {
  const merged: AccessEntry[] = [];
  for (const entry of logs.flat().sort((a, b) => b.updatedMs - a.updatedMs || b.id - a.id)) {
    const known = merged.find((other) => isSameAccess(other, entry, entry.updatedMs));
    if (known === undefined) merged.push({ ...entry });
    else known.count += entry.count;
  }
  return merged.slice(0, capacity);
}

/**
 * One worker's log of refused requests and failed logins: ACL LOG merges those of all workers.
 *
 * Entries that say the same within a minute are one entry with a count. Invariant: at most `capacity` entries, the one
 * changed last in front.
 */
import { type AccessEntry, type AccessEvent, isSameAccess } from '../commands/acl/access.js';
import { SharedWord } from '../layout/counters.js';

/** How many of the newest entries are looked at for one that says the same. */
const LOOKED_AT = 10;

export class AccessLog {
  private readonly shared: Int32Array;
  private entries: AccessEntry[] = [];

  /** `shared`: the words that all workers count in. */
  constructor(shared: Int32Array) {
    this.shared = shared;
  }

  add(event: AccessEvent, client: string, nowMs: number, capacity: number): void {
    const known = this.entries.slice(0, LOOKED_AT).find((entry) => isSameAccess(entry, event, nowMs));
    if (known === undefined) {
      const id = Atomics.add(this.shared, SharedWord.accessLogId, 1);
      this.entries.unshift({ ...event, client, id, count: 1, createdMs: nowMs, updatedMs: nowMs });
    } else {
      known.count++;
      known.client = client;
      known.updatedMs = nowMs;
      this.entries.splice(this.entries.indexOf(known), 1);
      this.entries.unshift(known);
    }
    if (this.entries.length > capacity) this.entries.length = capacity;
  }

  get(): readonly AccessEntry[] {
    return this.entries;
  }

  reset(): void {
    this.entries = [];
  }
}

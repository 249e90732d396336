/**
 * What a worker gives its commands: the store, the settings, the counters and the door to the control plane.
 *
 * The server makes one for each worker, the embedded library one for each participant. Invariant: `settings` is the
 * worker's live copy, so a handler reads it each time and never keeps a value.
 */
import type { Settings } from '../config/index.js';
import type { CounterRow, CounterTotals } from '../layout/counters.js';
import type { Keyspace } from '../store/keyspace.js';
import type { Users } from './acl/users.js';
import type { Control } from './control.js';
import type { Hub } from './messaging/hub.js';
import type { Scripting } from './scripting/scripting.js';

export interface Environment {
  readonly keyspace: Keyspace;
  readonly settings: Readonly<Settings>;
  readonly counters: CounterRow;
  readonly totals: CounterTotals;
  /** Who may do what: this worker's copy. */
  readonly users: Users;
  /** Null in the embedded library. */
  readonly control: Control | null;
  /** Messages between workers: one for a keyspace, made with its first executor. */
  hub?: Hub;
  /** The worker's scripts, made at the first call. Absent in the embedded library. */
  readonly scripting?: () => Scripting;
  /** A handler threw: our mistake, to be logged with its stack. */
  reportFault(error: unknown): void;
}

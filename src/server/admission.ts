/**
 * Connections coming and going: admitted up to maxclients of all workers, refused with an answer in their protocol, counted when they end.
 *
 * Invariant: whoever is admitted has its limits before its first byte is read.
 */
import { isLocalPeer } from '../config/index.js';
import { Counter } from '../layout/counters.js';
import type { Pump } from '../native/addon.js';
import type { Driver } from '../protocol/driver.js';
import type { Output } from '../protocol/output.js';
import type { Connections } from './connections.js';
import type { Limits } from './limits.js';
import type { WorkerControl } from './worker-control.js';

/** errno values that the pump gives as the reason of a CLOSE event. */
const ETIMEDOUT = 110;
const ENOBUFS = 105;
const EMSGSIZE = 90;

export interface AdmissionParts {
  readonly pump: Pump;
  readonly output: Output;
  readonly connections: Connections;
  readonly control: WorkerControl;
  readonly limits: Limits;
  readonly values: Float64Array;
  /** By ListenerKind. */
  readonly drivers: readonly Driver[];
  /** Connections to close after this turn's replies have been handed over. */
  readonly closing: number[];
}

export class Admission {
  readonly #parts: AdmissionParts;

  constructor(parts: AdmissionParts) {
    this.#parts = parts;
  }

  accept(conn: number, kind: number, nowMs: number): void {
    const { pump, connections, control, limits, values, drivers } = this.#parts;
    const driver = drivers[kind];
    const address = pump.peerAddress(conn);
    // Asked of each: a password may go while the server runs (ACL SETUSER default nopass).
    if (control.settings.protectedMode && driver.isOpen() && !isLocalPeer(address)) {
      this.#refuse(conn, driver.refusal('protected'));
      return;
    }
    if (!connections.admit(control.settings.maxclients)) {
      this.#refuse(conn, driver.refusal('maxclients'));
      return;
    }
    values[Counter.connectionsAccepted]++;
    limits.apply(conn);
    const client = driver.open(connections.nextClientId(), conn, address);
    connections.add(conn, client, driver, kind, nowMs);
  }

  #refuse(conn: number, message: string): void {
    const { output, values, closing } = this.#parts;
    values[Counter.connectionsRejected]++;
    output.begin(conn);
    output.ascii(message);
    output.end();
    closing.push(conn);
  }

  closed(conn: number, reason: number): void {
    const { connections, values } = this.#parts;
    if (reason === ETIMEDOUT) values[Counter.connectionsIdleClosed]++;
    else if (reason === ENOBUFS) values[Counter.connectionsOutputLimitClosed]++;
    else if (reason === EMSGSIZE) values[Counter.connectionsInputLimitClosed]++;
    connections.remove(conn);
  }
}

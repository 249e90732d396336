/**
 * The settings as a worker's store and pump have them: policy, memory, and the limits of connections.
 *
 * Invariant: after `settingsChanged` every connection has the limits of its kind.
 */
import type { Hub } from '../commands/messaging/hub.js';
import type { Pump } from '../native/addon.js';
import type { Connections } from './connections.js';
import type { LoopStore } from './loop.js';
import type { WorkerControl } from './worker-control.js';

const FLOOD_MARGIN = 64;
const TOO_MANY = new TextEncoder().encode('-ERR max number of clients reached\r\n');

export class Limits {
  readonly #pump: Pump;
  readonly #store: LoopStore;
  readonly #control: WorkerControl;
  readonly #connections: Connections;
  readonly #hub: Hub | null;

  constructor(pump: Pump, store: LoopStore, control: WorkerControl, connections: Connections, hub: Hub | null) {
    this.#pump = pump;
    this.#store = store;
    this.#control = control;
    this.#connections = connections;
    this.#hub = hub;
    this.#applyToAll();
  }

  settingsChanged(): void {
    this.#applyToAll();
    this.#hub?.settingsChanged();
    const { clients } = this.#connections;
    for (let conn = 0; conn < clients.length; conn++) if (clients[conn] !== null) this.apply(conn);
  }

  #applyToAll(): void {
    const { settings } = this.#control;
    this.#store.setPolicy(settings.maxmemoryPolicy);
    this.#store.setLfu(settings.lfuLogFactor, settings.lfuDecayTime);
    this.#store.setMaxMemory(settings.maxmemory);
    this.#store.sizes.set(settings.dram, settings.capacity);
    // The exact limit is the shared count (Connections.admit), with an answer in the client's protocol; the pump's own
    // limit stops a flood below it, at little cost.
    const ceiling = settings.maxclients + FLOOD_MARGIN;
    this.#pump.setGlobalLimits(ceiling, settings.clientQueryBufferLimit, TOO_MANY);
  }

  /** The limits of one connection. */
  apply(conn: number): void {
    const { settings } = this.#control;
    const client = this.#connections.at(conn);
    if (client !== null && this.#hub?.isListener(client) === true) {
      // Its replies are messages, which nobody asked for one by one: it is read on, and never idle.
      this.#pump.setLimits(conn, 0, settings.pubsubOutputBufferHard, 0);
      return;
    }
    const { clientOutputBufferSoft, clientOutputBufferHard, timeout } = settings;
    this.#pump.setLimits(conn, clientOutputBufferSoft, clientOutputBufferHard, timeout * 1000);
  }
}

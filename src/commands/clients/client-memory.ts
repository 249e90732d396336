/**
 * What a client's state takes of the worker's heap: queued commands, watched keys, subscriptions, a request that comes in parts.
 *
 * JavaScript does not tell what an object takes, so these are sums of estimates, measured on Node 20. Invariant: what stands in
 * `client.heapBytes` is in the worker's counter too; the server takes it out of there when the connection goes.
 */
import { Counter } from '../../layout/counters.js';
import type { DriverClient } from '../../protocol/driver.js';
import type { Client } from './client.js';

/** A name that a client subscribes to, beside the name: an entry in the client's set, one in the worker's map, a set of clients. */
export const SUBSCRIPTION_BYTES = 270;
/** A key that is remembered for CLIENT TRACKING, beside the key. */
export const TRACKED_KEY_BYTES = 220;
/** A prefix of keys that a client tracks, beside the prefix: the worker keeps what has changed under it. */
export const TRACKED_PREFIX_BYTES = 400;
/** A key under WATCH, beside the key. */
export const WATCHED_KEY_BYTES = 500;
export const BLOCKED_CLIENT_BYTES = 500;

/** The client has so many bytes more, or fewer. */
export function charge(client: DriverClient, counters: Float64Array, bytes: number): void {
  client.heapBytes += bytes;
  counters[Counter.clientHeapBytes] += bytes;
}

/** A value on its way to the client's command has got a place in the store, or the place is no longer the client's. */
export function setParked(client: DriverClient, counters: Float64Array, bytes: number): void {
  counters[Counter.clientParkedBytes] += bytes - client.parkedBytes;
  client.parkedBytes = bytes;
}

/** EXEC, DISCARD, RESET: nothing is queued or watched any more. */
export function endTransaction(client: Client, counters: Float64Array): void {
  const { transaction } = client;
  if (transaction !== null) charge(client, counters, -transaction.memoryBytes);
  client.transaction = null;
  endWatch(client, counters);
}

export function endWatch(client: Client, counters: Float64Array): void {
  const { watched } = client;
  if (watched === null) return;
  let bytes = 0;
  for (const { key } of watched.values()) bytes += WATCHED_KEY_BYTES + key.length;
  charge(client, counters, -bytes);
  client.watched = null;
}

/**
 * One worker's answers to the questions that go to every worker: its clients, its pause, its slow log and latencies.
 *
 * The invariant: an answer is plain data and speaks of this worker alone; whoever asked merges the answers.
 */

import type { ClientFilter, ClientRow, WorkerTopics } from '../commands/control.js';
import type { Hub } from '../commands/messaging/hub.js';
import { matchingNames } from '../commands/messaging/pubsub.js';
import { HeldPart, type Pump } from '../native/addon.js';
import { Closing } from '../protocol/driver.js';
import { memoryOf } from './client-memory.js';
import type { Connections } from './connections.js';
import { ListenerKind } from './messages.js';
import type { WorkerControl } from './worker-control.js';

export interface TopicContext {
  readonly connections: Connections;
  readonly control: WorkerControl;
  readonly pump: Pump;
  readonly nowMs: number;
  readonly hub: Hub | null;
  /** Closes a connection at once, or after its pending reply when `afterReply`. */
  closeClient(conn: number, afterReply: boolean): void;
}

type Answers = { readonly [T in keyof WorkerTopics]: (c: TopicContext, q: WorkerTopics[T][0]) => WorkerTopics[T][1] };

const answers: Answers = {
  clientDescribe: (context, { conn }) => rowOf(context, conn),

  usersChanged: (context) => {
    const { clients, drivers } = context.connections;
    for (let conn = 0; conn < clients.length; conn++) {
      const client = clients[conn];
      if (client === null) continue;
      if (drivers[conn]!.mayStay(client)) {
        context.hub?.rightsChanged(client);
        continue;
      }
      // Whoever removes its own user still gets the answer.
      context.closeClient(conn, context.control.isAwaitingAnswer(client.id));
    }
    return true;
  },

  clientList: (context, filter) => matching(context, filter).map((conn) => rowOf(context, conn)),

  clientKill: (context, filter) => {
    const victims = matching(context, filter);
    for (const conn of victims) {
      // A client that waits for an answer (the one that asks, perhaps) gets it first.
      context.closeClient(conn, context.control.isAwaitingAnswer(context.connections.at(conn)!.id));
    }
    return victims.length;
  },

  channels: ({ hub }, { pattern, isShard }) => {
    if (hub === null) return [];
    const { channels, shardChannels } = hub.subscriptions;
    return matchingNames(isShard ? shardChannels : channels, pattern);
  },

  clientSeat: ({ hub }, { id }) => (hub === null || hub.clientOf(id) === null ? -1 : hub.seat),

  clientUnblock: ({ connections, hub }, { id, withError }) => {
    const client = connections.clients.find((candidate) => candidate?.id === id);
    return client != null && hub?.unblock(client, withError) === true;
  },

  clientPause: ({ control }, { untilMs, writesOnly }) => {
    control.pause(untilMs, writesOnly);
    return true;
  },

  slowLogGet: ({ control }, { count }) => control.slowLog.newest(count),
  slowLogLength: ({ control }) => control.slowLog.length,
  slowLogReset: ({ control }) => {
    control.slowLog.reset();
    return true;
  },

  accessLogGet: ({ control }) => control.accessLog.get(),
  accessLogReset: ({ control }) => {
    control.accessLog.reset();
    return true;
  },

  // memcached's driver provides its own answers; a worker without it has none.
  memcachedPrefixes: () => [],
  memcachedPrefixesReset: () => true,

  latencyGet: ({ control }, { event }) => control.latency.get(event),
  latencyReset: ({ control }, { events }) => control.latency.reset(events),
};

export function answerTopic<T extends keyof WorkerTopics>(
  context: TopicContext,
  topic: T,
  question: WorkerTopics[T][0],
): WorkerTopics[T][1] {
  return answers[topic](context, question);
}

/** Slots of the clients that the filter means. */
function matching(context: TopicContext, filter: ClientFilter): number[] {
  const { connections } = context;
  const slots: number[] = [];
  for (let conn = 0; conn < connections.clients.length; conn++) {
    const client = connections.clients[conn];
    if (client === null || client.closing !== Closing.NO) continue;
    if (filter.ids !== undefined && !filter.ids.includes(client.id)) continue;
    if (filter.notIds?.includes(client.id) === true || client.id === filter.exceptId) continue;
    if (filter.address !== undefined && context.pump.peerAddress(conn) !== filter.address) continue;
    if (filter.localAddress !== undefined && context.pump.localAddress(conn) !== filter.localAddress) continue;
    if (filter.maxAgeSeconds !== undefined && ageSeconds(context, conn) < filter.maxAgeSeconds) continue;
    if (!connections.drivers[conn]!.matches(client, filter)) continue;
    slots.push(conn);
  }
  return slots;
}

function ageSeconds({ connections, nowMs }: TopicContext, conn: number): number {
  return Math.max(0, Math.floor((nowMs - connections.openedAtMs[conn]) / 1000));
}

/** One client as CLIENT LIST shows it. */
function rowOf(context: TopicContext, conn: number): ClientRow {
  const { connections, pump, nowMs } = context;
  const client = connections.clients[conn]!;
  const kind = connections.kinds[conn];
  const own = connections.drivers[conn]!.describe(client);
  return {
    ...own,
    flags: kind === ListenerKind.REDIS_UNIX ? `${own.flags.replace('N', '')}U` : own.flags,
    worker: context.control.workerIndex,
    id: client.id,
    address: pump.peerAddress(conn),
    localAddress: pump.localAddress(conn),
    fd: pump.fd(conn),
    kind: kind === ListenerKind.MEMCACHED || kind === ListenerKind.MEMCACHED_UNIX ? 'memcached' : 'redis',
    ageSeconds: ageSeconds(context, conn),
    idleSeconds: Math.max(0, Math.floor((nowMs - connections.activeAtMs[conn]) / 1000)),
    inputBytes: pump.held(conn, HeldPart.INPUT_BYTES),
    inputMemoryBytes: pump.held(conn, HeldPart.INPUT_CAPACITY),
    parkedBytes: client.parkedBytes,
    outputQueuedBytes: pump.outputQueued(conn),
    outputChunks: pump.held(conn, HeldPart.OUTPUT_CHUNKS),
    outputMemoryBytes: pump.held(conn, HeldPart.OUTPUT_CAPACITY),
    memoryBytes: memoryOf(context, conn),
    bytesIn: connections.bytesIn[conn],
    bytesOut: connections.bytesOut[conn],
  };
}

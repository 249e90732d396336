/** stats conns: what listens, and the connections of all workers. */
import { memcachedListeners } from '../../config/index.js';
import type { ClientRow } from '../control.js';
import type { MemcachedContext } from './context.js';
import type { StatSink } from './stats.js';

/** All workers answer for their connections. */
export function connsStats(context: MemcachedContext, sink: StatSink): void {
  const { client, control } = context;
  if (control === null) return sink.end();
  control.askWorkers(client, 'clientList', {}, (answers) => {
    listeners(context, sink);
    for (const row of answers.flat()) {
      if (row.kind === 'memcached') connection(row, row.id === client.id, sink);
    }
    sink.end();
  });
}

/** Each worker has a socket of its own for each address; they are shown as one, numbered behind all descriptors. */
function listeners(context: MemcachedContext, sink: StatSink): void {
  const { memcachedUnix } = context.settings;
  const addresses: string[] = [];
  for (const { host, port, udpPort } of memcachedListeners(context.settings)) {
    const at = host.includes(':') ? `6:[${host}]` : `:${host}`;
    if (port !== 0) addresses.push(`tcp${at}:${port}`);
    if (udpPort !== 0) addresses.push(`udp${at}:${udpPort}`);
  }
  if (memcachedUnix !== '') addresses.push(`unix:${memcachedUnix}`);
  for (const [index, address] of addresses.entries()) {
    const number = FIRST_LISTENER + index;
    sink.stat(`${number}:addr`, address);
    sink.stat(`${number}:state`, address.startsWith('udp') ? 'conn_read' : 'conn_listening');
    sink.stat(`${number}:secs_since_last_cmd`, 0);
  }
}

/** Above any descriptor that a process may have. */
const FIRST_LISTENER = 1_048_576;

function connection(row: ClientRow, isAsking: boolean, sink: StatSink): void {
  const isUnix = !/:\d+$/.test(row.address);
  sink.stat(`${row.fd}:addr`, isUnix ? `unix:${row.localAddress}` : `tcp:${row.address}`);
  sink.stat(`${row.fd}:listen_addr`, `${isUnix ? 'unix' : 'tcp'}:${row.localAddress}`);
  sink.stat(`${row.fd}:state`, isAsking ? 'conn_parse_cmd' : (row.state ?? 'conn_read'));
  sink.stat(`${row.fd}:secs_since_last_cmd`, row.idleSeconds);
}

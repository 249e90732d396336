/**
 * The text form of clients: one line each, as CLIENT LIST and CLIENT INFO return it, and the parsing of client filters.
 */

import type { Context } from '../context.js';
import type { ClientFilter, ClientRow } from '../control.js';
import { SYNTAX } from '../errors.js';

const CLIENT_TYPES = new Map([
  ['normal', 'normal'],
  ['slave', 'slave'],
  ['replica', 'slave'],
  ['pubsub', 'pubsub'],
  ['master', 'master'],
]);

/** Buffers belong to the worker, not to a connection, so rbs, rbp and obl are 0; what waits for the client is in omem and tot-mem. */
export function clientLine(row: ClientRow): string {
  const kind = row.kind === 'redis' ? '' : ` protocol=${row.kind}`;
  return (
    `id=${row.id} addr=${row.address} laddr=${row.localAddress} fd=${row.fd} name=${row.name}` +
    ` age=${row.ageSeconds} idle=${row.idleSeconds} flags=${row.flags} db=${row.db} sub=${row.subscriptions ?? 0}` +
    ` psub=${row.patterns ?? 0} ssub=${row.shardSubscriptions ?? 0}` +
    ` multi=${row.multi} qbuf=${Math.max(row.queryBytes, row.inputBytes)} qbuf-free=${row.inputMemoryBytes - row.inputBytes}` +
    ` argv-mem=${row.parkedBytes} multi-mem=${row.transactionBytes} rbs=0 rbp=0 obl=0` +
    ` oll=${row.outputChunks} omem=${row.outputMemoryBytes} tot-mem=${row.memoryBytes}` +
    ` events=${row.outputQueuedBytes > 0 ? 'rw' : 'r'} cmd=${row.lastCommand} user=${row.user} redir=${row.redirect ?? -1}` +
    ` resp=${row.respVersion} lib-name=${row.libraryName} lib-ver=${row.libraryVersion}` +
    ` tot-net-in=${row.bytesIn} tot-net-out=${row.bytesOut} tot-cmds=${row.commands} watch=${row.watch} worker=${row.worker}${kind}`
  );
}

/** Lines in the order of ids. */
export function clientLines(answers: readonly (readonly ClientRow[])[]): string {
  const rows = answers.flat().sort((a, b) => a.id - b.id);
  return rows.map((row) => `${clientLine(row)}\n`).join('');
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** CLIENT LIST [TYPE type] [ID id ...]. Null = an error has been replied. */
export function parseListFilter(context: Context): ClientFilter | null {
  if (context.argc === 2) return {};
  if (context.argc === 4 && context.argIs(2, 'TYPE')) {
    const type = clientType(context, 3);
    return type === null ? null : { type };
  }
  if (context.argc > 3 && context.argIs(2, 'ID')) {
    const ids: number[] = [];
    for (let i = 3; i < context.argc; i++) {
      const id = context.argInteger(i);
      if (Number.isNaN(id)) return refuse(context, 'ERR Invalid client ID');
      ids.push(id);
    }
    return { ids };
  }
  return refuse(context, SYNTAX);
}

/** CLIENT KILL's options from argument 2 on. Null = an error has been replied. */
export function parseKillFilter(context: Context): ClientFilter | null {
  const filter: Mutable<ClientFilter> = { exceptId: context.client.id };
  for (let i = 2; i < context.argc; i += 2) {
    if (i + 1 === context.argc) return refuse(context, SYNTAX);
    const value = context.argString(i + 1);
    if (context.argIs(i, 'ID')) {
      const id = context.argInteger(i + 1);
      if (Number.isNaN(id) || id < 1) return refuse(context, 'ERR client-id should be greater than 0');
      filter.ids = [id];
    } else if (context.argIs(i, 'MAXAGE')) {
      const age = context.argInteger(i + 1);
      if (Number.isNaN(age)) return refuse(context, 'ERR maxage is not an integer or out of range');
      if (age <= 0) return refuse(context, 'ERR maxage should be greater than 0');
      filter.maxAgeSeconds = age;
    } else if (context.argIs(i, 'TYPE')) {
      const type = clientType(context, i + 1);
      if (type === null) return null;
      filter.type = type;
    } else if (context.argIs(i, 'ADDR')) {
      filter.address = value;
    } else if (context.argIs(i, 'LADDR')) {
      filter.localAddress = value;
    } else if (context.argIs(i, 'USER')) {
      if (context.environment.users.get(value) === undefined) return refuse(context, `ERR No such user '${value}'`);
      filter.user = value;
    } else if (context.argIs(i, 'SKIPME')) {
      if (context.argIs(i + 1, 'NO')) delete filter.exceptId;
      else if (context.argIs(i + 1, 'YES')) filter.exceptId = context.client.id;
      else return refuse(context, SYNTAX);
    } else {
      return refuse(context, SYNTAX);
    }
  }
  return filter;
}

function clientType(context: Context, argument: number): string | null {
  const word = context.argString(argument);
  const type = CLIENT_TYPES.get(word.toLowerCase());
  return type ?? refuse(context, `ERR Unknown client type '${word}'`);
}

function refuse(context: Context, text: string): null {
  context.reply.error(text);
  return null;
}

/**
 * One worker's protocol drivers, by the kind of listener a connection came from.
 *
 * The only place where the server names protocols.
 */
import { join } from 'node:path';
import type { Environment } from '../commands/environment.js';
import { Executor } from '../commands/executor.js';
import { createCommandTable } from '../commands/families.js';
import { MemcachedDriver } from '../commands/memcached/driver.js';
import type { Hub } from '../commands/messaging/hub.js';
import { RespDriver } from '../commands/resp-driver.js';
import { LIBRARIES_FILE } from '../commands/scripting/function-libraries.js';
import { Scripting } from '../commands/scripting/scripting.js';
import type { CounterRow, CounterTotals } from '../layout/counters.js';
import type { Driver } from '../protocol/driver.js';
import type { Output } from '../protocol/output.js';
import { Reply } from '../protocol/resp/reply.js';
import type { Keyspace } from '../store/keyspace.js';
import { ListenerKind, reportOf } from './messages.js';
import type { WorkerControl } from './worker-control.js';

export interface DriverParts {
  readonly keyspace: Keyspace;
  readonly output: Output;
  readonly control: WorkerControl;
  readonly counters: CounterRow;
  readonly totals: CounterTotals;
  readonly sharedScripts: SharedArrayBuffer;
}

export interface Drivers {
  /** By ListenerKind. */
  readonly drivers: readonly Driver[];
  readonly hub: Hub;
  /** A further one for Redis clients: see ScriptTurns. */
  readonly makeScriptDriver: () => Driver;
}

export function createDrivers({ keyspace, output, control, counters, totals, sharedScripts }: DriverParts): Drivers {
  let scripting: Scripting | null = null;
  const table = createCommandTable();
  const environment: Environment = {
    keyspace,
    users: control.createUsers(table),
    settings: control.settings,
    counters,
    totals,
    control,
    scripting: () => {
      scripting ??= new Scripting(
        sharedScripts,
        executor,
        control.workerIndex,
        join(control.settings.pool, LIBRARIES_FILE),
      );
      return scripting;
    },
    reportFault: (error) => {
      const { message, stack } = reportOf(error);
      control.log('warning', `a command failed by a fault of the server: ${stack ?? message}`);
    },
  };
  const reply = new Reply(output);
  const executor = new Executor(environment, table, reply);
  const redis = new RespDriver(executor, reply);
  const drivers: Driver[] = [];
  drivers[ListenerKind.REDIS] = redis;
  drivers[ListenerKind.REDIS_UNIX] = redis;
  const memcached = new MemcachedDriver(environment, output);
  drivers[ListenerKind.MEMCACHED] = memcached;
  drivers[ListenerKind.MEMCACHED_UDP] = memcached;
  drivers[ListenerKind.MEMCACHED_UNIX] = memcached;
  const makeScriptDriver = (): Driver => {
    const second = new Reply(output);
    return new RespDriver(new Executor(environment, executor.table, second), second);
  };
  return { drivers, hub: executor.hub, makeScriptDriver };
}

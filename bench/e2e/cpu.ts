/**
 * Server CPU per request without pipelining, where the kernel's TCP path is most of the cost: against Redis over RESP and
 * against memcached over its text protocol. All threads of the server count, user and kernel time, in alternating pairs.
 */
import { fleetOf } from '../harness/fleet.js';
import { type LoadResult, type Protocol, runLoad } from '../harness/load.js';
import { type Bench, type BenchContext, measured } from '../harness/measurement.js';
import { alternate, pick } from '../harness/pairs.js';
import { countLabel } from '../harness/profile.js';
import type { Server } from '../harness/servers.js';
import { median } from '../harness/statistics.js';

function describe(results: Readonly<Record<string, readonly LoadResult[]>>): string {
  return Object.entries(results)
    .map(([name, list]) => {
      const user = median(list.map((r) => r.serverUserNs / r.requests / 1e3));
      const rate = median(list.map((r) => r.perSecond));
      return `${name}: ${user.toFixed(2)} us of it user, ${Math.round(rate / 1000)} k/s`;
    })
    .join('; ');
}

async function compare(
  context: BenchContext,
  protocol: Protocol,
  keyCount: number,
  servers: readonly Server[],
): Promise<void> {
  for (const test of ['get', 'set'] as const) {
    context.say(`cpu: ${test} over ${protocol}, ${countLabel(keyCount)} keys`);
    const results = await alternate(
      context.profile.pairs,
      servers.map((server) => ({
        name: server.name,
        server,
        run: () =>
          runLoad(context.cores.load, server, {
            mode: 'closed',
            protocol,
            keys: keyCount,
            setFraction: test === 'set' ? 1 : 0,
            seconds: context.profile.runSeconds,
          }),
      })),
    );
    const samples = pick(results, (result) => result.serverCpuNs / result.requests / 1e3);
    const metric = `cpu.${test}.p1.${countLabel(keyCount)}.${protocol}`;
    context.report(measured(metric, 'us/request', 'less', samples, describe(results)));
  }
}

async function run(context: BenchContext): Promise<void> {
  for (const keyCount of context.profile.keyCounts) {
    const fleet = await fleetOf(context, keyCount);
    await compare(context, 'resp', keyCount, [fleet.entresol, fleet.redis]);
    if (fleet.entresol.memcachedPort !== 0)
      await compare(context, 'memcached', keyCount, [fleet.entresol, fleet.memcached]);
    for (const server of [fleet.entresol, fleet.redis, fleet.memcached]) server.park();
  }
}

export const cpu: Bench = {
  name: 'cpu',
  about: 'server CPU per request at pipeline 1 against Redis and memcached',
  usesFleet: true,
  run,
};

/**
 * 99.9th percentile at half load: open loop, Poisson arrivals on 50 connections, 90 % GET, latency counted from when a
 * request should have been sent. Both servers get the same rate: half of the lower of the two capacities.
 */
import { fleetOf } from '../harness/fleet.js';
import { type LoadOptions, runLoad } from '../harness/load.js';
import { type Bench, type BenchContext, measured } from '../harness/measurement.js';
import { alternate, pick } from '../harness/pairs.js';
import { countLabel } from '../harness/profile.js';
import { median } from '../harness/statistics.js';

async function run(context: BenchContext): Promise<void> {
  const { profile, cores } = context;
  for (const keyCount of profile.keyCounts) {
    const fleet = await fleetOf(context, keyCount);
    const servers = [fleet.entresol, fleet.redis];
    const base: Omit<LoadOptions, 'mode'> = { protocol: 'resp', keys: keyCount, setFraction: 0.1 };
    context.say(`latency: capacities, ${countLabel(keyCount)} keys`);
    const capacities = await alternate(
      Math.min(3, profile.pairs),
      servers.map((server) => ({
        name: server.name,
        server,
        run: () => runLoad(cores.load, server, { ...base, mode: 'closed', seconds: profile.runSeconds }),
      })),
    );
    const perServer = Object.values(pick(capacities, (result) => result.perSecond)).map(median);
    const rate = Math.round(0.5 * Math.min(...perServer));
    context.say(`latency: ${rate} requests/s`);
    const results = await alternate(
      profile.pairs,
      servers.map((server) => ({
        name: server.name,
        server,
        run: () => runLoad(cores.load, server, { ...base, mode: 'open', rate, seconds: profile.latencySeconds }),
      })),
    );
    const note = `open loop at ${rate} requests/s, half of the lower capacity (${perServer.map(Math.round).join(' and ')})`;
    for (const percentile of ['p50', 'p99', 'p999'] as const) {
      const samples = pick(results, (result) => result.latencyUs[percentile]);
      context.report(measured(`latency.${percentile}.${countLabel(keyCount)}`, 'us', 'less', samples, note));
    }
    for (const server of servers) server.park();
  }
}

export const latency: Bench = { name: 'latency', about: 'p99.9 at 50 % load against Redis', usesFleet: true, run };

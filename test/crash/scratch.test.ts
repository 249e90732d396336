import { cpSync, rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { it } from 'vitest';
import { stateAfter, WorkloadClient } from '../helpers/durable-workload.js';
import { makePool, removePool } from '../helpers/pool.js';
import { startTestServer } from '../helpers/server.js';

const N = Number(process.env.N ?? 20);
const policy = process.env.POLICY ?? 'always';
it('rounds', { timeout: 3_600_000 }, async () => {
  for (let round = 0; round < N; round++) {
    const pool = await makePool();
    const start = () =>
      startTestServer({
        pool,
        workers: 2,
        dram: process.env.DRAM ?? '32mb',
        args: [
          '--durability=durable',
          `--appendfsync=${policy}`,
          `--auto-aof-rewrite-min-size=${process.env.MIN ?? '200kb'}`,
        ],
      });
    let server = await start();
    const clients = await Promise.all(
      Array.from({ length: 5 }, (_, i) => WorkloadClient.connect(`client${i}`, server.redisPort, server.memcachedPort)),
    );
    const runs = clients.map((c) => c.run(1_000_000));
    await sleep(200 + Math.random() * Number(process.env.SPAN ?? 800));
    await server.kill();
    const done = await Promise.all(runs);
    const out1 = server.output();
    for (const c of clients) c.close();
    cpSync(`${pool}/effects`, `/tmp/durable/last`, { recursive: true });
    rmSync(/\/dev\/shm\/entresol-[^\s,;)]+/.exec(out1)![0]);
    server = await start();
    const readers = await Promise.all(
      Array.from({ length: 5 }, (_, i) => WorkloadClient.connect(`client${i}`, server.redisPort, server.memcachedPort)),
    );
    const evicted = /evicted_keys:(\d+)/.exec(String(await readers[0].ask('INFO', 'stats')))?.[1];
    let failed = false;
    for (const [i, r] of readers.entries()) {
      const s = await r.readState();
      const t = JSON.stringify(s);
      let ok = false;
      for (let n = policy === 'always' ? done[i] : 0; n <= done[i] + 1; n++) ok ||= JSON.stringify(stateAfter(n)) === t;
      if (ok) continue;
      failed = true;
      const w = stateAfter(done[i]);
      const bad = Object.keys(w).filter((k) => JSON.stringify(s[k]) !== JSON.stringify(w[k]));
      console.log(
        'FAILED round',
        round,
        r.name,
        done[i],
        bad.map((k) => `${k}: ${JSON.stringify(s[k]).slice(0, 60)} want ${JSON.stringify(w[k]).slice(0, 60)}`),
      );
    }
    if (failed) {
      cpSync('/tmp/durable/last', `/tmp/durable/failed-${Date.now()}`, { recursive: true });
      console.log(out1, server.output(), 'evicted', evicted);
    }
    rmSync('/tmp/durable/last', { recursive: true });
    console.log(
      'round',
      round,
      done.join(),
      'evicted',
      evicted,
      failed ? 'FAILED' : '',
      /checkpoint.*/.exec(out1)?.[0] ?? '',
    );
    for (const r of readers) r.close();
    await server.stop();
    await removePool(pool);
  }
});

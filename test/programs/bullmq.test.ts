/**
 * BullMQ at work: queues of delayed, repeated, prioritized and failing jobs, and flows of parents and children. It lives in Lua scripts,
 * streams, sorted sets and blocking pops, of two workers of ours.
 */
import { FlowProducer, type Job, Queue, QueueEvents, Worker } from 'bullmq';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startTestServer, type TestServer } from '../helpers/server.js';

let server: TestServer;
let open: { close(): Promise<unknown> }[] = [];

beforeAll(async () => {
  server = await startTestServer({ workers: 2, memcachedPort: 0, args: ['--maxmemory-policy=noeviction'] });
});

afterEach(async () => {
  await Promise.all(open.map((each) => each.close()));
  open = [];
});

afterAll(async () => {
  await server?.stop();
});

const options = (): { connection: { host: string; port: number; maxRetriesPerRequest: null } } => ({
  connection: { host: '127.0.0.1', port: server.redisPort, maxRetriesPerRequest: null },
});

function keep<T extends { close(): Promise<unknown> }>(each: T): T {
  open.push(each);
  return each;
}

function queueOf(name: string): { queue: Queue; events: QueueEvents } {
  return { queue: keep(new Queue(name, options())), events: keep(new QueueEvents(name, options())) };
}

function work(name: string, run: (job: Job) => Promise<unknown>, concurrency = 1): Worker {
  return keep(new Worker(name, run, { ...options(), concurrency, drainDelay: 1 }));
}

describe('BullMQ', () => {
  it('runs many jobs, each once, and tells when they are done', async () => {
    const { queue, events } = queueOf('many');
    // Each job that is waited for listens.
    for (const each of [queue, events]) each.setMaxListeners(0);
    await events.waitUntilReady();
    const seen: number[] = [];
    work(
      'many',
      async ({ data }) => {
        seen.push(data.n);
        return data.n * 2;
      },
      8,
    );
    const jobs = await queue.addBulk(Array.from({ length: 200 }, (_, n) => ({ name: 'double', data: { n } })));
    const results = await Promise.all(jobs.map((job) => job.waitUntilFinished(events, 20_000)));
    expect(results).toEqual(jobs.map((_, n) => n * 2));
    expect(seen.sort((a, b) => a - b)).toEqual(jobs.map((_, n) => n));
    expect(await queue.getJobCounts('waiting', 'active', 'completed', 'failed')).toEqual({
      waiting: 0,
      active: 0,
      completed: 200,
      failed: 0,
    });
  });

  it('runs delayed jobs when their time has come, and urgent ones first', async () => {
    const { queue, events } = queueOf('order');
    const order: string[] = [];
    const delayed = await queue.add('delayed', {}, { delay: 1500 });
    const addedAt = Date.now();
    const rest = await queue.addBulk([
      { name: 'low', data: {}, opts: { priority: 10 } },
      { name: 'high', data: {}, opts: { priority: 1 } },
    ]);
    expect((await queue.getDelayed()).map(({ name }) => name)).toEqual(['delayed']);
    work('order', async ({ name }) => {
      order.push(name);
      return Date.now();
    });
    const ranAt = await delayed.waitUntilFinished(events, 20_000);
    await Promise.all(rest.map((job) => job.waitUntilFinished(events, 20_000)));
    expect(order).toEqual(['high', 'low', 'delayed']);
    expect(ranAt - addedAt).toBeGreaterThanOrEqual(1400);
  });

  it('repeats jobs by schedule', async () => {
    const { queue } = queueOf('repeated');
    let runs = 0;
    work('repeated', async () => ++runs);
    await queue.upsertJobScheduler('tick', { every: 300 }, { name: 'tick' });
    await expect.poll(() => runs, { timeout: 20_000 }).toBeGreaterThanOrEqual(4);
    expect((await queue.getJobSchedulers()).map(({ key }) => key)).toEqual(['tick']);
    expect(await queue.removeJobScheduler('tick')).toBe(true);
    expect(await queue.getJobSchedulers()).toEqual([]);
  });

  it('tries failing jobs again, then gives up', async () => {
    const { queue, events } = queueOf('failing');
    work('failing', async ({ attemptsMade, name }) => {
      if (name === 'hopeless' || attemptsMade < 2) throw new Error(`attempt ${attemptsMade}`);
      return 'at last';
    });
    const opts = { attempts: 3, backoff: { type: 'fixed', delay: 50 } };
    const stubborn = await queue.add('stubborn', {}, opts);
    const hopeless = await queue.add('hopeless', {}, opts);
    expect(await stubborn.waitUntilFinished(events, 20_000)).toBe('at last');
    await expect(hopeless.waitUntilFinished(events, 20_000)).rejects.toThrow('attempt 2');
    expect((await queue.getFailed()).map(({ name, attemptsMade }) => [name, attemptsMade])).toEqual([['hopeless', 3]]);
    await hopeless.retry();
    await expect.poll(() => queue.getFailedCount(), { timeout: 20_000 }).toBe(1);
  });

  it('runs the children of a flow before their parent, which gets their results', async () => {
    const { events } = queueOf('parents');
    work('children', async ({ data }) => data.n * 10, 2);
    work('parents', async (job) => {
      const values = Object.values(await job.getChildrenValues<number>());
      return values.reduce((sum, value) => sum + value, 0);
    });
    const flow = keep(new FlowProducer(options()));
    const { job, children } = await flow.add({
      name: 'sum',
      queueName: 'parents',
      children: [1, 2, 3, 4].map((n) => ({ name: 'part', queueName: 'children', data: { n } })),
    });
    expect(children?.length).toBe(4);
    expect(await job.waitUntilFinished(events, 20_000)).toBe(100);
  });

  it('pauses, drains and obliterates a queue', async () => {
    const { queue, events } = queueOf('stopped');
    await queue.pause();
    const job = await queue.add('later', {});
    await queue.add('never', {});
    expect(await queue.isPaused()).toBe(true);
    work('stopped', async () => 'done');
    await queue.remove((await queue.getJobs()).find(({ name }) => name === 'never')?.id ?? '');
    await queue.resume();
    expect(await job.waitUntilFinished(events, 20_000)).toBe('done');
    await queue.obliterate({ force: true });
    expect(await queue.getJobCountByTypes('completed', 'waiting', 'failed')).toBe(0);
  });
});

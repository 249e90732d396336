import { beforeEach, describe, expect, it } from 'vitest';
import { Session } from '../../test/helpers/session.js';
import { testStore } from '../../test/helpers/store.js';

let session: Session;

beforeEach(() => {
  session = new Session(testStore());
});

/** `name -> [calls, timed calls]` of LATENCY HISTOGRAM. */
function histogram(request: string): Map<string, [calls: number, timed: number]> {
  const reply = session.send(request);
  const found = new Map<string, [number, number]>();
  const pattern =
    /\$\d+\r\n([a-z|]+)\r\n\*4\r\n\$5\r\ncalls\r\n:(\d+)\r\n\$14\r\nhistogram_usec\r\n\*\d+\r\n((?::\d+\r\n)*)/g;
  for (const [, name, calls, numbers] of reply.matchAll(pattern)) {
    const last = numbers.trimEnd().split('\r\n').at(-1);
    found.set(name, [Number(calls), Number(last?.slice(1) ?? 0)]);
  }
  return found;
}

describe('LATENCY HISTOGRAM', () => {
  it('counts the calls of each command, and times those that come on their own', () => {
    for (let i = 0; i < 5; i++) session.send('SET k v');
    session.send('GET k');
    session.send('CLIENT ID');
    const all = histogram('LATENCY HISTOGRAM');
    expect(all.get('set')).toEqual([5, 5]);
    expect(all.get('get')).toEqual([1, 1]);
    expect(all.get('client|id')).toEqual([1, 1]);
    expect(all.has('incr')).toBe(false);
  });

  it('shows the commands that are named, a container with its subcommands', () => {
    session.send('SET k v');
    session.send('CLIENT ID');
    session.send('CLIENT GETNAME');
    expect([...histogram('LATENCY HISTOGRAM set nosuch incr').keys()]).toEqual(['set']);
    expect([...histogram('LATENCY HISTOGRAM client').keys()].sort()).toEqual(['client|getname', 'client|id']);
    expect(session.send('LATENCY HISTOGRAM nosuch')).toBe('*0\r\n');
  });

  it('begins anew with CONFIG RESETSTAT and rests while latency-tracking is off', () => {
    session.send('SET k v');
    session.send('CONFIG RESETSTAT');
    expect(histogram('LATENCY HISTOGRAM set').size).toBe(0);
    session.settings.latencyTracking = false;
    session.send('SET k v');
    expect(histogram('LATENCY HISTOGRAM set').get('set')).toEqual([1, 0]);
  });
});

describe('INFO latencystats', () => {
  it('gives the percentiles that the setting names', () => {
    session.settings.latencyTrackingInfoPercentiles = '0 50 99.9';
    session.send('SET k v');
    expect(session.send('INFO latencystats')).toMatch(
      /latency_percentiles_usec_set:p0=\d+\.000,p50=\d+\.000,p99\.9=\d+\.000\r\n/,
    );
  });
});

describe('statistics of failures', () => {
  it('EXEC has not failed with the commands in it', () => {
    session.send('SET k v');
    for (const request of ['MULTI', 'INCR k', 'GET k', 'EXEC']) session.send(request);
    const info = session.send('INFO commandstats');
    expect(info).toMatch(/cmdstat_incr:calls=1,.*rejected_calls=0,failed_calls=1/);
    expect(info).toMatch(/cmdstat_exec:calls=1,.*rejected_calls=0,failed_calls=0/);
    session.send('EXEC');
    expect(session.send('INFO commandstats')).toMatch(/cmdstat_exec:calls=2,.*failed_calls=1/);
  });
});

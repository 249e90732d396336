import { beforeEach, describe, expect, it } from 'vitest';
import { Session } from '../../../test/helpers/session.js';
import { testStore } from '../../../test/helpers/store.js';
import { human } from './info.js';

let session: Session;

beforeEach(() => {
  session = new Session(testStore());
});

/** Fields by name, sections by their titles. */
function info(request: string): { readonly titles: string[]; readonly fields: Map<string, string> } {
  const reply = session.send(request);
  const text = reply.slice(reply.indexOf('\r\n') + 2);
  const lines = text.split('\r\n').filter((line) => line !== '');
  const fields = lines.filter((line) => line.includes(':')).map((line) => line.split(/:(.*)/s).slice(0, 2));
  return {
    titles: lines.filter((line) => line.startsWith('# ')).map((line) => line.slice(2)),
    fields: new Map(fields as [string, string][]),
  };
}

describe('INFO', () => {
  it('tells how the tiers share the reads', () => {
    session.send('CONFIG RESETSTAT');
    session.send('SET k v');
    session.send('GET k');
    session.send('GET none');
    const { fields } = info('INFO tiers');
    expect(fields.get('dram_hits')).toBe('1');
    expect(fields.get('dram_hit_ratio')).toBe('0.5000');
    for (const field of [
      'capacity_hits',
      'items_demoted',
      'items_promoted',
      'writes_avoided',
      'capacity_bytes_written',
    ]) {
      expect(fields.get(field), field).toBe('0');
    }
    expect(fields.get('write_amplification')).toBe('0.0000');
  });

  it('has the fields that redis_exporter reads', () => {
    session.send('SET k v');
    session.send('GET k');
    session.send('GET none');
    session.send('NOPE');
    const { fields } = info('INFO ALL');
    for (const field of [
      'redis_version',
      'redis_mode',
      'os',
      'uptime_in_seconds',
      'process_id',
      'tcp_port',
      'connected_clients',
      'blocked_clients',
      'maxclients',
      'used_memory',
      'used_memory_rss',
      'used_memory_peak',
      'maxmemory',
      'mem_fragmentation_ratio',
      'rdb_changes_since_last_save',
      'rdb_last_bgsave_status',
      'aof_enabled',
      'loading',
      'total_connections_received',
      'total_commands_processed',
      'instantaneous_ops_per_sec',
      'expired_keys',
      'evicted_keys',
      'latest_fork_usec',
      'role',
      'connected_slaves',
      'used_cpu_sys',
      'used_cpu_user',
      'cluster_enabled',
    ]) {
      expect(fields.has(field), field).toBe(true);
    }
    expect(fields.get('keyspace_hits')).toBe('1');
    expect(fields.get('keyspace_misses')).toBe('1');
    expect(fields.get('total_error_replies')).toBe('1');
    expect(fields.get('errorstat_ERR')).toBe('count=1');
    expect(fields.get('db0')).toBe('keys=1,expires=0,avg_ttl=0');
    expect(fields.get('cmdstat_get')).toMatch(
      /^calls=2,usec=\d+,usec_per_call=\d+\.\d\d,rejected_calls=0,failed_calls=0$/,
    );
  });

  it('shows the sections that are asked for', () => {
    expect(info('INFO').titles).toEqual([
      'Server',
      'Clients',
      'Memory',
      'Persistence',
      'Stats',
      'Replication',
      'CPU',
      'Modules',
      'Errorstats',
      'Cluster',
      'Keyspace',
    ]);
    expect(info('INFO server CPU').titles).toEqual(['Server', 'CPU']);
    expect(info('INFO commandstats').titles).toEqual(['Commandstats']);
    expect(info('INFO all').titles).not.toContain('Modules');
    expect(info('INFO everything').titles).toContain('Modules');
    expect(info('INFO nothing-like-this').titles).toEqual([]);
  });

  it('counts from zero after CONFIG RESETSTAT', () => {
    session.send('GET none');
    session.send('SET k v');
    session.send('GET k');
    expect(info('INFO tiers').fields.get('dram_hits')).not.toBe('0');
    session.send('CONFIG RESETSTAT');
    expect(info('INFO tiers').fields.get('dram_hits')).toBe('0');
    const { fields } = info('INFO stats');
    expect(fields.get('keyspace_misses')).toBe('0');
  });

  it('prints sizes as people read them', () => {
    expect([0, 1023, 1024, 1536, 5 * 1024 ** 3].map(human)).toEqual(['0B', '1023B', '1.00K', '1.50K', '5.00G']);
  });
});

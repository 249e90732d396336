/** What the server says when it is ready: what listens, what it holds, what to try. */
import { approximateSize, type Settings } from '../config/index.js';

export interface Addresses {
  /** host:port */
  readonly redis?: string;
  readonly memcached?: string;
  /** Path of the unix socket. */
  readonly unix?: string;
  readonly udp?: string;
  readonly memcachedUnix?: string;
}

function split(address: string): { host: string; port: string } {
  const colon = address.lastIndexOf(':');
  const host = address.slice(0, colon).replace(/^\[|\]$/g, '');
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return { host: reachable, port: address.slice(colon + 1) };
}

function redisExample({ redis, unix }: Addresses, hasPassword: boolean): string | undefined {
  const auth = hasPassword ? ' --askpass' : '';
  if (redis !== undefined) {
    const { host, port } = split(redis);
    const hostFlag = host === '127.0.0.1' ? '' : ` -h ${host}`;
    return `redis-cli${hostFlag} -p ${port}${auth} SET greeting hello`;
  }
  return unix === undefined ? undefined : `redis-cli -s ${unix}${auth} SET greeting hello`;
}

export function readyLines(version: string, settings: Settings, addresses: Addresses, dramPath: string): string {
  const workers = settings.workers === 1 ? '1 worker' : `${settings.workers} workers`;
  const lines = [`entresol ${version} is ready: ${workers}`];
  if (addresses.redis !== undefined) lines.push(`  Redis      ${addresses.redis}`);
  if (addresses.unix !== undefined) lines.push(`  Redis      ${addresses.unix} (unix socket)`);
  if (addresses.memcached !== undefined) lines.push(`  memcached  ${addresses.memcached}`);
  if (addresses.memcachedUnix !== undefined) lines.push(`  memcached  ${addresses.memcachedUnix} (unix socket)`);
  if (addresses.udp !== undefined) lines.push(`  memcached  ${addresses.udp} (UDP)`);
  lines.push(`  DRAM       ${approximateSize(settings.dram)}, ${dramPath}`);
  if (settings.capacity !== 0) {
    const emulated = settings.emulate === 'no' ? '' : `, slowed down to ${settings.emulate} (--emulate)`;
    lines.push(`  capacity   ${approximateSize(settings.capacity)}, ${settings.tier} in ${settings.pool}${emulated}`);
  }

  const examples: string[] = [];
  const redis = redisExample(addresses, settings.requirepass !== '');
  if (redis !== undefined) examples.push(redis);
  // With a password a memcached client must give it first, which is more than a line of shell shows well.
  if (addresses.memcached !== undefined && settings.requirepass === '') {
    const { host, port } = split(addresses.memcached);
    examples.push(`printf 'get greeting\\r\\nquit\\r\\n' | nc ${host} ${port}`);
  }
  if (examples.length > 0) lines.push('Try:', ...examples.map((example) => `  ${example}`));
  lines.push('Stop with Ctrl-C.');
  return lines.join('\n');
}

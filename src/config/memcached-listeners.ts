/**
 * Where the memcached protocols listen: each address with its ports. `memcached-bind` gives addresses ports of their own; without it they are
 * those of `bind`, on one port.
 */
import { parseEndpoint } from './endpoint.js';
import type { Settings } from './schema.js';

export interface MemcachedListener {
  readonly host: string;
  /** 0 = off. */
  readonly port: number;
  readonly udpPort: number;
}

export function memcachedListeners(settings: Readonly<Settings>): readonly MemcachedListener[] {
  const { bind, memcachedBind, memcachedPort, memcachedUdpPort } = settings;
  const endpoints = memcachedBind.length === 0 ? bind : memcachedBind;
  return endpoints.map((text) => {
    const { host, port } = parseEndpoint(text)!;
    return {
      host,
      port: memcachedPort === 0 ? 0 : (port ?? memcachedPort),
      udpPort: memcachedUdpPort === 0 ? 0 : (port ?? memcachedUdpPort),
    };
  });
}

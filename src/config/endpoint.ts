/** An address to listen on with a port of its own, or without: text <-> parts. */
import { isIP } from './address.js';

export interface Endpoint {
  readonly host: string;
  /** Null = what the setting of the protocol says. */
  readonly port: number | null;
}

/** IP, IPv4:PORT, [IPv6], [IPv6]:PORT, with `*` and `localhost` for an IP; null for anything else. */
export function parseEndpoint(text: string): Endpoint | null {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const name = bracketed ?? plain ?? text;
  const host = name === 'localhost' ? '127.0.0.1' : name === '*' ? '0.0.0.0' : name;
  const port = digits === undefined ? null : Number(digits);
  if (!isIP(host) || (port !== null && (port < 1 || port > 65_535))) return null;
  return { host, port };
}

export function formatEndpoint({ host, port }: Endpoint): string {
  if (port === null) return host;
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

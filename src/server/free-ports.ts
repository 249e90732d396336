/**
 * Free TCP ports, held until a server listens on them.
 *
 * A port that was merely found free could be given to two servers at once: ours share ports among their workers
 * (SO_REUSEPORT), so neither would notice. A held one is in use for the kernel, which gives it to nobody else.
 */
import { addon } from '../native/addon.js';

export interface HeldPorts {
  readonly ports: readonly number[];
  /** Call it when the server listens. */
  release(): void;
}

const BACKLOG = 1;
/** The holder never receives: its buffers are as small as the addon allows. */
const HOLDER = { inputBytes: 65_536, outputBytes: 65_536, maxEvents: 8, receiveBytes: 4096 };

export function holdFreePorts(host: string, count: number): HeldPorts {
  const pump = addon.createPump(HOLDER);
  try {
    const ports = Array.from({ length: count }, () => pump.listenerPort(pump.listenTcp(host, 0, BACKLOG, 0)));
    return { ports, release: () => pump.destroy() };
  } catch (error) {
    pump.destroy();
    throw error;
  }
}

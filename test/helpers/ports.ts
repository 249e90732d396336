/** Free ports for servers under test. */
import { createServer } from 'node:net';

/** Ports given out by this process: the kernel may offer one again before its server has bound it. */
const given = new Set<number>();

/** `count` different TCP ports nobody listens on now. */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) {
    const port = await freePort();
    if (given.has(port)) continue;
    given.add(port);
    ports.push(port);
  }
  return ports;
}

function freePort(): Promise<number> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      if (address === null || typeof address === 'string') {
        reject(new Error('a TCP server has a port'));
        return;
      }
      server.close(() => resolve(address.port));
    });
  });
}

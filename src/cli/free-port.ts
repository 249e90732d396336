/** A port that nobody listens on, for `-p -1`. Another program may take it before it is used; then the start fails. */
import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';

export function freePort(kind: 'tcp' | 'udp'): Promise<number> {
  return kind === 'tcp' ? freeTcpPort() : freeUdpPort();
}

function freeTcpPort(): Promise<number> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, () => {
      const address = server.address();
      const port = typeof address === 'object' && address !== null ? address.port : 0;
      server.close(() => resolve(port));
    });
  });
}

function freeUdpPort(): Promise<number> {
  const socket = createSocket('udp4');
  return new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.bind(0, () => {
      const { port } = socket.address();
      socket.close(() => resolve(port));
    });
  });
}

/** Clients that subscribe to a channel and read what comes, until the process is ended. Says `ready` when all have subscribed. */
import { connect } from 'node:net';

const [port, channel, count] = [Number(process.argv[2]), process.argv[3], Number(process.argv[4])];

function subscribe(): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('error', reject);
    socket.once('connect', () => socket.write(`*2\r\n$9\r\nSUBSCRIBE\r\n$${channel.length}\r\n${channel}\r\n`));
    socket.once('data', () => resolve());
    socket.on('data', () => undefined);
  });
}

await Promise.all(Array.from({ length: count }, subscribe));
console.log('ready');

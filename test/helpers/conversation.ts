/**
 * Several connections in conversation with one server: who said what, in order, and what each of them heard.
 *
 * A step is sent when the one before has been executed: a further connection asks for PING and waits, twice, which on a server
 * of one thread is answered behind everything that was sent before. Each connection's transcript ends with the answer to a PING of its own.
 */
import { expect } from 'vitest';
import { RawClient } from './raw-client.js';
import { multibulk } from './session.js';

export type Line = readonly [client: string, step: string | readonly string[]];

const LONG_BYTES = 16_384;
const BARRIER = '+PONG\r\n';

/** Plays the lines; returns what each connection received (latin1). */
export async function converse(port: number, lines: readonly Line[]): Promise<Record<string, string>> {
  const control = await RawClient.connect(port);
  await control.ask('FLUSHALL\r\n', '+OK\r\n');
  const clients = new Map<string, RawClient>();
  for (const [name, step] of lines) {
    let client = clients.get(name);
    if (client === undefined) {
      client = await RawClient.connect(port);
      clients.set(name, client);
    }
    if (step === 'WAIT A MOMENT') await new Promise((resolve) => setTimeout(resolve, 150));
    else {
      const speaker = client;
      const before = speaker.receivedBytes;
      const request = typeof step === 'string' ? `${step}\r\n` : multibulk(step);
      speaker.write(request);
      // It takes the server several turns to read: only the reply tells that it has.
      if (request.length > LONG_BYTES) await speaker.until(() => speaker.receivedBytes > before, 'a reply');
    }
    for (let i = 0; i < 2; i++) await control.ask('PING\r\n', BARRIER);
  }
  const heard: Record<string, string> = {};
  // Speakers mostly come behind those who listen: once they are answered, what they have caused has been said.
  for (const [name, client] of [...clients].reverse()) {
    if (!client.isClosed) {
      client.write('PING the-end\r\n');
      await client.until(() => client.isClosed || client.text.endsWith('the-end\r\n'), `the end of ${name}`);
    }
    heard[name] = client.text;
    client.destroy();
  }
  control.destroy();
  return heard;
}

/** The same lines to both servers: every connection must hear the same. */
export async function compareConversations(
  peers: { readonly redisPort: number; readonly ourPort: number },
  lines: readonly Line[],
  normalize: (text: string) => string = (text) => text,
): Promise<void> {
  const [theirs, ours] = [await converse(peers.redisPort, lines), await converse(peers.ourPort, lines)];
  const normalized = (heard: Record<string, string>): Record<string, string> =>
    Object.fromEntries(Object.entries(heard).map(([name, text]) => [name, normalize(text)]));
  expect(normalized(ours)).toEqual(normalized(theirs));
}

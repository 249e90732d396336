/**
 * Redis itself as the oracle: the same requests to a real redis-server and to ours, reply by reply, byte by byte.
 *
 *   describeWithRedis('strings', (peers) => {
 *     it('SET', () => peers.compare(['SET k v', ['GET', 'k']]));
 *   });
 *
 * Needs the redis-server of the system (any 7.x) and the build; without redis-server the tests are skipped, visibly.
 * Invariant: before each comparison both servers are empty and both connections are new.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { freePorts } from './ports.js';
import { RawClient } from './raw-client.js';
import { replyEnd } from './resp-reply.js';
import { startTestServer } from './server.js';
import { multibulk } from './session.js';

/** An inline command as text, or the exact words of a multibulk request. */
export type Step = string | readonly (string | Uint8Array)[];

export interface CompareOptions {
  /** Changes replies before they are compared: for what may differ, such as ids and times. */
  readonly normalize?: (reply: string, step: Step) => string;
  /** Requests whose replies are known to differ, with the reason. */
  readonly except?: readonly { readonly step: RegExp; readonly because: string }[];
}

export class Peers {
  redisPort = 0;
  ourPort = 0;

  /** Sends the steps one after the other to both and compares each reply. */
  async compare(steps: readonly Step[], options: CompareOptions = {}): Promise<void> {
    const theirs = await this.#fresh(this.redisPort);
    const ours = await this.#fresh(this.ourPort);
    const differences: { readonly step: string; readonly ours: string; readonly theirs: string }[] = [];
    try {
      for (const step of steps) {
        const [expected, got] = [await ask(theirs, step), await ask(ours, step)];
        const shown = show(step);
        if (options.except?.some((difference) => difference.step.test(shown))) continue;
        const normalize = options.normalize ?? ((reply: string) => reply);
        const [mine, wanted] = [normalize(got, step), normalize(expected, step)];
        if (mine !== wanted) differences.push({ step: shown, ours: mine, theirs: wanted });
      }
      expect(differences).toEqual([]);
    } finally {
      theirs.destroy();
      ours.destroy();
    }
  }

  /** Sends bytes to both, waits until both close the connection, and compares all that they said. */
  async compareUntilClosed(data: string): Promise<void> {
    const [theirs, ours] = [await this.#fresh(this.redisPort), await this.#fresh(this.ourPort)];
    for (const client of [theirs, ours]) client.write(data);
    await Promise.all([theirs.closed(), ours.closed()]);
    expect(ours.text, JSON.stringify(data.slice(0, 80))).toBe(theirs.text);
    theirs.destroy();
    ours.destroy();
  }

  /** The raw replies of one of them, on a new connection. */
  async talk(port: number, steps: readonly Step[]): Promise<string[]> {
    const client = await RawClient.connect(port);
    const replies: string[] = [];
    for (const step of steps) replies.push(await ask(client, step));
    client.destroy();
    return replies;
  }

  /** One raw reply of either. */
  async askBoth(step: Step): Promise<{ readonly theirs: string; readonly ours: string }> {
    const [theirs, ours] = [await this.#fresh(this.redisPort), await this.#fresh(this.ourPort)];
    const replies = { theirs: await ask(theirs, step), ours: await ask(ours, step) };
    theirs.destroy();
    ours.destroy();
    return replies;
  }

  async #fresh(port: number): Promise<RawClient> {
    const client = await RawClient.connect(port);
    await client.ask('FLUSHALL\r\n', '+OK\r\n');
    return client;
  }
}

function show(step: Step): string {
  return typeof step === 'string' ? step : step.map((word) => Buffer.from(word).toString('latin1')).join(' ');
}

async function ask(client: RawClient, step: Step): Promise<string> {
  client.write(typeof step === 'string' ? `${step}\r\n` : multibulk(step));
  await client.until(() => replyEnd(client.text, 0) >= 0, `a reply to ${show(step).slice(0, 200)}`);
  return (await client.read(replyEnd(client.text, 0))).toString('latin1');
}

export function hasRedis(): boolean {
  try {
    execFileSync('redis-server', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** describe() with both servers running; `ourArgs` go to our command line, `theirArgs` to redis-server's. */
export function describeWithRedis(
  name: string,
  body: (peers: Peers) => void,
  arguments_: { readonly ours?: readonly string[]; readonly theirs?: readonly string[] } = {},
): void {
  describe.skipIf(!hasRedis())(`${name} (compared with redis-server)`, () => {
    const peers = new Peers();
    let redis: ChildProcess | null = null;

    beforeAll(async () => {
      const [port] = await freePorts(1);
      const fixed = ['--port', String(port), '--save', '', '--appendonly', 'no', '--enable-debug-command', 'yes'];
      redis = spawn('redis-server', [...fixed, ...(arguments_.theirs ?? [])], { stdio: 'ignore', cwd: '/tmp' });
      const server = await startTestServer({ memcachedPort: 0, args: arguments_.ours });
      await untilConnected(port);
      peers.redisPort = port;
      peers.ourPort = server.redisPort;
    });

    afterAll(() => {
      redis?.kill('SIGKILL');
    });

    body(peers);
  });
}

async function untilConnected(port: number): Promise<void> {
  const deadline = performance.now() + 10_000;
  for (;;) {
    try {
      (await RawClient.connect(port)).destroy();
      return;
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

import { beforeEach, describe, expect, it } from 'vitest';
import { Session } from '../../../test/helpers/session.js';
import { testStore } from '../../../test/helpers/store.js';
import type { ClientRow } from '../control.js';

/** Answers what WorkerTopics asks, and remembers the questions. */
class Workers {
  readonly asked: [string, unknown][] = [];
  answers: readonly unknown[] = [];
  readonly isWritePaused = false;
  #pending: (() => void) | null = null;

  askWorkers(
    asker: { suspended: boolean },
    topic: string,
    question: unknown,
    answer: (answers: unknown) => void,
  ): void {
    asker.suspended = true;
    this.asked.push([topic, question]);
    this.#pending = () => {
      asker.suspended = false;
      answer(this.answers);
    };
  }

  isSlow(): boolean {
    return false;
  }

  recordLatency(): void {}

  deliver(): void {
    this.#pending?.();
    this.#pending = null;
  }
}

const ROW: ClientRow = {
  worker: 0,
  id: 7,
  address: '127.0.0.1:1234',
  localAddress: '127.0.0.1:6379',
  fd: 9,
  name: 'me',
  kind: 'redis',
  user: 'default',
  ageSeconds: 5,
  idleSeconds: 1,
  db: 2,
  flags: 'N',
  multi: -1,
  watch: 0,
  queryBytes: 0,
  inputBytes: 100,
  inputMemoryBytes: 256,
  parkedBytes: 0,
  transactionBytes: 0,
  respVersion: 3,
  outputQueuedBytes: 0,
  outputChunks: 0,
  outputMemoryBytes: 0,
  memoryBytes: 1280,
  bytesIn: 100,
  bytesOut: 200,
  commands: 3,
  lastCommand: 'get',
  libraryName: 'lib',
  libraryVersion: '1.0',
};

let workers: Workers;
let session: Session;

beforeEach(() => {
  workers = new Workers();
  session = new Session(testStore());
  Object.assign(session.executor.environment, { control: workers });
});

/** The reply that comes in a later turn. */
function ask(request: string, answers: readonly unknown[]): string {
  workers.answers = answers;
  const now = session.send(request);
  return now + session.later(() => workers.deliver());
}

describe('CLIENT', () => {
  it('LIST merges the rows of all workers in order of ids', () => {
    const reply = ask('CLIENT LIST', [[{ ...ROW, id: 9 }], [ROW]]);
    const lines = reply.split('\r\n')[1].trimEnd().split('\n');
    expect(lines.map((line) => line.split(' ')[0])).toEqual(['id=7', 'id=9']);
    for (const field of ['addr=127.0.0.1:1234', 'name=me', 'db=2', 'cmd=get', 'resp=3', 'lib-name=lib', 'idle=1']) {
      expect(lines[0].split(' ')).toContain(field);
    }
  });

  it('suspends the client until the answer comes', () => {
    workers.answers = [[ROW]];
    expect(session.raw('CLIENT INFO\r\nPING\r\n')).toBe('');
    expect(session.client.suspended).toBe(true);
    expect(session.later(() => workers.deliver())).toMatch(/^\$\d+\r\nid=7 /);
    expect(session.raw('')).toBe('+PONG\r\n');
    expect(workers.asked).toEqual([['clientList', { ids: [session.client.id] }]]);
  });

  it('KILL passes its filter on and counts', () => {
    const { id } = session.client;
    expect(ask('CLIENT KILL ADDR 1.2.3.4:5 TYPE normal MAXAGE 10', [1, 2])).toBe(':3\r\n');
    expect(ask('CLIENT KILL ID 4 SKIPME no', [0])).toBe(':0\r\n');
    expect(ask('CLIENT KILL 1.2.3.4:5', [0])).toBe('-ERR No such client\r\n');
    expect(ask('CLIENT KILL 1.2.3.4:5', [1])).toBe('+OK\r\n');
    expect(workers.asked.map(([, question]) => question)).toEqual([
      { exceptId: id, address: '1.2.3.4:5', type: 'normal', maxAgeSeconds: 10 },
      { ids: [4] },
      { address: '1.2.3.4:5' },
      { address: '1.2.3.4:5' },
    ]);
  });

  it('PAUSE and UNPAUSE reach all workers', () => {
    expect(ask('CLIENT PAUSE 500 WRITE', [true])).toBe('+OK\r\n');
    expect(ask('CLIENT UNPAUSE', [true])).toBe('+OK\r\n');
    expect(workers.asked[0]).toEqual(['clientPause', { untilMs: expect.any(Number), writesOnly: true }]);
    expect(workers.asked[1]).toEqual(['clientPause', { untilMs: 0, writesOnly: false }]);
  });

  it('SETINFO keeps what the library says', () => {
    expect(session.send('CLIENT SETINFO lib-name ioredis')).toBe('+OK\r\n');
    expect(session.send('CLIENT SETINFO LIB-VER 5.0')).toBe('+OK\r\n');
    expect(session.send('CLIENT SETINFO lib-foo x')).toBe("-ERR Unrecognized option 'lib-foo'\r\n");
    expect(session.send(['CLIENT', 'SETINFO', 'lib-name', 'a b'])).toBe(
      '-ERR lib-name cannot contain spaces, newlines or special characters.\r\n',
    );
    expect(session.driver.describe(session.client)).toMatchObject({ libraryName: 'ioredis', libraryVersion: '5.0' });
  });

  it('HELP lists the declared subcommands', () => {
    const help = session.send('CLIENT HELP');
    expect(help).toContain('+CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\r\n');
    expect(help).toContain('+SETNAME <connection-name>\r\n');
    expect(help).toMatch(/\+HELP\r\n\+ {4}Print this help\.\r\n$/);
  });

  it('NO-TOUCH keeps reads out of the access statistics', () => {
    session.send('SET k v');
    expect(session.send('CLIENT NO-TOUCH on')).toBe('+OK\r\n');
    expect(session.send('GET k')).toBe('$1\r\nv\r\n');
    expect(session.client.noTouch).toBe(true);
  });
});

/**
 * The control plane: starts the workers, keeps them alive, carries their questions, stops them.
 *
 * Owns the worker threads and the settings. The invariant: while the server runs, every worker that ends is logged and
 * started again on the same store and the same ports, and the others never notice.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import type { UserChange } from '../commands/acl/users.js';
import type { MainTopics, WorkerQuestion } from '../commands/control.js';
import { configSet, memcachedListeners, rewriteConfigFile, type Settings } from '../config/index.js';
import { Counter, CounterRow, GAUGES, SharedWord, WATCH_GAUGES } from '../layout/counters.js';
import { checkSizes, type StoreHandle } from '../store/open.js';
import { DurabilityThread } from './durability.js';
import type { EffectLog } from './effects/effect-log.js';
import { type HostedWorker, HostWorker } from './host-worker.js';
import type { Log } from './log.js';
import type { ToMain, ToWorker } from './messages.js';
import { Migrations } from './migrations.js';
import { RollCall } from './roll-call.js';
import { Saver } from './saver.js';
import type { ServerBlocks } from './server-blocks.js';
import type { UserRegistry } from './user-registry.js';
import type { UsersOnDemand } from './users-on-demand.js';
import { type WorkerHandle, WorkerThread } from './worker-thread.js';

/** Replies under way at a stop get this long to leave. */
const STOP_GRACE_MS = 1000;
/** Between the restarts of a worker that keeps dying: first, and at most. */
const RESPAWN_FIRST_MS = 20;
const RESPAWN_MAX_MS = 5000;
/** A worker that lived so long starts again with the first delay. */
const HEALTHY_S = 10;

export interface Addresses {
  /** host:port of the first address. */
  readonly redis?: string;
  readonly memcached?: string;
  /** Path of the unix socket. */
  readonly unix?: string;
  readonly udp?: string;
  readonly memcachedUnix?: string;
}

export interface SupervisorParts {
  readonly settings: Settings;
  readonly store: StoreHandle;
  readonly users: UsersOnDemand;
  readonly log: Log;
  readonly blocks: ServerBlocks;
  /** Threads that have been prepared for the first workers. */
  readonly prepared: readonly Worker[];
  readonly effects: EffectLog | null;
  readonly configPath?: string | undefined;
  /** Of the store as it was when all of it lay in a file of Redis (changesOf). */
  readonly savedChanges?: number;
  readonly hosted?: HostedWorker;
}

export class Supervisor {
  readonly settings: Settings;
  readonly blocks: ServerBlocks;
  /** Settles when all workers have ended: after close() or a SHUTDOWN command. */
  readonly done: Promise<void>;

  readonly #store: StoreHandle;
  readonly #log: Log;
  readonly #configPath: string | undefined;
  readonly #workers: WorkerHandle[] = [];
  /** Threads that have been prepared for the first workers. */
  readonly #prepared: Worker[];
  /** The only worker, which runs in the main thread. */
  readonly #hosted: HostedWorker | null;
  readonly #durability: DurabilityThread | null;
  readonly #effects: EffectLog | null;
  readonly #rollCall = new RollCall();
  readonly #users: UsersOnDemand;
  readonly #saver: Saver;
  readonly #migrations: Migrations;
  #closing: Promise<void> | null = null;
  /** Calls off the stops that wait for their save. */
  readonly #stopsToBe = new Set<() => void>();
  #resolveDone: () => void = () => undefined;
  #rejectDone: (error: Error) => void = () => undefined;

  constructor(parts: SupervisorParts) {
    const { settings, store, log } = parts;
    this.settings = settings;
    this.blocks = parts.blocks;
    this.#prepared = [...parts.prepared];
    this.#hosted = parts.hosted ?? null;
    this.#store = store;
    this.#log = log;
    this.#configPath = parts.configPath;
    this.#users = parts.users;
    this.#durability = settings.durability === 'warm' ? new DurabilityThread(settings, store, log) : null;
    this.#effects = parts.effects;
    const { shared } = new CounterRow(this.blocks.counterBlock, 0);
    this.#saver = new Saver(settings, store, shared, log);
    this.#migrations = new Migrations(shared);
    shared[SharedWord.savedChanges] = parts.savedChanges ?? 0;
    this.done = new Promise((resolve, reject) => {
      this.#resolveDone = resolve;
      this.#rejectDone = reject;
    });
  }

  /** Starts all workers; settles when every one answers. On failure none is left. */
  async start(): Promise<void> {
    for (let index = 0; index < this.settings.workers; index++) this.#workers.push(this.#spawn(index));
    try {
      await Promise.all(this.#workers.map((worker) => worker.ready));
      await this.#durability?.start();
    } catch (error) {
      await Promise.all(this.#workers.map((worker) => worker.kill()));
      throw error;
    }
    for (const worker of this.#workers) void this.#keepAlive(worker);
  }

  get addresses(): Addresses {
    const { bind, port, unix, memcachedUnix } = this.settings;
    const [memcached] = memcachedListeners(this.settings);
    const at = (host: string, number: number): string => `${host.includes(':') ? `[${host}]` : host}:${number}`;
    return {
      ...(port !== 0 && { redis: at(bind[0], port) }),
      ...(memcached.port !== 0 && { memcached: at(memcached.host, memcached.port) }),
      ...(memcached.udpPort !== 0 && { udp: at(memcached.host, memcached.udpPort) }),
      ...(unix !== '' && { unix }),
      ...(memcachedUnix !== '' && { memcachedUnix }),
    };
  }

  /** Stops accepting, sends what is under way, ends the workers. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#stopAll();
    return this.#closing;
  }

  /** As close(), but saves first if there is a schedule of saves. False = SHUTDOWN ABORT has called it off. */
  async stop(): Promise<boolean> {
    const savesFirst = this.#closing === null && this.settings.save.length > 0;
    if (savesFirst && (await this.#saveToStop()) === null) return false;
    await this.close();
    return true;
  }

  /** Saves before a stop: true = there is a new file. Null = SHUTDOWN ABORT has called the stop off; the save goes on. */
  #saveToStop(): Promise<boolean | null> {
    let callOff: () => void = () => undefined;
    const calledOff = new Promise<null>((resolve) => {
      callOff = () => resolve(null);
    });
    this.#stopsToBe.add(callOff);
    return Promise.race([this.#saver.saveNow(), calledOff]).finally(() => this.#stopsToBe.delete(callOff));
  }

  /** Ends one worker the hard way; it comes back. For tests of exactly that. */
  async killWorker(index: number): Promise<void> {
    await this.#workers[index].kill();
  }

  async #stopAll(): Promise<void> {
    this.#migrations.close();
    await Promise.all([this.#saver.stop(), ...this.#workers.map((worker) => worker.stop(STOP_GRACE_MS))]);
    await this.#durability?.stop();
    await this.#effects?.stop();
    this.#resolveDone();
  }

  #spawn(index: number): WorkerHandle {
    const users = this.#users.everyone;
    if (this.#hosted !== null) return new HostWorker(this.#hosted, (message) => this.#receive(index, message));
    return new WorkerThread(
      {
        workerIndex: index,
        workerCount: this.settings.workers,
        settings: this.settings,
        store: this.#store,
        ...this.blocks,
        users,
      },
      (message) => {
        if (message.type === 'ready') this.#catchUp(index, users);
        this.#receive(index, message);
      },
      this.#prepared.shift(),
    );
  }

  /** What has changed while the worker started, when it was not among those that are told. */
  #catchUp(index: number, known: UserChange): void {
    const worker = this.#workers[index];
    worker.post({ type: 'settings', askId: 0, changes: this.settings });
    worker.post({ type: 'users', askId: 0, change: this.#users.changeSince(known) });
  }

  /** Waits for a worker's end and replaces it, until the server stops. */
  async #keepAlive(first: WorkerHandle): Promise<void> {
    const { index } = first;
    let worker = first;
    let delayMs = RESPAWN_FIRST_MS;
    for (;;) {
      const startedAtS = process.uptime();
      const reason = await worker.ended;
      this.#rollCall.workerGone(index);
      this.#clearGauges(index);
      if (this.#closing !== null) return;
      this.#log('warning', `worker ${index} ended, its connections are lost: ${reason ?? 'it was told to stop'}`);
      delayMs = process.uptime() - startedAtS > HEALTHY_S ? RESPAWN_FIRST_MS : delayMs;
      await sleep(delayMs);
      delayMs = Math.min(delayMs * 2, RESPAWN_MAX_MS);
      if (this.#closing !== null) return;
      worker = this.#spawn(index);
      this.#workers[index] = worker;
      worker.ready.then(
        () => this.#log('notice', `worker ${index} serves again`),
        () => undefined, // `ended` tells, above
      );
    }
  }

  /** A dead worker's gauges: its connections are closed. Its totals stay. */
  #clearGauges(index: number): void {
    const row = new CounterRow(this.blocks.counterBlock, index);
    Atomics.sub(row.shared, SharedWord.connections, row.values[Counter.connections]);
    // Watchers count in shared words of their own, one gauge for each.
    for (let kind = 0; kind < WATCH_GAUGES; kind++) {
      Atomics.sub(row.shared, SharedWord.watchers + kind, row.values[Counter.watchers + kind]);
      row.values[Counter.watchers + kind] = 0;
    }
    for (const gauge of GAUGES) row.values[gauge] = 0;
  }

  // ---- messages

  #receive(from: number, message: ToMain): void {
    switch (message.type) {
      case 'log':
        this.#log(message.level, message.message);
        return;
      case 'answer':
        this.#rollCall.answer(message.askId, from, message.answer);
        return;
      case 'save':
        void this.#saver.start();
        return;
      case 'askWorkers':
        this.#askAll(message.questions, message.othersOnly ? from : -1, (answers) =>
          this.#reply(from, message.askId, answers),
        );
        return;
      case 'lines':
        for (const worker of this.#workers) {
          if (worker.isReady) worker.post({ type: 'lines', from, lines: message.lines });
        }
        return;
      case 'askMain':
        this.#answerMain(from, message.askId, message.topic, message.question);
        return;
      default:
        return;
    }
  }

  /** `done` gets, for each question, the answers of all workers. */
  #askAll(questions: readonly WorkerQuestion[], except: number, done: (answers: unknown[][]) => void): void {
    const byQuestion = (answers: unknown[]): unknown[][] =>
      questions.map((_, i) => answers.map((ofWorker) => (ofWorker as unknown[])[i]));
    this.#broadcast(
      (askId) => ({ type: 'ask', askId, questions }),
      (answers) => done(byQuestion(answers)),
      except,
    );
  }

  #broadcast(message: (askId: number) => ToWorker, done: (answers: unknown[]) => void, except = -1): void {
    const living = this.#workers.filter((worker) => worker.isReady && worker.index !== except);
    const askId = this.#rollCall.open(
      living.map((worker) => worker.index),
      done,
    );
    for (const worker of living) worker.post(message(askId));
  }

  #reply(to: number, askId: number, reply: unknown): void {
    this.#workers[to].post({ type: 'reply', askId, reply });
  }

  #answerMain<T extends keyof MainTopics>(from: number, askId: number, topic: T, question: unknown): void {
    switch (topic) {
      case 'configSet':
        this.#configSet(question as MainTopics['configSet'][0], (answer) => this.#reply(from, askId, answer));
        return;
      case 'userSet': {
        const { name, rules } = question as MainTopics['userSet'][0];
        this.#withUsers((users) =>
          this.#changeUsers(users.setUser(name, rules), (answer) => this.#reply(from, askId, answer)),
        );
        return;
      }
      case 'usersRemove':
        this.#withUsers((users) => {
          const change = users.removeUsers(question as MainTopics['usersRemove'][0]);
          this.#changeUsers(change, () => this.#reply(from, askId, change.removed.length));
        });
        return;
      case 'usersLoad':
        this.#withUsers((users) => this.#changeUsers(users.load(), (answer) => this.#reply(from, askId, answer)));
        return;
      case 'usersSave':
        this.#withUsers((users) => this.#reply(from, askId, users.save()));
        return;
      case 'configRewrite':
        this.#reply(from, askId, this.#configRewrite());
        return;
      case 'shutdown':
        this.#shutdown(question as MainTopics['shutdown'][0], (answer) => this.#reply(from, askId, answer));
        return;
      case 'migrate':
        this.#migrations
          .migrate(question as MainTopics['migrate'][0])
          .then((answer) => this.#reply(from, askId, answer))
          .catch(this.#rejectDone);
        return;
    }
  }

  /** The error, or null when the file is written. */
  #configRewrite(): string | null {
    if (this.#configPath === undefined) return 'ERR The server is running without a config file';
    try {
      rewriteConfigFile(this.#configPath, { ...this.settings, user: this.#users.declarations });
      return null;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#log('warning', `CONFIG REWRITE of ${this.#configPath} failed: ${reason}`);
      return `ERR Rewriting config file: ${reason}`;
    }
  }

  #configSet(pairs: MainTopics['configSet'][0], done: (answer: string | null) => void): void {
    const result = configSet(this.settings, pairs, (dram, capacity) => checkSizes(this.#store, dram, capacity));
    if (!result.ok) {
      done(result.error);
      return;
    }
    const changes: Partial<Settings> = {};
    for (const key of result.changed) Object.assign(changes, { [key]: this.settings[key] });
    const tell = (): void =>
      this.#broadcast(
        (askId) => ({ type: 'settings', askId, changes }),
        () => done(null),
      );
    this.#effects?.settingsChanged();
    if (!result.changed.includes('requirepass')) tell();
    else this.#withUsers((users) => this.#changeUsers(users.setDefaultPassword(this.settings.requirepass), tell));
  }

  /** In the order in which it was asked. */
  #withUsers(work: (users: UserRegistry) => void): void {
    this.#users.load().then(work).catch(this.#rejectDone);
  }

  /** Tells every worker, or passes the error on. */
  #changeUsers(change: UserChange | string, done: (error: string | null) => void): void {
    if (typeof change === 'string') done(change);
    else
      this.#broadcast(
        (askId) => ({ type: 'users', askId, change }),
        () => done(null),
      );
  }

  #shutdown({ abort, saves, isForced }: MainTopics['shutdown'][0], done: (answer: string | null) => void): void {
    if (abort) return done(this.#abortStops() ? null : 'ERR No shutdown in progress.');
    this.#log('notice', 'a client asked the server to stop');
    const saved = (saves ?? this.settings.save.length > 0) ? this.#saveToStop() : Promise.resolve(true);
    saved
      .then((isSaved) =>
        isSaved === true || (isSaved === false && isForced)
          ? this.close()
          : done('ERR Errors trying to SHUTDOWN. Check logs.'),
      )
      .catch(this.#rejectDone);
  }

  /** SHUTDOWN ABORT. False = there is no stop that can still be called off. */
  #abortStops(): boolean {
    if (this.#stopsToBe.size === 0) return false;
    for (const callOff of this.#stopsToBe) callOff();
    this.#log('notice', 'Shutdown manually aborted.');
    return true;
  }
}

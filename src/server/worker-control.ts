/**
 * The worker's end of the control plane: sends questions of its clients to the main thread, answers those of others,
 * applies new settings, and keeps who waits for what.
 *
 * The invariant: a client is suspended exactly while it stands in `#waiting`, `#paused` or `#heldBack`; resuming it makes the pump
 * deliver what it had sent meanwhile. Nothing here runs on the path of an ordinary request.
 */
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import type { AccessEvent } from '../commands/acl/access.js';
import { type UserChange, Users } from '../commands/acl/users.js';
import { clientLine } from '../commands/clients/client-list.js';
import type {
  Asker,
  ClientRow,
  Control,
  MainTopics,
  WatchLine,
  WorkerQuestion,
  WorkerTopics,
} from '../commands/control.js';
import type { CommandTable } from '../commands/table.js';
import { configSet, type Settings, type SizeCheck } from '../config/index.js';
import { Counter, type CounterRow } from '../layout/counters.js';
import { AccessLog } from './access-log.js';
import { LatencyMonitor } from './latency-monitor.js';
import type { ControlStart, Level, ToMain, ToWorker } from './messages.js';
import type { OutputHolds } from './output-holds.js';
import { SlowLog } from './slow-log.js';

/** Lines for watchers that one turn may bring forth, and turns' lines on their way: what is beyond is dropped, and counted. */
const LINES_PER_TURN = 4096;
const LINE_POSTS_IN_FLIGHT = 64;
/** How often who waits for a key that a long request reads looks whether it is free. */
export const HELD_BACK_MS = 1;

/** What the control plane needs of the loop. */
export interface ControlHost {
  /** Wall-clock milliseconds of this turn. */
  readonly nowMs: number;
  /** Runs `write` with the output on that client, if it is still there; then reads it again. */
  resume(conn: number, clientId: number, write: (() => void) | null): void;
  /** Stops feeding and reading the client. */
  suspend(conn: number): void;
  answerTopic(topic: keyof WorkerTopics, question: unknown): unknown;
  /** Runs `write` with the output on that client, if it is still there. */
  writeTo(conn: number, clientId: number, write: () => void): void;
  unsentBytes(conn: number): number;
  descriptorOf(conn: number): number;
  readonly holds: OutputHolds;
  settingsChanged(): void;
  sizeProblem: SizeCheck;
  stop(graceMs: number): void;
  serveDuringScript(): boolean;
  endServing(): void;
}

interface Waiting {
  readonly conn: number;
  readonly clientId: number;
  readonly answer: (reply: unknown) => void;
}

export class WorkerControl implements Control {
  readonly settings: Settings;
  readonly workerIndex: number;
  readonly workerCount: number;
  readonly startedAtMs: number;
  readonly slowLog: SlowLog;
  readonly latency: LatencyMonitor;
  readonly accessLog: AccessLog;
  isWritePaused = false;
  /** CLIENT PAUSE ... ALL is in force: the loop feeds nobody. */
  isAllPaused = false;

  readonly #port: MessagePort;
  readonly #counters: CounterRow;
  readonly #firstUsers: UserChange;
  #users: Users | null = null;
  #host: ControlHost | null = null;
  #nextAskId = 1;
  /** The client whose command is being answered by this worker alone, 0 = none. */
  #askingHere = 0;
  readonly #waiting = new Map<number, Waiting>();
  /** Settings that EXEC has changed and the others are told of: question -> slot whose output is held. */
  readonly #telling = new Map<number, number>();
  /** Slot -> client id. */
  readonly #paused = new Map<number, number>();
  #pausedUntilMs = 0;
  /** Slot -> client id. */
  readonly #heldBack = new Map<number, number>();
  #nextTryMs = 0;
  readonly #provided = new Map<keyof WorkerTopics, (question: unknown) => unknown>();
  #lines: WatchLine[] = [];
  #lineListener: ((lines: readonly WatchLine[]) => void) | null = null;
  /** Posts of lines that the main thread has not given back yet. */
  #linesInFlight = 0;

  constructor(start: ControlStart, counters: CounterRow) {
    this.settings = start.settings;
    this.workerIndex = start.workerIndex;
    this.workerCount = start.workerCount;
    this.startedAtMs = start.startedAtMs;
    this.#port = start.port;
    this.#counters = counters;
    this.#firstUsers = start.users;
    this.accessLog = new AccessLog(counters.shared);
    this.slowLog = new SlowLog(counters.shared, start.settings.slowlogMaxLen);
    this.latency = new LatencyMonitor(start.settings.latencyMonitorThreshold);
  }

  /** This worker's copy of the users, which later changes reach. */
  createUsers(table: CommandTable): Users {
    this.#users = new Users(table);
    this.#users.applied(this.#firstUsers);
    return this.#users;
  }

  attach(host: ControlHost): void {
    this.#host = host;
  }

  post(message: ToMain): void {
    this.#port.postMessage(message);
  }

  log(level: Level, message: string): void {
    this.post({ type: 'log', level, message });
  }

  // ---- asking

  askWorkers<T extends keyof WorkerTopics>(
    asker: Asker,
    topic: T,
    question: WorkerTopics[T][0],
    answer: (answers: readonly WorkerTopics[T][1][]) => void,
  ): void {
    const askId = this.#wait(asker, (reply) => answer((reply as WorkerTopics[T][1][][])[0]));
    this.post({ type: 'askWorkers', askId, questions: [{ topic, question }], othersOnly: false });
  }

  askOthers(
    asker: Asker,
    questions: readonly WorkerQuestion[],
    answer: (answers: readonly (readonly unknown[])[]) => void,
  ): void {
    const askId = this.#wait(asker, answer as (reply: unknown) => void);
    this.post({ type: 'askWorkers', askId, questions, othersOnly: true });
  }

  askMain<T extends keyof MainTopics>(
    asker: Asker,
    topic: T,
    question: MainTopics[T][0],
    answer: (answer: MainTopics[T][1]) => void,
  ): void {
    const askId = this.#wait(asker, answer as (reply: unknown) => void);
    this.post({ type: 'askMain', askId, topic, question });
  }

  askHere<T extends keyof WorkerTopics>(asker: Asker, topic: T, question: WorkerTopics[T][0]): WorkerTopics[T][1] {
    this.#askingHere = asker.id;
    const answer = this.#answer(topic, question) as WorkerTopics[T][1];
    this.#askingHere = 0;
    return answer;
  }

  #answer(topic: keyof WorkerTopics, question: unknown): unknown {
    return this.#provided.get(topic)?.(question) ?? this.#host!.answerTopic(topic, question);
  }

  setConfigHere(asker: Asker, pairs: MainTopics['configSet'][0]): string | null {
    const result = configSet(this.settings, pairs, (dram, capacity) => this.#host!.sizeProblem(dram, capacity));
    if (!result.ok) return result.error;
    this.#settingsChanged();
    // The main thread tells the others, and this worker once more; until then the client hears nothing.
    const askId = this.#nextAskId++;
    this.#host!.holds.hold(asker.conn);
    this.#telling.set(askId, asker.conn);
    this.post({ type: 'askMain', askId, topic: 'configSet', question: pairs });
    return null;
  }

  startSave(): void {
    this.post({ type: 'save' });
  }

  // ---- topics of others, and lines for watching clients

  provide<T extends keyof WorkerTopics>(topic: T, answer: (question: WorkerTopics[T][0]) => WorkerTopics[T][1]): void {
    this.#provided.set(topic, answer as (question: unknown) => unknown);
  }

  publishLine(line: WatchLine): void {
    if (this.#lines.length < LINES_PER_TURN && this.#linesInFlight < LINE_POSTS_IN_FLIGHT) this.#lines.push(line);
    else this.#counters.values[Counter.logDropped]++;
  }

  onLines(listener: (lines: readonly WatchLine[]) => void): void {
    this.#lineListener = listener;
  }

  /** At the end of a turn. */
  flushLines(): void {
    if (this.#lines.length === 0) return;
    this.#linesInFlight++;
    this.post({ type: 'lines', lines: this.#lines });
    this.#lines = [];
  }

  writeTo(asker: Asker, write: () => void): void {
    this.#host!.writeTo(asker.conn, asker.id, write);
  }

  unsentBytes(asker: Asker): number {
    return this.#host!.unsentBytes(asker.conn);
  }

  descriptorOf(asker: Asker): number {
    return this.#host!.descriptorOf(asker.conn);
  }

  /** Slow path: looks at all that wait. */
  isAwaitingAnswer(clientId: number): boolean {
    if (clientId === this.#askingHere) return true;
    for (const waiting of this.#waiting.values()) if (waiting.clientId === clientId) return true;
    return false;
  }

  #wait(asker: Asker, answer: (reply: unknown) => void): number {
    const askId = this.#nextAskId++;
    asker.suspended = true;
    this.#waiting.set(askId, { conn: asker.conn, clientId: asker.id, answer });
    this.#countSuspended();
    return askId;
  }

  // ---- the mailbox

  /** After a wake-up: handles everything that has been posted. */
  drain(): void {
    for (;;) {
      const received = receiveMessageOnPort(this.#port) as { readonly message: ToWorker } | undefined;
      if (received === undefined) return;
      this.#handle(received.message);
    }
  }

  #handle(message: ToWorker): void {
    const host = this.#host!;
    switch (message.type) {
      case 'ask': {
        const answers = message.questions.map(({ topic, question }) => this.#answer(topic, question));
        this.post({ type: 'answer', askId: message.askId, answer: answers });
        return;
      }
      case 'reply': {
        const told = this.#telling.get(message.askId);
        if (told !== undefined) {
          this.#telling.delete(message.askId);
          return host.holds.letGo(told);
        }
        const waiting = this.#waiting.get(message.askId);
        if (waiting === undefined) return;
        this.#waiting.delete(message.askId);
        this.#countSuspended();
        host.resume(waiting.conn, waiting.clientId, () => waiting.answer(message.reply));
        return;
      }
      case 'settings':
        Object.assign(this.settings, message.changes);
        this.#settingsChanged();
        this.post({ type: 'answer', askId: message.askId, answer: true });
        return;
      case 'users':
        this.#users?.applied(message.change);
        host.answerTopic('usersChanged', null);
        this.post({ type: 'answer', askId: message.askId, answer: true });
        return;
      case 'lines':
        if (message.from === this.workerIndex) this.#linesInFlight--;
        this.#lineListener?.(message.lines);
        return;
      case 'stop':
        host.stop(message.graceMs);
        return;
    }
  }

  #settingsChanged(): void {
    this.slowLog.setCapacity(this.settings.slowlogMaxLen);
    this.latency.threshold = this.settings.latencyMonitorThreshold;
    this.#host!.settingsChanged();
  }

  // ---- CLIENT PAUSE

  /** `untilMs` 0 ends the pause. A longer or stricter pause in force stays, as in Redis. */
  pause(untilMs: number, writesOnly: boolean): void {
    if (untilMs === 0) {
      this.#unpause();
      return;
    }
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, untilMs);
    if (writesOnly) this.isWritePaused = true;
    else this.isAllPaused = true;
  }

  /** Once a turn while a pause is in force. */
  checkPause(nowMs: number): void {
    if (this.isPaused && nowMs >= this.#pausedUntilMs) this.#unpause();
  }

  get isPaused(): boolean {
    return this.isAllPaused || this.isWritePaused;
  }

  /** Milliseconds to the end of the pause. */
  pauseLeftMs(nowMs: number): number {
    return Math.max(1, this.#pausedUntilMs - nowMs);
  }

  waitForUnpause(asker: Asker): void {
    asker.suspended = true;
    this.#paused.set(asker.conn, asker.id);
    this.#countSuspended();
  }

  // ---- keys that long requests read

  waitForHold(asker: Asker): void {
    asker.suspended = true;
    this.#heldBack.set(asker.conn, asker.id);
    this.#countSuspended();
  }

  /** True while somebody waits for such a key: the loop calls tryHeldBack, and sleeps no longer than HELD_BACK_MS. */
  get isHoldingBack(): boolean {
    return this.#heldBack.size > 0;
  }

  /** Lets them try again, first come first. */
  tryHeldBack(monotonicMs: number): void {
    if (monotonicMs < this.#nextTryMs) return;
    this.#nextTryMs = monotonicMs + HELD_BACK_MS;
    const waiting = [...this.#heldBack];
    this.#heldBack.clear();
    for (const [conn, clientId] of waiting) this.#host!.resume(conn, clientId, null);
    this.#countSuspended();
  }

  #unpause(): void {
    this.isAllPaused = false;
    this.isWritePaused = false;
    this.#pausedUntilMs = 0;
    for (const [conn, clientId] of this.#paused) this.#host!.resume(conn, clientId, null);
    this.#paused.clear();
    this.#countSuspended();
  }

  #countSuspended(): void {
    this.#counters.values[Counter.suspendedClients] = this.#waiting.size + this.#paused.size + this.#heldBack.size;
    this.#counters.values[Counter.pausedClients] = this.#paused.size;
  }

  // ---- long scripts

  serveDuringScript(): boolean {
    return this.#host!.serveDuringScript();
  }

  endServing(): void {
    this.#host!.endServing();
  }

  // ---- the logs

  isSlow(microseconds: number): boolean {
    const threshold = this.settings.slowlogLogSlowerThan;
    return threshold >= 0 && microseconds >= threshold;
  }

  recordSlow(microseconds: number, argv: readonly Uint8Array[], address: string, clientName: string): void {
    this.#counters.values[Counter.slowCommands]++;
    this.slowLog.add(this.#host!.nowMs, microseconds, argv, address, clientName);
  }

  recordAccess(asker: Asker, event: AccessEvent): void {
    const host = this.#host!;
    const row = host.answerTopic('clientDescribe', { conn: asker.conn }) as ClientRow;
    this.accessLog.add(event, clientLine(row), host.nowMs, this.settings.acllogMaxLen);
  }

  recordLatency(event: string, milliseconds: number): void {
    this.latency.record(event, this.#host!.nowMs, milliseconds);
  }
}

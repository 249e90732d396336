/**
 * The typed door to the native addon: regions, byte operations and the socket pump.
 *
 * The addon knows nothing of keys, commands or policy. An *arena* is a mapped range of bytes, at most 1 GiB, with a small
 * process-wide number; the same file range mapped twice in one process is the same arena, so that every worker wraps
 * the same address. All failures throw an `Error` with `code` ('ENOSPC' ...), `errno`, `syscall` and, where one is
 * involved, `path`.
 */
import { createRequire } from 'node:module';
import { findAddon } from './find-addon.js';

export interface MapOptions {
  /** Fault all pages in now (after huge pages were asked for). */
  readonly populate?: boolean;
  /** Ask for transparent huge pages (madvise). Refusal is not an error. */
  readonly hugePages?: boolean;
  /** MAP_SYNC | MAP_SHARED_VALIDATE: throws EOPNOTSUPP where the file system cannot. */
  readonly sync?: boolean;
  /** Bind to this NUMA node (mbind MPOL_BIND); -1 or absent = no binding. */
  readonly numaNode?: number;
  /** MAP_PRIVATE: what is written stays in this mapping, the file is never changed. Each such mapping is an arena of its own. */
  readonly copyOnWrite?: boolean;
}

/** One shared-buffer socket engine; belongs to the thread that made it. See native/addon/pump.h for the buffers' layout. */
export interface Pump {
  /** Received bytes. Event offsets point into it. Valid until the next poll. */
  readonly input: ArrayBuffer;
  /** Replies are written here; send descriptors point into it. Content is consumed by the next poll or flush. */
  readonly output: ArrayBuffer;
  /** Arena numbers of input and output, for `copy`. */
  readonly inputArena: number;
  readonly outputArena: number;
  /** Int32 records of EVENT_WORDS words filled by poll; JavaScript writes `consumed` back into them. The last record is one of gauges: see Gauge. */
  readonly events: ArrayBuffer;
  /** Int32 records of SEND_WORDS words filled by JavaScript: what to send. */
  readonly sends: ArrayBuffer;

  /**
   * Listens; returns a listener number. TCP: host+port, SO_REUSEPORT, backlog; unix: path. `kind` is an opaque tag (0..255)
   * reported in the accept event of each connection. Throws EADDRINUSE and so on.
   */
  listenTcp(host: string, port: number, backlog: number, kind: number): number;
  listenUnix(path: string, mode: number, backlog: number, kind: number): number;
  listenUdp(host: string, port: number, kind: number): number;
  /** The bound port of a listener (for port 0). */
  listenerPort(listener: number): number;
  /** Stops listening and closes the listener; its connections stay. */
  closeListener(listener: number): void;
  /** Stops (true) or resumes (false) accepting on all listeners. */
  pauseAccept(paused: boolean): void;

  /**
   * One turn: takes the `consumed` words of the last events, sends `sendCount` send records, then waits up to
   * `timeoutMs` (-1 = no limit, 0 = do not wait; does not wait while a connection still holds unconsumed ready bytes) and receives.
   * Returns the number of events. It comes back after at most 250 ms even with -1 (with 0 events): a terminated worker stops
   * only when it is back in JavaScript.
   */
  poll(sendCount: number, timeoutMs: number): number;
  /** Sends `sendCount` records now, without receiving; what the socket does not take is queued. After it `output` may be reused from 0. */
  flush(sendCount: number): void;

  /**
   * Receives the connection's next `length` bytes straight into an arena; an INTO_DONE event follows. Bytes already held for it
   * count first: call it while handling a DATA event and set `consumed` to the end of the header. One at a time.
   */
  receiveInto(conn: number, arena: number, offset: number, length: number): void;
  /**
   * Stops (true) or resumes (false) reading a connection: held bytes are not delivered meanwhile; on resuming, they are delivered
   * at the next poll. A peer that finishes meanwhile is reported once (PEER_END) and kept until the connection is resumed; so
   * pause a connection whose reply comes in a later turn, or a half-closed client would be closed before it.
   */
  pauseReading(conn: number, paused: boolean): void;
  /** Queues what is written to a connection from now on (true), until it is let go (false): then that is sent. */
  holdOutput(conn: number, held: boolean): void;
  /**
   * Limits of one connection; bytes of queued output above which reading stops (soft; default 1 MiB) and bytes of queued output
   * copied into the pump's memory above which it is closed (hard); idle ms (in steps of 32). 0 = none. Region sends count for soft only.
   */
  setLimits(conn: number, softOutputBytes: number, hardOutputBytes: number, idleMs: number): void;
  /**
   * Closes after what is queued, the records of this turn included, has been sent (abort=false; a CLOSE event follows) or at once
   * with no further events but SENT for its tokens (abort=true).
   */
  close(conn: number, abort: boolean): void;
  /** Bytes queued for sending, region sends included. A number that has gone gives 0 here, '' and -1 below; calls about it do nothing. */
  outputQueued(conn: number): number;
  /** What of the pump's memory is one connection's: see HeldPart. */
  held(conn: number, part: HeldPart): number;
  /** 'ip:port' or unix path; peer of a connection and local address. */
  peerAddress(conn: number): string;
  localAddress(conn: number): string;
  fd(conn: number): number;
  /** Total bytes the pump holds for connections now (stashed input + queued output). */
  heldBytes(): number;

  /** Limits for all: connections at once (accepts beyond it are answered with `message` and closed), bytes of unparsed input per connection. */
  setGlobalLimits(maxConnections: number, maxInputBytes: number, message: Uint8Array): void;
  /** File descriptor of the wake-up eventfd; `addon.wake(fd)` from any thread makes poll return with a WAKE event. */
  readonly wakeFd: number;
  /** Closes everything. Also done when the environment ends. */
  destroy(): void;
}

export interface Addon {
  // ---- files and arenas
  /** Opens (O_RDWR|O_CLOEXEC, plus O_CREAT / O_EXCL). Returns a descriptor. */
  openFile(path: string, create: boolean, exclusive: boolean): number;
  /** memfd_create, for machines whose /dev/shm is too small. `name` is for /proc only. */
  openMemory(name: string): number;
  closeFile(fd: number): void;
  fileBytes(fd: number): number;
  /** posix_fallocate of [offset, offset+bytes): never sparse. ENOSPC when it does not fit (the file is cut back to its former size). */
  reserve(fd: number, offset: number, bytes: number): void;
  /** fallocate PUNCH_HOLE|KEEP_SIZE. */
  punchHole(fd: number, offset: number, bytes: number): void;
  /** Maps bytes [offset, offset+bytes) of fd shared; returns the arena number (the existing one if this process has mapped the range already; reference counted). */
  mapArena(fd: number, offset: number, bytes: number, options: MapOptions): number;
  /** Anonymous private arena. */
  allocateArena(bytes: number, options: MapOptions): number;
  /** This thread's ArrayBuffer over the arena (the same one when called again). Takes a reference where this thread holds none. */
  wrapArena(arena: number): ArrayBuffer;
  /** Drops one of this thread's references (its ArrayBuffer is detached with the last); unmaps when no thread holds any. */
  releaseArena(arena: number): void;
  /** Makes a range durable: clwb/clflushopt + sfence on a MAP_SYNC mapping, else msync(MS_SYNC). */
  persist(arena: number, offset: number, bytes: number): void;
  /** Physical facts: { hugePageBytes, residentBytes }. */
  arenaInfo(arena: number): { readonly bytes: number; readonly residentBytes: number; readonly hugePageBytes: number };

  // ---- bytes. The control block is one Int32Array per thread: writing words and calling a zero-argument function costs
  // 30 ns; five number arguments cost 70 ns; a JavaScript byte loop 2-3 ns a byte (measured, Node 20).
  /**
   * This thread's control block. COPY: [0] = count, then count x (toArena, toOffset, fromArena, fromOffset, bytes).
   */
  copyControl(): ArrayBuffer;
  /** Runs the copies in the control block (memmove each). Out-of-range records throw RangeError; nothing is copied then. */
  copy(): void;
  /**
   * Starts loading cache lines: the control block holds [0] = count, then count x (arena, offset, lines of 64 bytes). Lines outside an
   * arena are passed over. Waits for nothing.
   */
  prefetch(): void;
  /** The range in words 1..3 of the copy control block (arena, offset, bytes) decoded as UTF-8. */
  text(): string;
  /** -1, 0, 1 as memcmp then by length. */
  compare(arenaA: number, offsetA: number, bytesA: number, arenaB: number, offsetB: number, bytesB: number): number;
  /** CRC-32C of a range, continuing from `seed`. */
  crc32c(arena: number, offset: number, bytes: number, seed: number): number;

  /**
   * The angle in radians between two points of a sphere (longitude, latitude, longitude, latitude; radians too), with the C library's sin,
   * cos and asin: V8's differ in the last bit.
   */
  centralAngle(longitude1: number, latitude1: number, longitude2: number, latitude2: number): number;

  // ---- waiting and owner death
  /** Must be short (a terminated worker stops only when it is back in JavaScript). FUTEX_WAIT (shared) on an aligned word while it equals `expected`; true if woken, false on time-out or when it differed. */
  futexWait(arena: number, offset: number, expected: number, timeoutMs: number): boolean;
  futexWake(arena: number, offset: number, count: number): number;
  /** Takes an OFD write lock on one byte; false when somebody else holds it. The kernel drops it when the descriptor closes. */
  lockByte(fd: number, byte: number): boolean;
  /** As lockByte, with a read lock: any number of descriptions may hold it, none of them with lockByte. */
  lockByteShared(fd: number, byte: number): boolean;
  unlockByte(fd: number, byte: number): void;
  /** True when another open file description holds a lock on that byte. */
  isByteLocked(fd: number, byte: number): boolean;
  /** Runs when this environment ends, terminate() included: closes the descriptor (frees its byte locks). */
  closeAtExit(fd: number): void;

  /** True when the kernel offers `globalBarrier` (membarrier, MEMBARRIER_CMD_GLOBAL) to this process. */
  hasGlobalBarrier(): boolean;
  /** Each running thread of every process executes a full memory barrier before this returns, some milliseconds later; false when refused. */
  globalBarrier(): boolean;

  /** Page faults beyond the end of a file or on a failing medium that were answered with a page of zeros, in this process. */
  sigbusCount(): number;
  /** Of them, those in one arena. */
  arenaFaults(arena: number): number;

  // ---- events across threads
  /** An eventfd; closed when this environment ends. */
  openEvent(): number;
  /** Adds 1 to an eventfd of this process (openEvent or wakeFd); EBADF when it has been closed, whatever has its number now. */
  wake(eventFd: number): void;
  /** CLOCK_MONOTONIC in ms (fraction kept), CLOCK_REALTIME in ms. */
  monotonicMs(): number;
  realtimeMs(): number;

  // ---- machine facts
  /** statfs f_type name ('ext4', 'tmpfs', 'xfs', ...), total and free bytes, DAX flag of the inode (statx). */
  fileSystem(path: string): {
    readonly type: string;
    readonly bytes: number;
    readonly freeBytes: number;
    readonly dax: boolean;
  };
  /** Keeps the thread busy for so many nanoseconds: devices/model/charge. Must be short. */
  spin(ns: number): void;
  /** CPU pinning of the calling thread; no-op for an empty list. */
  pinThread(cpus: readonly number[]): void;

  createPump(options: {
    readonly inputBytes: number;
    readonly outputBytes: number;
    readonly maxEvents: number;
    /** Most bytes received from one connection in one turn. */
    readonly receiveBytes: number;
  }): Pump;
}

/**
 * Words of an event record. `offset` points into the input buffer when `arena` is -1, else into that arena: a request that
 * outgrew its input slot. Such an arena is the pump's, under a new number when it has grown: call wrapArena(arena) in the event's
 * turn and keep nothing of it (its ArrayBuffer is detached when it grows or goes).
 */
export const enum Event {
  conn = 0,
  kind = 1,
  offset = 2,
  length = 3,
  consumed = 4,
  aux = 5,
  arena = 6,
  WORDS = 8,
}

/** Words of the record behind the last event, which each poll writes. */
export const enum Gauge {
  /** What heldBytes() gives, in KiB, rounded up. */
  heldKib = 0,
}

export const enum HeldPart {
  /** Bytes of an incomplete request, and the memory they lie in. */
  INPUT_BYTES = 0,
  INPUT_CAPACITY = 1,
  /** Pieces of output that the socket has not taken, and the memory of those that were copied. */
  OUTPUT_CHUNKS = 2,
  OUTPUT_CAPACITY = 3,
  /** All memory: both capacities. */
  ALL = 4,
}

export const enum EventKind {
  /** `length` bytes at input+offset. Set `consumed`; the rest is kept and delivered again, contiguous with what comes next. When consumed < length, aux word written back: 0 = deliver again when more bytes arrive, 1 = deliver again next turn (work was bounded). */
  DATA = 1,
  /** New connection; aux = kind tag of the listener. */
  ACCEPT = 2,
  /** Gone (peer closed, error, limit). The number may be reused after the next poll. aux = 0 peer closed, else errno (ETIMEDOUT idle, ENOBUFS output limit, EMSGSIZE input limit). */
  CLOSE = 3,
  /** receiveInto is complete. */
  INTO_DONE = 4,
  /** A region send (arena >= 0 in its record) has left user space wholly or its connection is gone: aux = the record's token. */
  SENT = 5,
  /** The wake-up eventfd fired. */
  WAKE = 6,
  /** A datagram: conn = address slot valid this turn for replies, aux = kind tag of the listener. */
  DATAGRAM = 7,
  /** The peer of a connection that pauseReading(conn, true) stopped has finished sending (it may still read). Once per connection. */
  PEER_END = 8,
}

/** Words of a send record: conn, arena (-1 = output buffer; -2 = datagram from output to address slot conn), offset, length, token (region sends; 0 = none). Records of one connection are sent in order. */
export const enum Send {
  conn = 0,
  arena = 1,
  offset = 2,
  length = 3,
  token = 4,
  WORDS = 5,
}

/** Loads the addon of this checkout or package, or the one ENTRESOL_ADDON names (the sanitizer build). */
function load(): Addon {
  const require = createRequire(import.meta.url);
  return require(process.env.ENTRESOL_ADDON ?? findAddon()) as Addon;
}

export const addon: Addon = load();

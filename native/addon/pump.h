/*
 * The pump: one thread's socket engine. One poll() is one turn of the data plane.
 *
 *        JavaScript                                              kernel
 *   +------------------+  sends   +-------------------------+  sendmsg
 *   | output buffer    |--------->| 1 apply consumed words  |---------->
 *   |                  |          | 2 send records          |
 *   | events, input    |<---------| 3 wait (epoll)          |  recv
 *   +------------------+  events  | 4 receive, deliver      |<----------
 *                                 +-------------------------+
 *
 * Event record (Int32 words, EVENT_WORDS each; JavaScript writes `consumed` and `aux` of DATA events back):
 *
 *   +------+------+--------+--------+----------+-----+-------+--------+
 *   | conn | kind | offset | length | consumed | aux | arena | unused |
 *   +------+------+--------+--------+----------+-----+-------+--------+
 *   arena = -1: offset points into the input buffer; else into that arena (a request that outgrew its input slot)
 *
 * Send record (SEND_WORDS each): arena = -1: offset points into the output buffer; -2: a datagram from the output buffer
 * to address slot conn; else into that arena, which must stay as it is until the SENT event brings the token back.
 *
 *   +------+-------+--------+--------+-------+
 *   | conn | arena | offset | length | token |
 *   +------+-------+--------+--------+-------+
 *
 * Where a connection's unparsed bytes are, between turns (never in two places):
 *   nowhere           everything was consumed (the steady state: no allocation)
 *   stash             up to STASH_BYTES_MAX bytes, malloc-ed; copied in front of the next bytes in the input buffer
 *   own arena         more than that: received in place, grows by doubling through mremap, so nothing is copied again
 *
 * Owns: sockets, epoll, held input, queued output. The invariants: records of one connection leave in order; a
 * connection has at most one DATA or INTO_DONE event a turn; a connection number is reused only after the poll that
 * follows the one which delivered its CLOSE; nothing JavaScript may look at is freed or moved before the next poll.
 */
#ifndef ENTRESOL_PUMP_H
#define ENTRESOL_PUMP_H

#include "addon.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- the contract with src/native/addon.ts ---- */

/*
 * The C library's recv and send are cancellation points: in a process with threads they cost two atomic operations more
 * each, 3 % of a request's CPU time at pipeline depth 1. These go straight to the kernel.
 */
static inline ssize_t direct_recv(int fd, void *to, size_t room) {
  return syscall(SYS_recvfrom, fd, to, room, 0, NULL, NULL);
}

static inline ssize_t direct_recv_parts(int fd, struct iovec *parts, size_t count) {
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
  return syscall(SYS_recvmsg, fd, &message, 0);
}

static inline ssize_t direct_send(int fd, const void *from, size_t bytes) {
  return syscall(SYS_sendto, fd, from, bytes, MSG_NOSIGNAL, NULL, 0);
}

enum { EVENT_CONN, EVENT_KIND, EVENT_OFFSET, EVENT_LENGTH, EVENT_CONSUMED, EVENT_AUX, EVENT_ARENA, EVENT_WORDS = 8 };
/* Behind the last event record is one of gauges, written by each poll: KiB held for connections, rounded up. */
enum { GAUGE_HELD_KIB };
enum { SEND_CONN, SEND_ARENA, SEND_OFFSET, SEND_LENGTH, SEND_TOKEN, SEND_WORDS };
enum { SEND_FROM_OUTPUT = -1, SEND_DATAGRAM = -2 };
enum event_kind {
  KIND_DATA = 1,
  KIND_ACCEPT = 2,
  KIND_CLOSE = 3,
  KIND_INTO_DONE = 4,
  KIND_SENT = 5,
  KIND_WAKE = 6,
  KIND_DATAGRAM = 7,
  KIND_PEER_END = 8,
};

/* ---- bounds ---- */

enum {
  STASH_BYTES_MAX = 64 << 10,
  OWN_ARENA_BYTES_MIN = 256 << 10,
  RECEIVE_HEAD_BYTES = 1024, /* first of a connection that sends large values: what is received before the place is known is copied again */
  RECEIVE_TAIL_BYTES = 256,  /* what follows a large value, received with it: its line end, the next request's head */
  RECEIVE_INTO_BYTES_MAX = 1 << 20, /* a turn, one connection: 0.2 ms of copying that others wait for */
  FLUSH_BYTES_MAX = 2 << 20,        /* likewise */
  CHUNK_BYTES_MIN = 16 << 10,
  IOV_LIMIT = 64,
  SENDS_MIN = 16384, /* records of one send: 160 messages to each of 100 subscribers leave together */
  ACCEPT_LIMIT = 64, /* a turn, one listener */
  ACCEPT_RETRY_MS = 100,
  WAIT_MS_MAX = 250, /* so that a terminated worker comes back to JavaScript */
  EPOLL_BATCH = 512,
  DATAGRAM_BYTES_MAX = 65536,
  DATAGRAM_LIMIT = 32, /* a turn */
  CONN_BLOCK = 256,
  CONN_LIMIT = 1 << 20,
  SOFT_OUTPUT_BYTES_DEFAULT = 1 << 20,
  DRAIN_MS_MAX = 60000, /* to take the last replies before the connection is closed */
  IDLE_SLOTS = 512,
  IDLE_TICK_MS = 32,
};

/* ---- connections ---- */

enum conn_flag {
  CONN_PAUSED = 1 << 0,    /* pauseReading */
  CONN_CHOKED = 1 << 1,    /* more than the soft limit is queued */
  CONN_EOF = 1 << 2,       /* the peer has finished sending */
  CONN_CLOSING = 1 << 3,   /* close when the queue is empty; nothing more is delivered */
  CONN_READABLE = 1 << 4,  /* epoll said so, and the socket has not been seen empty since: it is in the ready list */
  CONN_HELD = 1 << 5,      /* held bytes (or a finished receiveInto) are to be delivered without waiting */
  CONN_LISTED = 1 << 6,    /* in the ready list */
  CONN_INTO = 1 << 7,      /* receiveInto is under way */
  CONN_DELIVERED = 1 << 8, /* its DATA event is with JavaScript */
  CONN_RESUMED = 1 << 9,   /* resumed while its event is with JavaScript: deliver what is left */
  CONN_END_TOLD = 1 << 10, /* PEER_END was reported */
  CONN_UNWATCHED = 1 << 11, /* out of epoll: hung up, but held bytes are still being delivered */
  CONN_SETTLING = 1 << 12, /* in the settle list */
  CONN_ENDING = 1 << 13,   /* epoll has seen the peer's end: it comes behind the bytes */
  CONN_LARGE = 1 << 14,    /* its last request had a large value: the next may be one, too */
  CONN_CORKED = 1 << 15,   /* holdOutput: what is written to it is queued */
};

typedef struct out_chunk {
  struct out_chunk *next;
  int32_t arena; /* -1: the bytes follow in data[] */
  int32_t token;
  uint32_t offset, length; /* what is left to send */
  uint32_t capacity;
  uint8_t data[];
} out_chunk;

typedef struct pump_conn {
  int fd; /* -1: closed */
  uint32_t flags;
  uint32_t generation;
  uint32_t interest; /* registered with epoll */
  int32_t ready_prev, ready_next;

  uint8_t *stash;
  uint32_t stash_bytes, stash_capacity;
  int32_t own_arena; /* -1: none */
  uint32_t own_head, own_tail;
  uint32_t delivered_offset, delivered_bytes; /* of the DATA event that is with JavaScript */

  int32_t into_arena;
  uint32_t into_offset, into_left, into_bytes;

  out_chunk *out_first, *out_last;
  uint64_t out_bytes;    /* queued in all */
  uint64_t copied_bytes; /* of which in our memory; the hard limit counts these */
  uint64_t chunk_bytes;  /* what that memory is, sent parts of chunks and free room included */
  uint32_t chunk_count;
  uint64_t soft_bytes, hard_bytes;

  uint32_t chain_turn; /* its records of this send are in chain `chain`, if that is the pump's */
  int32_t chain;

  uint32_t idle_ms;
  int32_t idle_slot; /* -1: not in the wheel */
  int32_t idle_prev, idle_next;
  int64_t active_ms;
  uint8_t kind;
} pump_conn;

/* The records of one connection in one send: indices into the record buffer, linked through next_record. */
typedef struct send_chain {
  int32_t conn, first, last;
} send_chain;

typedef struct pump_listener {
  int fd; /* -1: closed */
  int domain, type;
  uint8_t kind;
  bool is_watched;
  struct unix_socket *shared; /* a unix socket, with the pumps of other threads; else NULL */
} pump_listener;

typedef struct unix_socket unix_socket;

typedef struct pump_notice {
  int32_t conn, kind, aux;
} pump_notice;

typedef struct int_list {
  int32_t *items;
  uint32_t count, capacity;
} int_list;

struct datagram_batch;

typedef struct pump {
  instance *owner;
  struct pump *next;
  bool is_destroyed;

  int epoll_fd, wake_fd;
  int32_t input_arena, output_arena, events_arena, sends_arena;
  uint8_t *input, *output;
  int32_t *events, *sends;
  uint32_t input_bytes, output_bytes, receive_bytes, max_events, max_sends;
  uint32_t input_used, event_count;
  send_chain *chains;   /* max_sends of them */
  int32_t *next_record; /* likewise; -1: the chain's last */
  uint32_t chain_turn;
  int64_t now_ms;

  pump_conn **blocks;
  int32_t conn_count; /* slots ever used */
  int32_t live_count;
  int_list free_slots, resting_new, resting_old; /* see the invariant on numbers */
  int_list settling, doomed_arenas;
  int32_t ready_first, ready_last;

  pump_notice *notices; /* a ring */
  uint32_t notice_head, notice_count, notice_capacity;

  pump_listener *listeners;
  int32_t listener_count;
  bool is_accept_paused;
  int64_t accept_retry_ms; /* 0: not waiting for descriptors */

  int32_t max_connections;
  uint32_t max_input_bytes;
  uint8_t *refusal;
  uint32_t refusal_bytes;

  int64_t held_bytes;

  int32_t idle_slots[IDLE_SLOTS];
  int64_t idle_tick; /* all slots before it are done */
  uint32_t idle_count;

  struct datagram_batch *datagrams;
  struct epoll_event ready_events[EPOLL_BATCH];
} pump;

static inline pump_conn *conn_at(const pump *p, int32_t number) {
  return &p->blocks[number / CONN_BLOCK][number % CONN_BLOCK];
}

/* The live connection of a number, or NULL. */
static inline pump_conn *conn_live(const pump *p, int32_t number) {
  if (number < 0 || number >= p->conn_count) return NULL;
  pump_conn *c = conn_at(p, number);
  return c->fd >= 0 ? c : NULL;
}

/* What an epoll registration points at. */
enum watch_type { WATCH_CONN, WATCH_LISTENER, WATCH_DATAGRAMS, WATCH_WAKE };

static inline uint64_t watch_data(enum watch_type type, uint32_t generation, int32_t number) {
  return (uint64_t)type << 56 | (uint64_t)(generation & 0xffffff) << 32 | (uint32_t)number;
}

/* ---- pump.c: the turn ---- */
pump *pump_open(instance *owner, uint32_t input_bytes, uint32_t output_bytes, uint32_t max_events, uint32_t receive_bytes, int *error,
                const char **syscall_name);
void pump_destroy(pump *p);
/* Number of events, or -1 with *reason set: a send record was wrong. */
int32_t pump_turn(pump *p, int32_t send_count, int32_t timeout_ms, const char **reason);
void pump_notify(pump *p, int32_t conn, enum event_kind kind, int32_t aux);
/* Writes an event record; there must be room. */
int32_t *pump_emit(pump *p, int32_t conn, enum event_kind kind, int32_t aux);
void list_push(int_list *list, int32_t item);
void pump_out_of_memory(void) __attribute__((noreturn));

/* ---- pump_module.c, pump_module_conn.c ---- */
/* Reads arguments and the pump; NULL with a pending exception. */
pump *pump_enter(napi_env env, napi_callback_info info, size_t count, napi_value *args);
bool pump_define_conn_methods(napi_env env, napi_value object, pump *p);

/* ---- pump_conn.c ---- */
int32_t conn_open(pump *p, int fd, uint8_t kind); /* number, or -errno (fd stays the caller's) */
void conn_close(pump *p, int32_t number, int32_t aux, bool is_told);
void conn_watch(pump *p, int32_t number);  /* brings the epoll registration up to date */
void conn_list(pump *p, int32_t number);   /* appends to the ready list */
void conn_unlist(pump *p, int32_t number);
void conn_settle_later(pump *p, int32_t number);
void conn_settle(pump *p, int32_t number); /* closes it if it is done */
void conn_on_event(pump *p, int32_t number, uint32_t events);
void conn_rest_slots(pump *p);
void socket_finish(int fd);

/* ---- pump_held.c ---- */
bool held_keep(pump *p, pump_conn *c, const uint8_t *rest, uint32_t rest_bytes, bool is_untouched);
bool held_own_reserve(pump *p, pump_conn *c, uint32_t room);
void held_stash_free(pump *p, pump_conn *c);
void held_own_free(pump *p, pump_conn *c);
void held_drop(pump *p, pump_conn *c);

/* ---- pump_input.c ---- */
void input_apply(pump *p);
void input_serve(pump *p);
void input_into(pump *p, int32_t number, int32_t arena_number, uint32_t offset, uint32_t bytes);
void input_resume(pump *p, int32_t number);

/* ---- pump_send.c ---- */
const char *send_records(pump *p, int32_t count); /* NULL, or what is wrong with a record */
void send_queued(pump *p, int32_t number);
void output_drop(pump *p, int32_t number);

/* ---- pump_listen.c ---- */
int32_t listen_tcp(pump *p, const char *host, int port, int backlog, uint8_t kind, const char **syscall_name, bool *is_name_error);
int32_t listen_unix(pump *p, const char *path, int mode, int backlog, uint8_t kind, const char **syscall_name);
int32_t listen_udp(pump *p, const char *host, int port, uint8_t kind, const char **syscall_name, bool *is_name_error);
void listener_close(pump *p, int32_t number);

/* ---- pump_accept.c ---- */
void listeners_watch(pump *p);
void listener_accept(pump *p, int32_t number);
bool accept_conn(pump *p, int fd, uint8_t kind); /* takes an accepted descriptor; false when resources are short (it is closed then) */

/* ---- pump_unix.c ---- */
/* Shares the socket on a path with the other pumps of this process, opens it for the first; its own descriptor of it, or -errno. */
int unix_join(const pump *p, const char *path, int mode, int backlog, uint8_t kind, unix_socket **joined, const char **syscall_name);
void unix_leave(const pump *p, unix_socket *s);
void unix_pause(const pump *p, unix_socket *s, bool is_paused); /* a paused member is handed nothing */
bool unix_hand_over(const pump *p, unix_socket *s, int fd);     /* false: it is this pump's turn */
void unix_take_handed(pump *p);

/* ---- pump_udp.c ---- */
void datagrams_receive(pump *p, int32_t listener);
const char *datagrams_send(pump *p, const int32_t *record, int32_t count);
void datagrams_begin(pump *p); /* a new turn: its address slots start at 0 */
void datagrams_free(pump *p);

/* ---- pump_idle.c ---- */
void idle_init(pump *p);
void idle_arm(pump *p, int32_t number);
void idle_disarm(pump *p, int32_t number);
void idle_expire(pump *p);
int32_t idle_wait_ms(const pump *p, int32_t limit_ms);

#endif

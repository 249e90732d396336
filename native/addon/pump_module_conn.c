/*
 * The pump as JavaScript sees it: the methods about one connection.
 *
 * Owns nothing. The invariant: every connection number is looked up, so that a call about a connection that has gone meanwhile
 * does nothing (or gives 0, -1 or ''), for JavaScript may learn of the CLOSE only later in the same turn.
 */
#include "pump.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/un.h>

/* Reads the pump and a connection as first argument; *c is NULL when it has gone. */
static pump *enter_conn(napi_env env, napi_callback_info info, size_t count, napi_value *args, int32_t *number, pump_conn **c) {
  pump *p = pump_enter(env, info, count, args);
  if (p == NULL || !read_int32(env, args[0], number)) return NULL;
  *c = conn_live(p, *number);
  return p;
}

static napi_value method_receive_into(napi_env env, napi_callback_info info) {
  napi_value args[4];
  int32_t number, arena_number, offset, length;
  pump_conn *c;
  pump *p = enter_conn(env, info, 4, args, &number, &c);
  if (p == NULL || !read_int32(env, args[1], &arena_number) || !read_int32(env, args[2], &offset) || !read_int32(env, args[3], &length)) {
    return NULL;
  }
  if (arena_at(arena_number, offset, length) == NULL) return throw_range(env, "receiveInto: the range is outside the arena");
  if (c == NULL) return NULL;
  if ((c->flags & CONN_INTO) != 0) return throw_range(env, "receiveInto: one is under way already");
  input_into(p, number, arena_number, (uint32_t)offset, (uint32_t)length);
  return NULL;
}

static napi_value method_pause_reading(napi_env env, napi_callback_info info) {
  napi_value args[2];
  int32_t number;
  bool is_paused;
  pump_conn *c;
  pump *p = enter_conn(env, info, 2, args, &number, &c);
  if (p == NULL || !read_bool(env, args[1], &is_paused) || c == NULL) return NULL;
  if (is_paused == ((c->flags & CONN_PAUSED) != 0)) return NULL;
  if (is_paused) {
    c->flags |= CONN_PAUSED;
  } else {
    c->flags &= ~(uint32_t)CONN_PAUSED;
    input_resume(p, number);
  }
  conn_watch(p, number);
  return NULL;
}

static napi_value method_hold_output(napi_env env, napi_callback_info info) {
  napi_value args[2];
  int32_t number;
  bool is_held;
  pump_conn *c;
  pump *p = enter_conn(env, info, 2, args, &number, &c);
  if (p == NULL || !read_bool(env, args[1], &is_held) || c == NULL) return NULL;
  if (is_held) {
    c->flags |= CONN_CORKED;
    conn_watch(p, number);
  } else if ((c->flags & CONN_CORKED) != 0) {
    c->flags &= ~(uint32_t)CONN_CORKED;
    if (c->out_first != NULL) send_queued(p, number);
  }
  return NULL;
}

static uint64_t to_limit(double bytes) { return bytes > 0 && bytes < 9e15 ? (uint64_t)bytes : 0; }

static napi_value method_set_limits(napi_env env, napi_callback_info info) {
  napi_value args[4];
  int32_t number;
  double soft, hard, idle_ms;
  pump_conn *c;
  pump *p = enter_conn(env, info, 4, args, &number, &c);
  if (p == NULL || !read_double(env, args[1], &soft) || !read_double(env, args[2], &hard) || !read_double(env, args[3], &idle_ms) || c == NULL) {
    return NULL;
  }
  c->soft_bytes = to_limit(soft);
  c->hard_bytes = to_limit(hard);
  c->idle_ms = idle_ms > 0 ? (idle_ms < 4e9 ? (uint32_t)idle_ms : UINT32_MAX) : 0;
  if (c->idle_ms == 0) {
    idle_disarm(p, number);
  } else {
    idle_arm(p, number);
  }
  return NULL;
}

static napi_value method_close(napi_env env, napi_callback_info info) {
  napi_value args[2];
  int32_t number;
  bool is_abort;
  pump_conn *c;
  pump *p = enter_conn(env, info, 2, args, &number, &c);
  if (p == NULL || !read_bool(env, args[1], &is_abort) || c == NULL) return NULL;
  if (is_abort) {
    conn_close(p, number, 0, false);
  } else if ((c->flags & CONN_CLOSING) == 0) { /* settled after the records of this turn were sent */
    c->flags |= CONN_CLOSING;
    conn_settle_later(p, number);
  }
  return NULL;
}

static napi_value method_output_queued(napi_env env, napi_callback_info info) {
  napi_value args[1];
  int32_t number;
  pump_conn *c;
  if (enter_conn(env, info, 1, args, &number, &c) == NULL) return NULL;
  return make_double(env, c == NULL ? 0 : (double)c->out_bytes);
}

enum { HELD_INPUT_BYTES, HELD_INPUT_CAPACITY, HELD_OUTPUT_CHUNKS, HELD_OUTPUT_CAPACITY, HELD_IN_ALL };

static uint64_t held_part(const pump_conn *c, int32_t part) {
  const uint64_t input = c->own_arena >= 0 ? arena_table[c->own_arena].bytes : c->stash_capacity;
  switch (part) {
    case HELD_INPUT_BYTES: return c->own_arena >= 0 ? c->own_tail - c->own_head : c->stash_bytes;
    case HELD_INPUT_CAPACITY: return input;
    case HELD_OUTPUT_CHUNKS: return c->chunk_count;
    case HELD_OUTPUT_CAPACITY: return c->chunk_bytes;
    default: return input + c->chunk_bytes;
  }
}

static napi_value method_held(napi_env env, napi_callback_info info) {
  napi_value args[2];
  int32_t number, part;
  pump_conn *c;
  if (enter_conn(env, info, 2, args, &number, &c) == NULL || !read_int32(env, args[1], &part)) return NULL;
  if (part < 0 || part > HELD_IN_ALL) return throw_range(env, "held: no such part");
  return make_double(env, c == NULL ? 0 : (double)held_part(c, part));
}

static napi_value method_fd(napi_env env, napi_callback_info info) {
  napi_value args[1];
  int32_t number;
  pump_conn *c;
  if (enter_conn(env, info, 1, args, &number, &c) == NULL) return NULL;
  return make_int32(env, c == NULL ? -1 : c->fd);
}

static void format_address(const struct sockaddr_storage *address, socklen_t bytes, char *text, size_t text_bytes) {
  char host[INET6_ADDRSTRLEN];
  text[0] = '\0';
  if (address->ss_family == AF_INET) {
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
    inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
    snprintf(text, text_bytes, "%s:%d", host, ntohs(v4->sin_port));
  } else if (address->ss_family == AF_INET6) {
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
    inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
    snprintf(text, text_bytes, "[%s]:%d", host, ntohs(v6->sin6_port));
  } else if (address->ss_family == AF_UNIX && bytes > offsetof(struct sockaddr_un, sun_path)) {
    const struct sockaddr_un *local = (const struct sockaddr_un *)address;
    snprintf(text, text_bytes, "%.*s", (int)(bytes - offsetof(struct sockaddr_un, sun_path)), local->sun_path);
  }
}

typedef int (*name_function)(int, struct sockaddr *, socklen_t *);

static napi_value address_of(napi_env env, napi_callback_info info, name_function name) {
  napi_value args[1];
  int32_t number;
  pump_conn *c;
  char text[256] = "";
  if (enter_conn(env, info, 1, args, &number, &c) == NULL) return NULL;
  struct sockaddr_storage address;
  socklen_t bytes = sizeof address;
  if (c != NULL && name(c->fd, (struct sockaddr *)&address, &bytes) == 0) {
    if (address.ss_family == AF_UNIX) { /* the peer of a unix socket has no name: both ends are the path */
      bytes = sizeof address;
      if (getsockname(c->fd, (struct sockaddr *)&address, &bytes) != 0) bytes = 0;
    }
    format_address(&address, bytes, text, sizeof text);
  }
  return make_string(env, text);
}

static napi_value method_peer_address(napi_env env, napi_callback_info info) { return address_of(env, info, getpeername); }

static napi_value method_local_address(napi_env env, napi_callback_info info) { return address_of(env, info, getsockname); }

bool pump_define_conn_methods(napi_env env, napi_value object, pump *p) {
  static const method methods[] = {
      {"receiveInto", method_receive_into},
      {"pauseReading", method_pause_reading},
      {"holdOutput", method_hold_output},
      {"setLimits", method_set_limits},
      {"close", method_close},
      {"outputQueued", method_output_queued},
      {"held", method_held},
      {"peerAddress", method_peer_address},
      {"localAddress", method_local_address},
      {"fd", method_fd},
  };
  return define_methods(env, object, methods, COUNT_OF(methods), p);
}

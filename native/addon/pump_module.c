/*
 * The pump as JavaScript sees it: createPump and the methods about the turn, listeners and the whole.
 *
 * Owns nothing: the methods' data pointer is the pump, whose shell lives until the environment ends, so that a call after
 * destroy() is an error and not a crash.
 */
#include "pump.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUT_BYTES_MIN = 64 << 10, MAX_EVENTS_MIN = 8, MAX_EVENTS_MAX = 1 << 16 };

pump *pump_enter(napi_env env, napi_callback_info info, size_t count, napi_value *args) {
  void *data;
  if (!read_args(env, info, count, args, &data)) return NULL;
  pump *p = data;
  if (!p->is_destroyed) return p;
  throw_errno(env, EBADF, "pump", NULL);
  return NULL;
}

/* ---- the turn ---- */

static napi_value method_poll(napi_env env, napi_callback_info info) {
  napi_value args[2];
  int32_t send_count, timeout_ms;
  pump *p = pump_enter(env, info, 2, args);
  if (p == NULL || !read_int32(env, args[0], &send_count) || !read_int32(env, args[1], &timeout_ms)) return NULL;
  const char *reason;
  const int32_t count = pump_turn(p, send_count, p->owner->is_stopping ? 0 : timeout_ms, &reason);
  if (count == 0 && timeout_ms != 0) instance_note_stop(p->owner, args[0]);
  return count < 0 ? throw_range(env, reason) : make_int32(env, count);
}

static napi_value method_flush(napi_env env, napi_callback_info info) {
  napi_value args[1];
  int32_t send_count;
  pump *p = pump_enter(env, info, 1, args);
  if (p == NULL || !read_int32(env, args[0], &send_count)) return NULL;
  const char *reason = send_records(p, send_count);
  return reason == NULL ? NULL : throw_range(env, reason);
}

/* ---- listeners ---- */

typedef struct listen_call {
  char *host; /* or path */
  int32_t number[3];
} listen_call;

/* Reads (string, number ...); the caller frees host. */
static pump *enter_listen(napi_env env, napi_callback_info info, size_t numbers, listen_call *call) {
  napi_value args[4];
  pump *p = pump_enter(env, info, numbers + 1, args);
  if (p == NULL) return NULL;
  for (size_t i = 0; i < numbers; i++) {
    if (!read_int32(env, args[i + 1], &call->number[i])) return NULL;
  }
  const int32_t kind = call->number[numbers - 1];
  if (kind < 0 || kind > 255) {
    throw_range(env, "a listener's kind is 0..255");
    return NULL;
  }
  call->host = read_string(env, args[0]);
  return call->host == NULL ? NULL : p;
}

static napi_value internet_result(napi_env env, const listen_call *call, int32_t status, const char *syscall_name, bool is_name_error) {
  char place[320];
  if (status >= 0) return make_int32(env, status);
  snprintf(place, sizeof place, "%.255s:%d", call->host, call->number[0]);
  if (is_name_error) return throw_coded(env, "ENOTFOUND", ENOENT, syscall_name, place, "unknown host");
  return throw_errno(env, -status, syscall_name, place);
}

static bool check_port(napi_env env, int32_t port) {
  if (port >= 0 && port <= 65535) return true;
  throw_range(env, "a port is 0..65535");
  return false;
}

static napi_value method_listen_tcp(napi_env env, napi_callback_info info) {
  listen_call call;
  const char *syscall_name;
  bool is_name_error = false;
  pump *p = enter_listen(env, info, 3, &call);
  if (p == NULL) return NULL;
  napi_value result = NULL;
  if (check_port(env, call.number[0])) {
    const int32_t status = listen_tcp(p, call.host, call.number[0], call.number[1], (uint8_t)call.number[2], &syscall_name, &is_name_error);
    result = internet_result(env, &call, status, syscall_name, is_name_error);
  }
  free(call.host);
  return result;
}

static napi_value method_listen_udp(napi_env env, napi_callback_info info) {
  listen_call call;
  const char *syscall_name;
  bool is_name_error = false;
  pump *p = enter_listen(env, info, 2, &call);
  if (p == NULL) return NULL;
  napi_value result = NULL;
  if (p->input_bytes / 2 < DATAGRAM_BYTES_MAX) {
    throw_range(env, "datagrams need inputBytes of 128 KiB or more");
  } else if (check_port(env, call.number[0])) {
    const int32_t status = listen_udp(p, call.host, call.number[0], (uint8_t)call.number[1], &syscall_name, &is_name_error);
    result = internet_result(env, &call, status, syscall_name, is_name_error);
  }
  free(call.host);
  return result;
}

static napi_value method_listen_unix(napi_env env, napi_callback_info info) {
  listen_call call;
  const char *syscall_name;
  pump *p = enter_listen(env, info, 3, &call);
  if (p == NULL) return NULL;
  const int32_t status = listen_unix(p, call.host, call.number[0], call.number[1], (uint8_t)call.number[2], &syscall_name);
  napi_value result = status < 0 ? throw_errno(env, -status, syscall_name, call.host) : make_int32(env, status);
  free(call.host);
  return result;
}

static pump_listener *enter_listener(napi_env env, napi_callback_info info, pump **p, int32_t *number) {
  napi_value args[1];
  *p = pump_enter(env, info, 1, args);
  if (*p == NULL || !read_int32(env, args[0], number)) return NULL;
  if (*number >= 0 && *number < (*p)->listener_count && (*p)->listeners[*number].fd >= 0) return &(*p)->listeners[*number];
  throw_range(env, "no such listener");
  return NULL;
}

static napi_value method_listener_port(napi_env env, napi_callback_info info) {
  pump *p;
  int32_t number;
  const pump_listener *listener = enter_listener(env, info, &p, &number);
  if (listener == NULL) return NULL;
  struct sockaddr_storage address;
  socklen_t bytes = sizeof address;
  if (getsockname(listener->fd, (struct sockaddr *)&address, &bytes) != 0) return throw_errno(env, errno, "getsockname", NULL);
  if (address.ss_family == AF_INET) return make_int32(env, ntohs(((struct sockaddr_in *)&address)->sin_port));
  if (address.ss_family == AF_INET6) return make_int32(env, ntohs(((struct sockaddr_in6 *)&address)->sin6_port));
  return make_int32(env, 0);
}

static napi_value method_close_listener(napi_env env, napi_callback_info info) {
  pump *p;
  int32_t number;
  if (enter_listener(env, info, &p, &number) != NULL) listener_close(p, number);
  return NULL;
}

static napi_value method_pause_accept(napi_env env, napi_callback_info info) {
  napi_value args[1];
  bool is_paused;
  pump *p = pump_enter(env, info, 1, args);
  if (p == NULL || !read_bool(env, args[0], &is_paused)) return NULL;
  p->is_accept_paused = is_paused;
  for (int32_t i = 0; i < p->listener_count; i++) {
    if (p->listeners[i].shared != NULL) unix_pause(p, p->listeners[i].shared, is_paused);
  }
  listeners_watch(p);
  return NULL;
}

/* ---- the whole ---- */

static napi_value method_held_bytes(napi_env env, napi_callback_info info) {
  pump *p = pump_enter(env, info, 0, NULL);
  return p == NULL ? NULL : make_double(env, (double)p->held_bytes);
}

static napi_value method_set_global_limits(napi_env env, napi_callback_info info) {
  napi_value args[3];
  int64_t max_connections, max_input_bytes;
  pump *p = pump_enter(env, info, 3, args);
  if (p == NULL || !read_int64(env, args[0], &max_connections) || !read_int64(env, args[1], &max_input_bytes)) return NULL;
  if (max_connections < 0 || max_input_bytes < 1) return throw_range(env, "limits are positive");
  napi_typedarray_type type;
  size_t length;
  void *bytes;
  if (napi_get_typedarray_info(env, args[2], &type, &length, &bytes, NULL, NULL) != napi_ok || type != napi_uint8_array) {
    return throw_type(env, "expected a Uint8Array");
  }
  uint8_t *refusal = malloc(length + 1);
  if (refusal == NULL) return throw_errno(env, ENOMEM, "malloc", NULL);
  if (length > 0) memcpy(refusal, bytes, length);
  free(p->refusal);
  p->refusal = refusal;
  p->refusal_bytes = (uint32_t)length;
  p->max_connections = max_connections < CONN_LIMIT ? (int32_t)max_connections : CONN_LIMIT;
  p->max_input_bytes = max_input_bytes < (int64_t)ARENA_BYTES_MAX ? (uint32_t)max_input_bytes : (uint32_t)ARENA_BYTES_MAX;
  return NULL;
}

static napi_value method_destroy(napi_env env, napi_callback_info info) {
  void *data;
  if (!read_args(env, info, 0, NULL, &data)) return NULL;
  pump_destroy(data);
  return NULL;
}

static bool set_property(napi_env env, napi_value object, const char *name, napi_value value) {
  if (value == NULL) return false;
  if (napi_set_named_property(env, object, name, value) == napi_ok) return true;
  throw_status(env);
  return false;
}

static bool set_properties(napi_env env, napi_value object, pump *p) {
  return set_property(env, object, "input", instance_wrap(p->owner, p->input_arena)) &&
         set_property(env, object, "output", instance_wrap(p->owner, p->output_arena)) &&
         set_property(env, object, "events", instance_wrap(p->owner, p->events_arena)) &&
         set_property(env, object, "sends", instance_wrap(p->owner, p->sends_arena)) &&
         set_property(env, object, "inputArena", make_int32(env, p->input_arena)) &&
         set_property(env, object, "outputArena", make_int32(env, p->output_arena)) &&
         set_property(env, object, "wakeFd", make_int32(env, p->wake_fd));
}

static bool read_option(napi_env env, napi_value options, const char *name, int64_t least, int64_t most, uint32_t *out) {
  napi_value value;
  int64_t number;
  char text[96];
  if (napi_get_named_property(env, options, name, &value) != napi_ok) return throw_type(env, "expected options") != NULL;
  if (!read_int64(env, value, &number)) return false;
  if (number < least || number > most) {
    snprintf(text, sizeof text, "%s must be %lld..%lld", name, (long long)least, (long long)most);
    return throw_range(env, text) != NULL;
  }
  *out = (uint32_t)number;
  return true;
}

static napi_value create_pump(napi_env env, napi_callback_info info) {
  static const method methods[] = {
      {"poll", method_poll},
      {"flush", method_flush},
      {"listenTcp", method_listen_tcp},
      {"listenUnix", method_listen_unix},
      {"listenUdp", method_listen_udp},
      {"listenerPort", method_listener_port},
      {"closeListener", method_close_listener},
      {"pauseAccept", method_pause_accept},
      {"heldBytes", method_held_bytes},
      {"setGlobalLimits", method_set_global_limits},
      {"destroy", method_destroy},
  };
  napi_value args[1], object;
  uint32_t input_bytes, output_bytes, max_events, receive_bytes;
  if (!read_args(env, info, 1, args, NULL) || !read_option(env, args[0], "inputBytes", INPUT_BYTES_MIN, ARENA_BYTES_MAX, &input_bytes) ||
      !read_option(env, args[0], "outputBytes", 1, ARENA_BYTES_MAX, &output_bytes) ||
      !read_option(env, args[0], "maxEvents", MAX_EVENTS_MIN, MAX_EVENTS_MAX, &max_events) ||
      /* a full stash and as much again must fit into the input buffer, or its connection could never be served */
      !read_option(env, args[0], "receiveBytes", 1024, input_bytes / 2, &receive_bytes)) {
    return NULL;
  }
  int error;
  const char *syscall_name;
  pump *p = pump_open(instance_of(env), input_bytes, output_bytes, max_events, receive_bytes, &error, &syscall_name);
  if (p == NULL) return throw_errno(env, error, syscall_name, NULL);
  if (napi_create_object(env, &object) != napi_ok) return throw_status(env);
  if (!set_properties(env, object, p) || !define_methods(env, object, methods, COUNT_OF(methods), p) ||
      !pump_define_conn_methods(env, object, p)) {
    pump_destroy(p);
    return NULL;
  }
  return object;
}

bool pump_init(napi_env env, napi_value exports) {
  static const method methods[] = {{"createPump", create_pump}};
  return define_methods(env, exports, methods, COUNT_OF(methods), NULL);
}

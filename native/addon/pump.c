/*
 * The turn: apply, send, wait, receive. Also the pump's life and its notices.
 *
 * Owns the epoll instance, the four shared buffers and the notice ring (events that wait for room in the event buffer). The
 * invariant: within one poll() nothing runs twice for a connection, and the event buffer never overflows.
 */
#include "pump.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void pump_out_of_memory(void) { napi_fatal_error("entresol pump", NAPI_AUTO_LENGTH, "out of memory", NAPI_AUTO_LENGTH); }

void list_push(int_list *list, int32_t item) {
  if (list->count == list->capacity) {
    const uint32_t capacity = list->capacity == 0 ? 64 : list->capacity * 2;
    int32_t *items = realloc(list->items, capacity * sizeof *items);
    if (items == NULL) pump_out_of_memory();
    list->items = items;
    list->capacity = capacity;
  }
  list->items[list->count++] = item;
}

void pump_notify(pump *p, int32_t conn, enum event_kind kind, int32_t aux) {
  if (p->notice_count == p->notice_capacity) {
    const uint32_t capacity = p->notice_capacity == 0 ? 256 : p->notice_capacity * 2;
    pump_notice *grown = malloc(capacity * sizeof *grown);
    if (grown == NULL) pump_out_of_memory();
    for (uint32_t i = 0; i < p->notice_count; i++) grown[i] = p->notices[(p->notice_head + i) % p->notice_capacity];
    free(p->notices);
    p->notices = grown;
    p->notice_head = 0;
    p->notice_capacity = capacity;
  }
  const uint32_t at = (p->notice_head + p->notice_count++) % p->notice_capacity;
  p->notices[at] = (pump_notice){.conn = conn, .kind = (int32_t)kind, .aux = aux};
}

int32_t *pump_emit(pump *p, int32_t conn, enum event_kind kind, int32_t aux) {
  int32_t *event = p->events + (size_t)p->event_count++ * EVENT_WORDS;
  event[EVENT_CONN] = conn;
  event[EVENT_KIND] = (int32_t)kind;
  event[EVENT_OFFSET] = 0;
  event[EVENT_LENGTH] = 0;
  event[EVENT_CONSUMED] = 0;
  event[EVENT_AUX] = aux;
  event[EVENT_ARENA] = -1;
  return event;
}

static void emit_notices(pump *p) {
  while (p->notice_count > 0 && p->event_count < p->max_events) {
    const pump_notice notice = p->notices[p->notice_head];
    p->notice_head = (p->notice_head + 1) % p->notice_capacity;
    p->notice_count--;
    pump_emit(p, notice.conn, (enum event_kind)notice.kind, notice.aux);
    if (notice.kind == KIND_CLOSE) list_push(&p->resting_new, notice.conn);
  }
}

static int64_t clock_now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void drain_wake(pump *p) {
  uint64_t count;
  if (read(p->wake_fd, &count, sizeof count) != (ssize_t)sizeof count) return;
  unix_take_handed(p);
  pump_notify(p, -1, KIND_WAKE, 0);
}

/* Dead connections' arenas: JavaScript has left them by now. */
static void release_doomed(pump *p) {
  for (uint32_t i = 0; i < p->doomed_arenas.count; i++) instance_release(p->owner, p->doomed_arenas.items[i]);
  p->doomed_arenas.count = 0;
}

static void settle_all(pump *p) {
  for (uint32_t i = 0; i < p->settling.count; i++) conn_settle(p, p->settling.items[i]);
  p->settling.count = 0;
}

static int32_t wait_limit_ms(const pump *p, int64_t deadline_ms) {
  if (p->now_ms >= deadline_ms || p->ready_first >= 0 || p->notice_count > 0) return 0;
  int32_t limit = (int32_t)(deadline_ms - p->now_ms);
  if (p->accept_retry_ms > 0) {
    const int64_t left = p->accept_retry_ms - p->now_ms;
    if (left < limit) limit = left < 0 ? 0 : (int32_t)left;
  }
  return idle_wait_ms(p, limit);
}

/* False when there was nothing: the time is over, or a signal came. */
static bool wait_for_events(pump *p, int64_t deadline_ms) {
  const int32_t limit_ms = wait_limit_ms(p, deadline_ms);
  int count = epoll_wait(p->epoll_fd, p->ready_events, EPOLL_BATCH, limit_ms);
  if (limit_ms != 0) p->now_ms = clock_now_ms();
  for (int i = 0; i < count; i++) {
    const uint64_t data = p->ready_events[i].data.u64;
    const int32_t number = (int32_t)(uint32_t)data;
    switch ((enum watch_type)(data >> 56)) {
      case WATCH_CONN: {
        const pump_conn *c = conn_live(p, number);
        if (c != NULL && (c->generation & 0xffffff) == (uint32_t)(data >> 32 & 0xffffff)) conn_on_event(p, number, p->ready_events[i].events);
        break;
      }
      case WATCH_LISTENER: listener_accept(p, number); break;
      case WATCH_DATAGRAMS: datagrams_receive(p, number); break;
      case WATCH_WAKE: drain_wake(p); break;
    }
  }
  return count > 0;
}

/*
 * Waits and receives until there is an event or the time is over: parts of a large value that go straight to their place or out
 * of it are no news to JavaScript.
 */
static void gather_events(pump *p, int32_t timeout_ms) {
  const int32_t wait_ms = timeout_ms < 0 || timeout_ms > WAIT_MS_MAX ? WAIT_MS_MAX : timeout_ms;
  const int64_t deadline_ms = p->now_ms + wait_ms;
  bool is_more;
  do {
    is_more = wait_for_events(p, deadline_ms) || p->ready_first >= 0;
    idle_expire(p);
    emit_notices(p);
    input_serve(p);
    emit_notices(p);
  } while (is_more && p->event_count == 0 && p->now_ms < deadline_ms);
}

int32_t pump_turn(pump *p, int32_t send_count, int32_t timeout_ms, const char **reason) {
  p->now_ms = clock_now_ms();
  release_doomed(p);
  input_apply(p);
  p->event_count = 0;
  p->input_used = 0;
  if ((*reason = send_records(p, send_count)) != NULL) return -1;
  settle_all(p);
  datagrams_begin(p);
  if (p->accept_retry_ms > 0 && p->now_ms >= p->accept_retry_ms) {
    p->accept_retry_ms = 0;
    listeners_watch(p);
  }
  gather_events(p, timeout_ms);
  conn_rest_slots(p);
  p->events[(size_t)p->max_events * EVENT_WORDS + GAUGE_HELD_KIB] = (int32_t)((p->held_bytes + 1023) >> 10);
  return (int32_t)p->event_count;
}

/* Allocates one shared buffer; false with *error set. */
static bool open_buffer(pump *p, size_t bytes, int32_t *number, int *error, const char **syscall_name) {
  const map_options options = {.numa_node = -1};
  *number = arena_allocate(bytes, &options, syscall_name);
  if (*number < 0) {
    *error = -*number;
    return false;
  }
  if (instance_hold(p->owner, *number)) return true;
  arena_drop(*number);
  *number = -1;
  *error = ENOMEM;
  return false;
}

static bool open_watches(pump *p, int *error, const char **syscall_name) {
  *syscall_name = "epoll_create1";
  p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  if (p->epoll_fd < 0) {
    *error = errno;
    return false;
  }
  *syscall_name = "eventfd";
  p->wake_fd = event_open();
  if (p->wake_fd < 0) {
    *error = -p->wake_fd;
    return false;
  }
  *syscall_name = "epoll_ctl";
  struct epoll_event watch = {.events = EPOLLIN, .data.u64 = watch_data(WATCH_WAKE, 0, 0)};
  *error = epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, p->wake_fd, &watch) == 0 ? 0 : errno;
  return *error == 0;
}

static bool open_chains(pump *p, int *error, const char **syscall_name) {
  p->chains = calloc(p->max_sends, sizeof *p->chains);
  p->next_record = calloc(p->max_sends, sizeof *p->next_record);
  if (p->chains != NULL && p->next_record != NULL) return true;
  *error = ENOMEM;
  *syscall_name = "calloc";
  return false;
}

pump *pump_open(instance *owner, uint32_t input_bytes, uint32_t output_bytes, uint32_t max_events, uint32_t receive_bytes, int *error,
                const char **syscall_name) {
  pump *p = calloc(1, sizeof *p);
  *syscall_name = "calloc";
  *error = ENOMEM;
  if (p == NULL) return NULL;
  p->owner = owner;
  p->epoll_fd = p->wake_fd = -1;
  p->input_arena = p->output_arena = p->events_arena = p->sends_arena = -1;
  p->ready_first = p->ready_last = -1;
  p->input_bytes = input_bytes;
  p->output_bytes = output_bytes;
  p->receive_bytes = receive_bytes;
  p->max_events = max_events;
  p->max_sends = max_events * 4 > SENDS_MIN ? max_events * 4 : SENDS_MIN;
  p->max_connections = CONN_LIMIT;
  p->max_input_bytes = (uint32_t)ARENA_BYTES_MAX;
  p->now_ms = clock_now_ms();
  idle_init(p);
  p->next = owner->pumps;
  owner->pumps = p;
  if (!open_buffer(p, input_bytes, &p->input_arena, error, syscall_name) || !open_buffer(p, output_bytes, &p->output_arena, error, syscall_name) ||
      !open_buffer(p, ((size_t)max_events + 1) * EVENT_WORDS * 4, &p->events_arena, error, syscall_name) ||
      !open_buffer(p, (size_t)p->max_sends * SEND_WORDS * 4, &p->sends_arena, error, syscall_name) || !open_chains(p, error, syscall_name) || !open_watches(p, error, syscall_name)) {
    pump_destroy(p);
    return NULL;
  }
  p->input = arena_table[p->input_arena].base;
  p->output = arena_table[p->output_arena].base;
  p->events = (int32_t *)(void *)arena_table[p->events_arena].base;
  p->sends = (int32_t *)(void *)arena_table[p->sends_arena].base;
  return p;
}

static void release_buffer(pump *p, int32_t *number) {
  if (*number >= 0) instance_release(p->owner, *number);
  *number = -1;
}

void pump_destroy(pump *p) {
  if (p->is_destroyed) return;
  p->is_destroyed = true;
  for (int32_t i = 0; i < p->conn_count; i++) {
    if (conn_live(p, i) != NULL) conn_close(p, i, 0, false);
  }
  for (int32_t i = 0; i < p->listener_count; i++) listener_close(p, i);
  release_doomed(p);
  if (p->epoll_fd >= 0) close(p->epoll_fd);
  if (p->wake_fd >= 0) event_close(p->wake_fd);
  release_buffer(p, &p->input_arena);
  release_buffer(p, &p->output_arena);
  release_buffer(p, &p->events_arena);
  release_buffer(p, &p->sends_arena);
  for (int32_t i = 0; i < p->conn_count; i += CONN_BLOCK) free(p->blocks[i / CONN_BLOCK]);
  free(p->blocks);
  free(p->free_slots.items);
  free(p->resting_new.items);
  free(p->resting_old.items);
  free(p->settling.items);
  free(p->doomed_arenas.items);
  free(p->notices);
  free(p->chains);
  free(p->next_record);
  free(p->listeners);
  free(p->refusal);
  datagrams_free(p);
  p->conn_count = p->listener_count = 0;
}

/* The clean-up hook of an environment. The shells themselves go here: no JavaScript function can reach them any more. */
void pump_destroy_all(instance *self) {
  for (pump *p = self->pumps; p != NULL;) {
    pump *next = p->next;
    pump_destroy(p);
    free(p);
    p = next;
  }
  self->pumps = NULL;
}

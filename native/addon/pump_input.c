/*
 * Input: receiving, delivering, applying what JavaScript consumed.
 *
 * Owns the order of a connection's bytes. The invariant: they are delivered contiguous and in order, at most once per turn and
 * connection, and only when there is more to see than before (or JavaScript asked for them again).
 */
#include "pump.h"

#include <errno.h>
#include <string.h>

static inline int32_t *event_at(const pump *p, uint32_t index) { return p->events + (size_t)index * EVENT_WORDS; }

/* ---- applying what JavaScript wrote back ---- */

/* Held bytes go into the place that receiveInto named. Returns how many were taken. */
static uint32_t feed_into(pump *p, int32_t number, const uint8_t *bytes, uint32_t available) {
  pump_conn *c = conn_at(p, number);
  const uint32_t taken = available < c->into_left ? available : c->into_left;
  uint8_t *to = arena_at(c->into_arena, c->into_offset, taken);
  if (to == NULL) { /* released meanwhile */
    conn_close(p, number, EFAULT, true);
    return 0;
  }
  memmove(to, bytes, taken);
  c->into_offset += taken;
  c->into_left -= taken;
  if (c->into_left == 0) {
    c->flags |= CONN_HELD;
    conn_list(p, number);
  }
  return taken;
}

/* Bytes held from earlier turns, which JavaScript is not looking at now. */
static void feed_into_from_held(pump *p, int32_t number) {
  pump_conn *c = conn_at(p, number);
  if (c->own_arena >= 0) {
    const uint32_t taken = feed_into(p, number, arena_table[c->own_arena].base + c->own_head, c->own_tail - c->own_head);
    if (c->fd < 0) return;
    c->own_head += taken;
    if (c->own_head == c->own_tail) held_own_free(p, c);
  } else if (c->stash_bytes > 0) {
    const uint32_t taken = feed_into(p, number, c->stash, c->stash_bytes);
    if (c->fd < 0) return;
    c->stash_bytes -= taken;
    memmove(c->stash, c->stash + taken, c->stash_bytes);
    if (c->stash_bytes == 0) held_stash_free(p, c);
  }
}

void input_into(pump *p, int32_t number, int32_t arena_number, uint32_t offset, uint32_t bytes) {
  pump_conn *c = conn_at(p, number);
  c->flags = (c->flags | CONN_INTO | CONN_LARGE) & ~(uint32_t)CONN_HELD;
  c->into_arena = arena_number;
  c->into_offset = offset;
  c->into_left = c->into_bytes = bytes;
  if (bytes == 0) {
    c->flags |= CONN_HELD;
    conn_list(p, number);
  } else if ((c->flags & CONN_DELIVERED) == 0) {
    feed_into_from_held(p, number);
  }
}

void input_resume(pump *p, int32_t number) {
  pump_conn *c = conn_at(p, number);
  if ((c->flags & CONN_DELIVERED) != 0) {
    c->flags |= CONN_RESUMED;
  } else if ((c->stash_bytes > 0 || c->own_arena >= 0) && (c->flags & CONN_INTO) == 0) {
    c->flags |= CONN_HELD;
  }
  if ((c->flags & CONN_HELD) != 0) conn_list(p, number);
  if ((c->flags & CONN_EOF) != 0) conn_settle_later(p, number);
}

static void apply_event(pump *p, const int32_t *event) {
  const int32_t number = event[EVENT_CONN];
  pump_conn *c = conn_live(p, number);
  if (c == NULL || (c->flags & CONN_DELIVERED) == 0) return;
  c->flags &= ~(uint32_t)CONN_DELIVERED;
  const uint32_t length = c->delivered_bytes; /* not the event's words: JavaScript can write to those */
  uint32_t consumed = event[EVENT_CONSUMED] < 0 ? 0 : (uint32_t)event[EVENT_CONSUMED];
  if (consumed > length) consumed = length;
  const uint8_t *base = c->own_arena >= 0 ? arena_table[c->own_arena].base : p->input;
  const uint8_t *rest = base + c->delivered_offset + consumed;
  uint32_t rest_bytes = length - consumed;
  const bool is_resumed = (c->flags & CONN_RESUMED) != 0;
  c->flags &= ~(uint32_t)CONN_RESUMED;
  if ((c->flags & CONN_CLOSING) != 0) {
    held_drop(p, c);
    return;
  }
  if ((c->flags & CONN_INTO) == 0 && (rest_bytes > 0 || length >= RECEIVE_HEAD_BYTES)) c->flags &= ~(uint32_t)CONN_LARGE;
  bool is_untouched = consumed == 0;
  if ((c->flags & CONN_INTO) != 0 && c->into_left > 0) {
    const uint32_t taken = feed_into(p, number, rest, rest_bytes);
    if (c->fd < 0) return;
    rest += taken;
    rest_bytes -= taken;
    is_untouched = is_untouched && taken == 0;
  }
  if (!held_keep(p, c, rest, rest_bytes, is_untouched)) {
    conn_close(p, number, ENOMEM, true);
    return;
  }
  if (rest_bytes > 0 && (c->flags & CONN_INTO) == 0) {
    if (event[EVENT_AUX] == 1 || is_resumed) {
      c->flags |= CONN_HELD;
      conn_list(p, number);
    } else if (rest_bytes >= p->max_input_bytes) {
      conn_close(p, number, EMSGSIZE, true);
      return;
    }
  }
  if ((c->flags & CONN_EOF) != 0) conn_settle_later(p, number);
}

void input_apply(pump *p) {
  for (uint32_t i = 0; i < p->event_count; i++) {
    const int32_t *event = event_at(p, i);
    if (event[EVENT_KIND] == KIND_DATA) apply_event(p, event);
  }
}

/* ---- receiving and delivering ---- */

enum receipt { RECEIPT_BYTES, RECEIPT_NOTHING, RECEIPT_END, RECEIPT_DEAD };

/*
 * One recv() of up to `room` bytes and, where `tail` is given, RECEIVE_TAIL_BYTES more. Closes the connection on an error. A socket that gave
 * less than was asked for is empty, unless its end comes next.
 */
static enum receipt receive(pump *p, int32_t number, uint8_t *to, size_t room, uint8_t *tail, uint32_t *received) {
  pump_conn *c = conn_at(p, number);
  struct iovec parts[] = {{.iov_base = to, .iov_len = room}, {.iov_base = tail, .iov_len = RECEIVE_TAIL_BYTES}};
  if (tail != NULL) room += RECEIVE_TAIL_BYTES;
  ssize_t count;
  *received = 0;
  do {
    count = tail == NULL ? direct_recv(c->fd, to, room) : direct_recv_parts(c->fd, parts, 2);
  } while (count < 0 && errno == EINTR);
  if (count > 0) {
    *received = (uint32_t)count;
    c->active_ms = p->now_ms;
    if ((size_t)count < room && (c->flags & CONN_ENDING) == 0) c->flags &= ~(uint32_t)CONN_READABLE;
    return RECEIPT_BYTES;
  }
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    c->flags &= ~(uint32_t)CONN_READABLE;
    return RECEIPT_NOTHING;
  }
  if (count < 0) {
    conn_close(p, number, errno == ECONNRESET || errno == EPIPE ? 0 : errno, true);
    return RECEIPT_DEAD;
  }
  c->flags = (c->flags | CONN_EOF) & ~(uint32_t)CONN_READABLE;
  conn_watch(p, number);
  return conn_live(p, number) == NULL ? RECEIPT_DEAD : RECEIPT_END;
}

static void deliver(pump *p, int32_t number, int32_t arena_number, uint32_t offset, uint32_t length) {
  pump_conn *c = conn_at(p, number);
  int32_t *event = pump_emit(p, number, KIND_DATA, 0);
  event[EVENT_OFFSET] = (int32_t)offset;
  event[EVENT_LENGTH] = (int32_t)length;
  event[EVENT_ARENA] = arena_number;
  c->delivered_offset = offset;
  c->delivered_bytes = length;
  c->flags |= CONN_DELIVERED;
  c->flags &= ~(uint32_t)CONN_HELD;
}

/* receiveInto: from the socket to its place, several recv() a turn, for these are large. */
static void serve_into(pump *p, int32_t number) {
  pump_conn *c = conn_at(p, number);
  uint32_t budget = RECEIVE_INTO_BYTES_MAX;
  while (c->into_left > 0 && (c->flags & (CONN_READABLE | CONN_EOF)) == CONN_READABLE && budget > 0) {
    const uint32_t room = c->into_left < budget ? c->into_left : budget;
    uint8_t *to = arena_at(c->into_arena, c->into_offset, room);
    uint8_t tail[RECEIVE_TAIL_BYTES];
    uint32_t received;
    if (to == NULL) {
      conn_close(p, number, EFAULT, true);
      return;
    }
    const enum receipt receipt = receive(p, number, to, room, room == c->into_left ? tail : NULL, &received);
    if (receipt == RECEIPT_DEAD) return;
    const uint32_t placed = received < room ? received : room;
    c->into_offset += placed;
    c->into_left -= placed;
    budget -= placed;
    /* Nothing is held while a place waits for bytes: what came behind them is the first. */
    if (received > placed && !held_keep(p, c, tail, received - placed, false)) {
      conn_close(p, number, ENOMEM, true);
      return;
    }
    if (receipt != RECEIPT_BYTES || placed < room) break;
  }
  if (c->into_left > 0) {
    if ((c->flags & CONN_EOF) != 0) conn_close(p, number, 0, true);
    return;
  }
  c->flags &= ~(uint32_t)(CONN_INTO | CONN_HELD);
  pump_emit(p, number, KIND_INTO_DONE, 0)[EVENT_LENGTH] = (int32_t)c->into_bytes;
  if (c->stash_bytes > 0 || c->own_arena >= 0) {
    c->flags |= CONN_HELD;
    conn_list(p, number);
  } else if ((c->flags & CONN_EOF) != 0) {
    conn_settle_later(p, number);
  }
}

static inline bool wants_bytes(const pump *p, const pump_conn *c, uint32_t held) {
  return (c->flags & (CONN_READABLE | CONN_EOF)) == CONN_READABLE && !((c->flags & CONN_HELD) != 0 && held >= p->receive_bytes);
}

/* After a recv(): is there something to deliver? Settles a connection that has ended with nothing left to do. */
static bool is_deliverable(pump *p, int32_t number, enum receipt receipt, uint32_t total) {
  const pump_conn *c = conn_at(p, number);
  if (receipt == RECEIPT_DEAD) return false;
  if (total > 0 && (receipt == RECEIPT_BYTES || (c->flags & CONN_HELD) != 0)) return true;
  if (receipt == RECEIPT_END) conn_settle(p, number);
  return false;
}

static void serve_own(pump *p, int32_t number) {
  pump_conn *c = conn_at(p, number);
  uint32_t received = 0;
  enum receipt receipt = RECEIPT_NOTHING;
  const uint32_t held = c->own_tail - c->own_head;
  if (wants_bytes(p, c, held)) {
    if (!held_own_reserve(p, c, p->receive_bytes)) {
      conn_close(p, number, held >= p->max_input_bytes ? EMSGSIZE : ENOMEM, true);
      return;
    }
    /* As much again as is held: a large request comes in a logarithmic number of deliveries where the socket has it. */
    const arena *own = &arena_table[c->own_arena];
    size_t room = own->bytes - c->own_tail;
    const size_t most = held > p->receive_bytes ? held : p->receive_bytes;
    if (room > most) room = most;
    receipt = receive(p, number, own->base + c->own_tail, room, NULL, &received);
    if (receipt == RECEIPT_DEAD) return;
    c->own_tail += received;
  }
  if (is_deliverable(p, number, receipt, c->own_tail - c->own_head)) {
    deliver(p, number, c->own_arena, c->own_head, c->own_tail - c->own_head);
  }
}

/* False when the input buffer has no room left for this connection in this turn. */
static bool serve_shared(pump *p, int32_t number) {
  pump_conn *c = conn_at(p, number);
  const uint32_t held = c->stash_bytes, free_bytes = p->input_bytes - p->input_used;
  const uint32_t least = p->receive_bytes < 4096 ? p->receive_bytes : 4096;
  if (free_bytes < held + least) return false;
  uint8_t *to = p->input + p->input_used;
  uint32_t received = 0;
  enum receipt receipt = RECEIPT_NOTHING;
  if (wants_bytes(p, c, held)) {
    const uint32_t most = held == 0 && (c->flags & CONN_LARGE) != 0 && RECEIVE_HEAD_BYTES < p->receive_bytes ? RECEIVE_HEAD_BYTES : p->receive_bytes;
    const uint32_t room = free_bytes - held < most ? free_bytes - held : most;
    receipt = receive(p, number, to + held, room, NULL, &received);
    if (receipt == RECEIPT_DEAD) return true;
  }
  const uint32_t total = held + received;
  if (is_deliverable(p, number, receipt, total)) {
    if (held > 0) memcpy(to, c->stash, held);
    deliver(p, number, -1, p->input_used, total);
    p->input_used += (total + 7) & ~7u;
    if (p->input_used > p->input_bytes) p->input_used = p->input_bytes;
  }
  return true;
}

/* Serves the connections that were in the list when it began; what does not fit stays at the head, who has more goes to the end. */
void input_serve(pump *p) {
  const int32_t last = p->ready_last;
  for (int32_t number = p->ready_first; number >= 0 && p->event_count < p->max_events; number = p->ready_first) {
    pump_conn *c = conn_at(p, number);
    const bool is_last = number == last;
    if ((c->flags & (CONN_PAUSED | CONN_CHOKED | CONN_CLOSING)) != 0) {
      conn_unlist(p, number);
      c->flags &= ~(uint32_t)CONN_READABLE; /* epoll looks again when it is read from again */
    } else if ((c->flags & CONN_INTO) != 0) {
      conn_unlist(p, number);
      serve_into(p, number);
    } else if (c->own_arena >= 0) {
      conn_unlist(p, number);
      serve_own(p, number);
    } else {
      if (!serve_shared(p, number)) break;
      conn_unlist(p, number);
    }
    if (c->fd >= 0 && (c->flags & CONN_READABLE) != 0) conn_list(p, number);
    if (is_last) break;
  }
}

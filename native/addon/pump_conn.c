/*
 * Connections: numbers, epoll interest, the ready list, and how they end.
 *
 * Owns the slots. The invariants: a closed slot rests until the poll after the one that delivered its CLOSE has ended; the
 * ready list holds each connection once and is served from its head, so nobody starves.
 */
#include "pump.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int32_t take_slot(pump *p) {
  if (p->free_slots.count > 0) return p->free_slots.items[--p->free_slots.count];
  if (p->conn_count >= CONN_LIMIT) return -EMFILE;
  if (p->conn_count % CONN_BLOCK == 0) {
    const size_t block = (size_t)p->conn_count / CONN_BLOCK;
    pump_conn **blocks = realloc(p->blocks, (block + 1) * sizeof *blocks);
    if (blocks == NULL) return -ENOMEM;
    p->blocks = blocks;
    blocks[block] = calloc(CONN_BLOCK, sizeof **blocks);
    if (blocks[block] == NULL) return -ENOMEM;
    for (int i = 0; i < CONN_BLOCK; i++) blocks[block][i].fd = -1;
  }
  return p->conn_count++;
}

int32_t conn_open(pump *p, int fd, uint8_t kind) {
  const int32_t number = take_slot(p);
  if (number < 0) return number;
  pump_conn *c = conn_at(p, number);
  const uint32_t generation = c->generation + 1;
  *c = (pump_conn){
      .fd = fd,
      .generation = generation,
      .interest = EPOLLIN | EPOLLRDHUP | EPOLLET,
      .ready_prev = -1,
      .ready_next = -1,
      .own_arena = -1,
      .idle_slot = -1,
      .soft_bytes = SOFT_OUTPUT_BYTES_DEFAULT,
      .active_ms = p->now_ms,
      .kind = kind,
  };
  struct epoll_event watch = {.events = c->interest, .data.u64 = watch_data(WATCH_CONN, generation, number)};
  if (epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &watch) != 0) {
    c->fd = -1;
    list_push(&p->free_slots, number);
    return -errno;
  }
  p->live_count++;
  return number;
}

/* Sends FIN and discards what the peer had sent: a plain close() would answer that with a reset, which can overtake the last reply. */
void socket_finish(int fd) {
  uint8_t discarded[16384];
  shutdown(fd, SHUT_WR);
  for (int i = 0; i < 64; i++) {
    if (recv(fd, discarded, sizeof discarded, MSG_DONTWAIT) <= 0) break;
  }
  close(fd);
}

void conn_close(pump *p, int32_t number, int32_t aux, bool is_told) {
  pump_conn *c = conn_at(p, number);
  const bool is_graceful = aux == 0 && (c->flags & CONN_CLOSING) != 0 && (c->flags & (CONN_EOF | CONN_UNWATCHED)) == 0;
  conn_unlist(p, number);
  idle_disarm(p, number);
  if (is_graceful) {
    socket_finish(c->fd);
  } else {
    close(c->fd);
  }
  c->fd = -1;
  c->flags = 0;
  p->live_count--;
  held_drop(p, c);
  output_drop(p, number);
  if (is_told) {
    pump_notify(p, number, KIND_CLOSE, aux);
  } else {
    list_push(&p->resting_new, number);
  }
}

void conn_rest_slots(pump *p) {
  for (uint32_t i = 0; i < p->resting_old.count; i++) list_push(&p->free_slots, p->resting_old.items[i]);
  p->resting_old.count = 0;
  const int_list rested = p->resting_old;
  p->resting_old = p->resting_new;
  p->resting_new = rested;
}

static inline bool is_reading(const pump_conn *c) {
  return (c->flags & (CONN_PAUSED | CONN_CHOKED | CONN_EOF | CONN_CLOSING)) == 0;
}

/*
 * Edge-triggered while there is only input to wait for: else the kernel looks at the socket twice a request, the second time in vain.
 * A change of interest makes epoll look anew, so that nothing is missed that came while it was another one.
 */
void conn_watch(pump *p, int32_t number) {
  pump_conn *c = conn_at(p, number);
  uint32_t interest = c->out_first != NULL && (c->flags & CONN_CORKED) == 0 ? EPOLLOUT : 0;
  if (is_reading(c)) {
    interest |= EPOLLIN | EPOLLRDHUP | (c->out_first == NULL ? EPOLLET : 0);
  } else if ((c->flags & CONN_PAUSED) != 0 && (c->flags & (CONN_END_TOLD | CONN_EOF | CONN_CLOSING)) == 0) {
    interest |= EPOLLRDHUP;
  }
  if (interest == c->interest || (c->flags & CONN_UNWATCHED) != 0) return;
  c->interest = interest;
  struct epoll_event watch = {.events = interest, .data.u64 = watch_data(WATCH_CONN, c->generation, number)};
  if (epoll_ctl(p->epoll_fd, EPOLL_CTL_MOD, c->fd, &watch) != 0) conn_close(p, number, errno, true);
}

void conn_list(pump *p, int32_t number) {
  pump_conn *c = conn_at(p, number);
  if ((c->flags & CONN_LISTED) != 0) return;
  c->flags |= CONN_LISTED;
  c->ready_next = -1;
  c->ready_prev = p->ready_last;
  if (p->ready_last >= 0) {
    conn_at(p, p->ready_last)->ready_next = number;
  } else {
    p->ready_first = number;
  }
  p->ready_last = number;
}

void conn_unlist(pump *p, int32_t number) {
  pump_conn *c = conn_at(p, number);
  if ((c->flags & CONN_LISTED) == 0) return;
  c->flags &= ~(uint32_t)CONN_LISTED;
  if (c->ready_prev >= 0) {
    conn_at(p, c->ready_prev)->ready_next = c->ready_next;
  } else {
    p->ready_first = c->ready_next;
  }
  if (c->ready_next >= 0) {
    conn_at(p, c->ready_next)->ready_prev = c->ready_prev;
  } else {
    p->ready_last = c->ready_prev;
  }
}

void conn_settle_later(pump *p, int32_t number) {
  pump_conn *c = conn_at(p, number);
  if ((c->flags & CONN_SETTLING) != 0) return;
  c->flags |= CONN_SETTLING;
  list_push(&p->settling, number);
}

/*
 * Called when all replies of the past turn are with the kernel or queued. A connection whose peer has finished is
 * closed when its bytes are executed and its replies are out; while JavaScript has paused it, it waits for that.
 */
void conn_settle(pump *p, int32_t number) {
  pump_conn *c = conn_live(p, number);
  if (c == NULL) return;
  c->flags &= ~(uint32_t)CONN_SETTLING;
  if ((c->flags & CONN_CLOSING) == 0) {
    if ((c->flags & CONN_EOF) == 0 || (c->flags & (CONN_HELD | CONN_DELIVERED)) != 0) return;
    if ((c->flags & CONN_PAUSED) != 0) {
      if ((c->flags & CONN_END_TOLD) == 0) pump_notify(p, number, KIND_PEER_END, 0);
      c->flags |= CONN_END_TOLD;
      return;
    }
    c->flags |= CONN_CLOSING;
  }
  conn_unlist(p, number);
  if (c->out_first == NULL || (c->flags & CONN_UNWATCHED) != 0) {
    conn_close(p, number, 0, true);
  } else { /* a peer that does not take its last replies must not hold the slot for ever */
    if (c->idle_ms == 0 || c->idle_ms > DRAIN_MS_MAX) c->idle_ms = DRAIN_MS_MAX;
    c->active_ms = p->now_ms;
    idle_arm(p, number);
    conn_watch(p, number);
  }
}

static int32_t socket_error(int fd) {
  int error = 0;
  socklen_t bytes = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) return errno;
  return error == ECONNRESET || error == EPIPE ? 0 : error;
}

/* Both directions are gone and we are not reading. Commands that were received whole are still executed. */
static void on_hang_up(pump *p, int32_t number, uint32_t events) {
  pump_conn *c = conn_at(p, number);
  if ((c->flags & CONN_HELD) != 0 && (c->flags & (CONN_PAUSED | CONN_CHOKED | CONN_CLOSING)) == 0) {
    if (epoll_ctl(p->epoll_fd, EPOLL_CTL_DEL, c->fd, NULL) == 0) {
      c->flags |= CONN_EOF | CONN_UNWATCHED;
      return;
    }
  }
  conn_close(p, number, (events & EPOLLERR) != 0 ? socket_error(c->fd) : 0, true);
}

void conn_on_event(pump *p, int32_t number, uint32_t events) {
  pump_conn *c = conn_at(p, number);
  if ((events & EPOLLOUT) != 0) {
    send_queued(p, number);
    if (c->fd < 0) return;
  }
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) == 0) return;
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) c->flags |= CONN_ENDING;
  if (is_reading(c)) {
    c->flags |= CONN_READABLE;
    conn_list(p, number);
  } else if ((events & (EPOLLHUP | EPOLLERR)) != 0) {
    on_hang_up(p, number, events);
  } else if ((events & EPOLLRDHUP) != 0 && (c->flags & (CONN_PAUSED | CONN_END_TOLD)) == CONN_PAUSED) {
    c->flags |= CONN_END_TOLD;
    pump_notify(p, number, KIND_PEER_END, 0);
    conn_watch(p, number);
  }
}

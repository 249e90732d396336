/*
 * Accepting: batches with a bound, the limit on connections, and what happens when descriptors run out.
 *
 * Owns when listeners are watched. The invariant: a listener that cannot be served now (paused, or no descriptors) is not
 * watched, so that it costs no turn.
 */
#include "pump.h"

#include <errno.h>
#include <unistd.h>

/* Brings the epoll registration of all stream listeners up to date. */
void listeners_watch(pump *p) {
  const bool is_wanted = !p->is_accept_paused && p->accept_retry_ms == 0;
  for (int32_t i = 0; i < p->listener_count; i++) {
    pump_listener *listener = &p->listeners[i];
    if (listener->fd < 0 || listener->type != SOCK_STREAM || listener->is_watched == is_wanted) continue;
    /* Of the threads that share a unix socket, one wakes. */
    const uint32_t exclusive = listener->domain == AF_UNIX ? EPOLLEXCLUSIVE : 0;
    struct epoll_event watch = {.events = EPOLLIN | exclusive, .data.u64 = watch_data(WATCH_LISTENER, 0, i)};
    if (epoll_ctl(p->epoll_fd, is_wanted ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, listener->fd, &watch) == 0) {
      listener->is_watched = is_wanted;
    } else { /* out of kernel memory for watches: as out of descriptors, try again soon */
      p->accept_retry_ms = p->now_ms + ACCEPT_RETRY_MS;
    }
  }
}

static void refuse(const pump *p, int fd) {
  /* What a fresh socket does not take is not worth waiting for. */
  if (p->refusal_bytes > 0) (void)!send(fd, p->refusal, p->refusal_bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
  socket_finish(fd);
}

/* Out of descriptors or memory: accepting again at once would spin. */
static void pause_for_resources(pump *p) {
  p->accept_retry_ms = p->now_ms + ACCEPT_RETRY_MS;
  listeners_watch(p);
}

bool accept_conn(pump *p, int fd, uint8_t kind) {
  if (p->live_count >= p->max_connections) {
    refuse(p, fd);
    return true;
  }
  const int32_t conn = conn_open(p, fd, kind);
  if (conn < 0) {
    close(fd);
    pause_for_resources(p);
    return false;
  }
  pump_notify(p, conn, KIND_ACCEPT, kind);
  return true;
}

void listener_accept(pump *p, int32_t number) {
  const pump_listener *listener = &p->listeners[number];
  for (int i = 0; i < ACCEPT_LIMIT && listener->fd >= 0; i++) {
    const int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) pause_for_resources(p);
      return;
    }
    if (listener->shared != NULL && unix_hand_over(p, listener->shared, fd)) continue;
    if (!accept_conn(p, fd, listener->kind)) return;
  }
}

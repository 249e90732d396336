/*
 * See connection.h. A lost connection ends the run: a figure from fewer connections than asked for would mislead.
 */
#include "connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"

enum { RECEIVE_BYTES = 256 * 1024, IOV_LIMIT = 1024, DISCARD_MIN_BYTES = 64 * 1024 };

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static void *allocate(size_t bytes) {
  void *memory = calloc(1, bytes);
  if (memory == NULL) fail("entload: memory");
  return memory;
}

void connection_open(struct load *load, struct connection *c) {
  const struct options *o = load->options;
  if (load->receive_buffer == NULL) load->receive_buffer = allocate(WIRE_LINE_MAX_BYTES + RECEIVE_BYTES);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)o->port)};
  if (inet_pton(AF_INET, o->host, &address.sin_addr) != 1) fail("entload: --host must be an IPv4 address");
  c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (c->fd < 0) fail("entload: socket");
  if (connect(c->fd, (struct sockaddr *)&address, sizeof address) != 0) fail("entload: connect");
  int on = 1;
  if (setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) fail("entload: TCP_NODELAY");
  if (fcntl(c->fd, F_SETFL, O_NONBLOCK) != 0) fail("entload: O_NONBLOCK");
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
  if (epoll_ctl(load->epoll_fd, EPOLL_CTL_ADD, c->fd, &event) != 0) fail("entload: epoll_ctl");

  uint32_t pending_count = PENDING_MIN_COUNT;
  while (pending_count < (uint32_t)o->pipeline) pending_count *= 2;
  c->pending = allocate(pending_count * sizeof *c->pending);
  c->pending_mask = pending_count - 1;
  c->heads = allocate((size_t)o->pipeline * (WIRE_HEAD_MAX_BYTES + INLINE_VALUE_MAX_BYTES));
  c->heads_end = c->heads;
  c->segments = allocate(((size_t)o->pipeline * 2 + 1) * sizeof *c->segments);
}

bool connection_has_room(const struct load *load, const struct connection *c) {
  return !c->blocked && connection_pending(c) + (uint32_t)load->options->pipeline <= c->pending_mask + 1;
}

/* Puts the bytes written to `heads` since the last segment into a segment of their own. */
static void close_segment(struct connection *c, char *start, char *end) {
  if (end == start) return;
  c->segments[c->segment_count++] = (struct iovec){.iov_base = start, .iov_len = (size_t)(end - start)};
}

static uint64_t next_key(struct load *load) {
  if (load->options->mode >= MODE_FILL) return load->keys.next_in_order++;
  return keys_draw(&load->keys);
}

static bool next_is_set(struct load *load) {
  const struct options *o = load->options;
  if (o->mode == MODE_FILL) return true;
  if (o->mode == MODE_SWEEP || o->set_fraction == 0) return false;
  return o->set_fraction == 1 || keys_fraction(&load->keys) <= o->set_fraction;
}

void connection_issue(struct load *load, struct connection *c, int count, uint64_t start_ns) {
  const enum protocol protocol = load->options->protocol;
  char *at = c->heads;
  char *segment_start = at;
  c->segment_count = 0;
  c->segment_sent = 0;
  for (int i = 0; i < count; i++) {
    const uint64_t key = next_key(load);
    const uint32_t value_bytes = keys_value_bytes(&load->keys, key);
    const bool is_set = next_is_set(load);
    c->pending[c->pending_head++ & c->pending_mask] =
        (struct pending){.start_ns = start_ns, .value_bytes = value_bytes, .is_set = is_set};
    if (!is_set) {
      at = wire_get(protocol, at, key);
      continue;
    }
    at = wire_set_head(protocol, at, key, value_bytes);
    char *value = load->pattern + key % PATTERN_SHIFTS;
    if (value_bytes <= INLINE_VALUE_MAX_BYTES) {
      memcpy(at, value, value_bytes);
      at += value_bytes;
    } else {
      close_segment(c, segment_start, at);
      c->segments[c->segment_count++] = (struct iovec){.iov_base = value, .iov_len = value_bytes};
      segment_start = at;
    }
    *at++ = '\r';
    *at++ = '\n';
  }
  close_segment(c, segment_start, at);
  load->tally.issued += (uint64_t)count;
  connection_send(load, c);
}

static void watch_writable(struct load *load, struct connection *c, bool on) {
  if (c->blocked == on) return;
  c->blocked = on;
  struct epoll_event event = {.events = on ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.ptr = c};
  if (epoll_ctl(load->epoll_fd, EPOLL_CTL_MOD, c->fd, &event) != 0) fail("entload: epoll_ctl");
}

void connection_send(struct load *load, struct connection *c) {
  while (c->segment_sent < c->segment_count) {
    int left = c->segment_count - c->segment_sent;
    ssize_t sent = writev(c->fd, c->segments + c->segment_sent, left < IOV_LIMIT ? left : IOV_LIMIT);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN) fail("entload: send");
      watch_writable(load, c, true);
      return;
    }
    while (c->segment_sent < c->segment_count && (size_t)sent >= c->segments[c->segment_sent].iov_len) {
      sent -= (ssize_t)c->segments[c->segment_sent++].iov_len;
    }
    if (sent > 0) {
      struct iovec *segment = &c->segments[c->segment_sent];
      segment->iov_base = (char *)segment->iov_base + sent;
      segment->iov_len -= (size_t)sent;
    }
  }
  watch_writable(load, c, false);
}

static void settle(struct load *load, struct connection *c, uint64_t now_ns) {
  const struct pending *request = &c->pending[c->pending_tail++ & c->pending_mask];
  c->in_reply = false;
  load->tally.answered++;
  histogram_record(&load->tally.latency, now_ns > request->start_ns ? now_ns - request->start_ns : 0, 1);
}

static void judge(struct load *load, struct connection *c, const char *line, size_t bytes) {
  struct tally *tally = &load->tally;
  if (connection_pending(c) == 0) {
    fprintf(stderr, "entload: a reply that nobody waits for: %.*s\n", (int)bytes, line);
    exit(1);
  }
  const struct pending *request = &c->pending[c->pending_tail & c->pending_mask];
  uint64_t value_bytes;
  enum reply reply = wire_reply(load->options->protocol, line, bytes, &value_bytes, &c->skip_bytes);
  c->in_reply = true;
  if (request->is_set) tally->sets++;
  else tally->gets++;
  if (reply == REPLY_ERROR || (reply == REPLY_STORED) != request->is_set) {
    if (tally->errors++ == 0) memcpy(tally->first_error, line, bytes < sizeof tally->first_error - 1 ? bytes : sizeof tally->first_error - 1);
  } else if (reply == REPLY_VALUE) {
    tally->hits++;
    tally->value_bytes_read += value_bytes;
    if (value_bytes != request->value_bytes) tally->mismatches++;
  } else if (reply == REPLY_STORED) {
    tally->value_bytes_written += request->value_bytes;
  }
}

static void keep_line_start(struct connection *c, const char *at, size_t bytes) {
  if (bytes > sizeof c->line) {
    fprintf(stderr, "entload: reply line longer than %d bytes\n", WIRE_LINE_MAX_BYTES);
    exit(1);
  }
  memcpy(c->line, at, bytes);
  c->line_bytes = (uint32_t)bytes;
}

static void parse(struct load *load, struct connection *c, const char *at, const char *end) {
  const uint64_t now_ns = clock_ns();
  while (at < end || (c->in_reply && c->skip_bytes == 0)) {
    if (c->in_reply) {
      uint64_t skip = c->skip_bytes < (uint64_t)(end - at) ? c->skip_bytes : (uint64_t)(end - at);
      at += skip;
      c->skip_bytes -= skip;
      if (c->skip_bytes > 0) return;
      settle(load, c, now_ns);
      continue;
    }
    const char *line_end = memchr(at, '\n', (size_t)(end - at));
    if (line_end == NULL) {
      keep_line_start(c, at, (size_t)(end - at));
      return;
    }
    size_t bytes = (size_t)(line_end - at);
    if (bytes > 0 && at[bytes - 1] == '\r') bytes--;
    judge(load, c, at, bytes);
    at = line_end + 1;
  }
}

void connection_receive(struct load *load, struct connection *c) {
  char *start = load->receive_buffer + WIRE_LINE_MAX_BYTES;
  ssize_t received;
  if (c->in_reply && c->skip_bytes > DISCARD_MIN_BYTES) {
    /* The kernel drops the middle of a long value without copying it to us. */
    received = recv(c->fd, NULL, c->skip_bytes - 1, MSG_TRUNC);
    if (received > 0) {
      c->skip_bytes -= (uint64_t)received;
      return;
    }
  } else {
    received = recv(c->fd, start, RECEIVE_BYTES, 0);
  }
  if (received < 0) {
    if (errno == EAGAIN || errno == EINTR) return;
    fail("entload: receive");
  }
  if (received == 0) {
    fprintf(stderr, "entload: the server closed a connection\n");
    exit(1);
  }
  const char *at = start - c->line_bytes;
  memcpy(start - c->line_bytes, c->line, c->line_bytes);
  c->line_bytes = 0;
  parse(load, c, at, start + received);
}

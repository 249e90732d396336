/*
 * One connection: what it still has to send, what it waits for, and where in a reply it is.
 * Invariant: `pending` holds exactly the requests sent or queued and not yet answered, oldest first.
 */
#ifndef ENTRESOL_LOAD_CONNECTION_H
#define ENTRESOL_LOAD_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "histogram.h"
#include "keys.h"
#include "options.h"
#include "wire.h"

/* Values up to this are copied into the head buffer; longer ones are sent from the shared pattern. */
enum { INLINE_VALUE_MAX_BYTES = 2048, PATTERN_SHIFTS = 64, PENDING_MIN_COUNT = 1024 };

struct pending {
  uint64_t start_ns; /* when it was sent, or in MODE_OPEN when it should have been */
  uint32_t value_bytes;
  bool is_set;
};

struct connection {
  int fd;
  bool blocked; /* the socket took only a part; EPOLLOUT is on */
  char *heads;  /* heads and inline values of the batch being sent */
  char *heads_end;
  struct iovec *segments;
  int segment_count;
  int segment_sent;
  struct pending *pending; /* ring */
  uint32_t pending_mask;
  uint32_t pending_head;
  uint32_t pending_tail;
  uint64_t skip_bytes; /* rest of the reply whose line has been judged */
  bool in_reply;
  uint32_t line_bytes; /* start of a line that ended with the last receive */
  char line[WIRE_LINE_MAX_BYTES];
};

struct tally {
  uint64_t issued;
  uint64_t answered;
  uint64_t gets;
  uint64_t hits;
  uint64_t sets;
  uint64_t errors;
  uint64_t mismatches; /* a value of the wrong length */
  uint64_t value_bytes_read;
  uint64_t value_bytes_written;
  char first_error[WIRE_LINE_MAX_BYTES];
  struct histogram latency;
};

struct load {
  const struct options *options;
  struct keys keys;
  struct connection *connections;
  int epoll_fd;
  char *pattern; /* value_max_bytes + PATTERN_SHIFTS printable bytes */
  char *receive_buffer;
  struct tally tally;
};

void connection_open(struct load *load, struct connection *connection);
static inline uint32_t connection_pending(const struct connection *c) { return c->pending_head - c->pending_tail; }
/* True when another batch can be queued now. */
bool connection_has_room(const struct load *load, const struct connection *connection);
/* Queues `count` requests that count from `start_ns` and sends what the socket takes. */
void connection_issue(struct load *load, struct connection *connection, int count, uint64_t start_ns);
void connection_send(struct load *load, struct connection *connection);
/* Receives once and settles the replies in it. */
void connection_receive(struct load *load, struct connection *connection);

#endif

/*
 * Output: sending records, queueing what the socket does not take, limits.
 *
 * Owns each connection's queue. The invariants: bytes of one connection leave in the order of their records; EPOLLOUT is
 * watched only while something is queued; the token of a region send comes back exactly once, whatever happens.
 */
#include "pump.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

typedef struct out_run {
  int32_t conn;
  int count;
  struct iovec parts[IOV_LIMIT];
  int32_t arenas[IOV_LIMIT];
  int32_t tokens[IOV_LIMIT];
  size_t bytes;
} out_run;

static void chunk_done(pump *p, int32_t number, out_chunk *chunk) {
  pump_conn *c = conn_at(p, number);
  c->chunk_count--;
  if (chunk->arena < 0) {
    p->held_bytes -= chunk->capacity;
    c->chunk_bytes -= chunk->capacity;
  } else if (chunk->token != 0) {
    pump_notify(p, number, KIND_SENT, chunk->token);
  }
  free(chunk);
}

void output_drop(pump *p, int32_t number) {
  pump_conn *c = conn_at(p, number);
  while (c->out_first != NULL) {
    out_chunk *chunk = c->out_first;
    c->out_first = chunk->next;
    chunk_done(p, number, chunk);
  }
  c->out_last = NULL;
  c->out_bytes = c->copied_bytes = 0;
}

static out_chunk *chunk_append(pump_conn *c, uint32_t capacity) {
  out_chunk *chunk = malloc(sizeof *chunk + capacity);
  if (chunk == NULL) return NULL;
  *chunk = (out_chunk){.arena = -1, .capacity = capacity};
  if (c->out_last != NULL) {
    c->out_last->next = chunk;
  } else {
    c->out_first = chunk;
  }
  c->out_last = chunk;
  c->chunk_count++;
  c->chunk_bytes += capacity;
  return chunk;
}

static bool enqueue_copy(pump *p, pump_conn *c, const uint8_t *bytes, uint32_t length) {
  out_chunk *last = c->out_last;
  c->out_bytes += length;
  c->copied_bytes += length;
  if (last != NULL && last->arena < 0) { /* fill the last chunk first: many small replies make few chunks */
    const uint32_t end = last->offset + last->length;
    const uint32_t room = last->capacity - end, part = length < room ? length : room;
    memcpy(last->data + end, bytes, part);
    last->length += part;
    bytes += part;
    length -= part;
  }
  if (length == 0) return true;
  out_chunk *chunk = chunk_append(c, length > CHUNK_BYTES_MIN ? length : CHUNK_BYTES_MIN);
  if (chunk == NULL) return false;
  memcpy(chunk->data, bytes, length);
  chunk->length = length;
  p->held_bytes += chunk->capacity;
  return true;
}

static bool enqueue_region(pump_conn *c, int32_t arena_number, const uint8_t *bytes, uint32_t length, int32_t token) {
  out_chunk *chunk = chunk_append(c, 0);
  if (chunk == NULL) return false;
  chunk->arena = arena_number;
  chunk->offset = (uint32_t)(bytes - arena_table[arena_number].base);
  chunk->length = length;
  chunk->token = token;
  c->out_bytes += length;
  return true;
}

/* The connection is gone: its tokens go home. */
static void return_tokens(pump *p, const out_run *run, int from) {
  for (int i = from; i < run->count; i++) {
    if (run->tokens[i] != 0) pump_notify(p, run->conn, KIND_SENT, run->tokens[i]);
  }
}

static void apply_limits(pump *p, int32_t number) {
  pump_conn *c = conn_at(p, number);
  if (c->hard_bytes > 0 && c->copied_bytes > c->hard_bytes) {
    conn_close(p, number, ENOBUFS, true);
    return;
  }
  if (c->soft_bytes > 0 && c->out_bytes > c->soft_bytes) c->flags |= CONN_CHOKED;
  conn_watch(p, number);
}

/* Queues a run from `skipped` bytes on. */
static void enqueue_run(pump *p, const out_run *run, size_t skipped) {
  pump_conn *c = conn_at(p, run->conn);
  for (int i = 0; i < run->count; i++) {
    const size_t length = run->parts[i].iov_len;
    if (skipped >= length) {
      skipped -= length;
      if (run->tokens[i] != 0) pump_notify(p, run->conn, KIND_SENT, run->tokens[i]);
      continue;
    }
    const uint8_t *bytes = (const uint8_t *)run->parts[i].iov_base + skipped;
    const uint32_t left = (uint32_t)(length - skipped);
    skipped = 0;
    const bool is_queued = run->arenas[i] < 0 ? enqueue_copy(p, c, bytes, left) : enqueue_region(c, run->arenas[i], bytes, left, run->tokens[i]);
    if (!is_queued) {
      return_tokens(p, run, i);
      conn_close(p, run->conn, ENOMEM, true);
      return;
    }
  }
  apply_limits(p, run->conn);
}

static ssize_t send_parts(int fd, struct iovec *parts, int count) {
  ssize_t sent;
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = (size_t)count};
  do {
    sent = count == 1 ? direct_send(fd, parts->iov_base, parts->iov_len) : sendmsg(fd, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent;
}

static inline int32_t close_reason(int error) { return error == EPIPE || error == ECONNRESET ? 0 : error; }

static void send_run(pump *p, out_run *run) {
  pump_conn *c = conn_live(p, run->conn);
  if (c == NULL) {
    return_tokens(p, run, 0);
    return;
  }
  if (c->out_first != NULL || (c->flags & CONN_CORKED) != 0) {
    enqueue_run(p, run, 0);
    return;
  }
  const ssize_t sent = send_parts(c->fd, run->parts, run->count);
  if (sent == (ssize_t)run->bytes) {
    c->active_ms = p->now_ms;
    return_tokens(p, run, 0);
  } else if (sent >= 0 || errno == EAGAIN || errno == EWOULDBLOCK) {
    enqueue_run(p, run, sent < 0 ? 0 : (size_t)sent);
  } else {
    const int error = errno;
    return_tokens(p, run, 0);
    conn_close(p, run->conn, close_reason(error), true);
  }
}

/* Reads one record into the run; NULL or what is wrong with it. */
static const char *add_record(pump *p, out_run *run, const int32_t *record) {
  const int32_t arena_number = record[SEND_ARENA];
  uint8_t *bytes = arena_at(arena_number == SEND_FROM_OUTPUT ? p->output_arena : arena_number, record[SEND_OFFSET], record[SEND_LENGTH]);
  if (bytes == NULL) return "a send record is outside its arena";
  const int i = run->count++;
  run->parts[i] = (struct iovec){.iov_base = bytes, .iov_len = (size_t)record[SEND_LENGTH]};
  run->arenas[i] = arena_number;
  run->tokens[i] = arena_number == SEND_FROM_OUTPUT ? 0 : record[SEND_TOKEN];
  run->bytes += (size_t)record[SEND_LENGTH];
  return NULL;
}

/* Puts a record behind those of its connection. */
static void chain_record(pump *p, int32_t conn, int32_t index, int32_t *chain_count) {
  pump_conn *c = conn_at(p, conn);
  p->next_record[index] = -1;
  if (c->chain_turn == p->chain_turn) {
    send_chain *chain = &p->chains[c->chain];
    p->next_record[chain->last] = index;
    chain->last = index;
    return;
  }
  c->chain_turn = p->chain_turn;
  c->chain = *chain_count;
  p->chains[(*chain_count)++] = (send_chain){.conn = conn, .first = index, .last = index};
}

/* Sends what a chain holds, IOV_LIMIT parts at a time. */
static const char *send_chained(pump *p, const send_chain *chain) {
  out_run run;
  run.conn = chain->conn;
  for (int32_t i = chain->first; i >= 0;) {
    run.count = 0;
    run.bytes = 0;
    for (; i >= 0 && run.count < IOV_LIMIT; i = p->next_record[i]) {
      const char *wrong = add_record(p, &run, p->sends + (size_t)i * SEND_WORDS);
      if (wrong != NULL) return wrong;
    }
    send_run(p, &run);
  }
  return NULL;
}

/*
 * Sends the records, those of each connection together: messages to many subscribers come record by record, and a system call for each cost
 * ten times as much as one for all of a subscriber's.
 */
const char *send_records(pump *p, int32_t count) {
  if (count < 0 || (uint32_t)count > p->max_sends) return "more send records than the buffer holds";
  int32_t chain_count = 0;
  p->chain_turn++;
  for (int32_t i = 0; i < count;) {
    const int32_t *record = p->sends + (size_t)i * SEND_WORDS;
    if (record[SEND_ARENA] == SEND_DATAGRAM) {
      int32_t end = i + 1;
      while (end < count && p->sends[(size_t)end * SEND_WORDS + SEND_ARENA] == SEND_DATAGRAM) end++;
      const char *wrong = datagrams_send(p, record, end - i);
      if (wrong != NULL) return wrong;
      i = end;
      continue;
    }
    if (record[SEND_CONN] < 0 || record[SEND_CONN] >= p->conn_count) return "a send record names no connection";
    chain_record(p, record[SEND_CONN], i++, &chain_count);
  }
  for (int32_t i = 0; i < chain_count; i++) {
    const char *wrong = send_chained(p, &p->chains[i]);
    if (wrong != NULL) return wrong;
  }
  return NULL;
}

/* ---- the queue ---- */

/* Up to `budget` bytes from the head of the queue; -1 when an arena was released before its SENT event. */
static int gather_queue(const pump_conn *c, size_t budget, struct iovec *parts, size_t *bytes) {
  int count = 0;
  *bytes = 0;
  for (out_chunk *chunk = c->out_first; chunk != NULL && count < IOV_LIMIT && *bytes < budget; chunk = chunk->next) {
    uint8_t *at = chunk->arena < 0 ? chunk->data + chunk->offset : arena_at(chunk->arena, chunk->offset, chunk->length);
    if (at == NULL) return -1;
    const size_t length = chunk->length < budget - *bytes ? chunk->length : budget - *bytes;
    parts[count++] = (struct iovec){.iov_base = at, .iov_len = length};
    *bytes += length;
  }
  return count;
}

static void advance_queue(pump *p, int32_t number, size_t sent) {
  pump_conn *c = conn_at(p, number);
  c->out_bytes -= sent;
  while (c->out_first != NULL && sent > 0) {
    out_chunk *chunk = c->out_first;
    const uint32_t part = sent < chunk->length ? (uint32_t)sent : chunk->length;
    if (chunk->arena < 0) c->copied_bytes -= part;
    chunk->offset += part;
    chunk->length -= part;
    sent -= part;
    if (chunk->length > 0) break;
    c->out_first = chunk->next;
    if (c->out_first == NULL) c->out_last = NULL;
    chunk_done(p, number, chunk);
  }
}

static void after_flush(pump *p, int32_t number) {
  pump_conn *c = conn_at(p, number);
  if (c->out_first == NULL && (c->flags & CONN_CLOSING) != 0) {
    conn_close(p, number, 0, true);
    return;
  }
  if ((c->flags & CONN_CHOKED) != 0 && c->out_bytes <= c->soft_bytes / 2) {
    c->flags &= ~(uint32_t)CONN_CHOKED;
    if ((c->flags & CONN_HELD) != 0) conn_list(p, number);
  }
  conn_watch(p, number);
}

void send_queued(pump *p, int32_t number) {
  pump_conn *c = conn_at(p, number);
  if ((c->flags & CONN_CORKED) != 0) return;
  struct iovec parts[IOV_LIMIT];
  size_t budget = FLUSH_BYTES_MAX, bytes;
  while (c->out_first != NULL && budget > 0) {
    const int count = gather_queue(c, budget, parts, &bytes);
    const ssize_t sent = count < 0 ? -1 : send_parts(c->fd, parts, count);
    if (sent < 0) {
      if (count >= 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
      conn_close(p, number, count < 0 ? EFAULT : close_reason(errno), true);
      return;
    }
    c->active_ms = p->now_ms;
    advance_queue(p, number, (size_t)sent);
    if ((size_t)sent < bytes) break;
    budget -= (size_t)sent;
  }
  after_flush(p, number);
}

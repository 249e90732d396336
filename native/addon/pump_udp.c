/*
 * Datagrams: recvmmsg into the input buffer, sendmmsg from the output buffer.
 *
 * Owns the address slots. The invariant: slot n of a turn is the sender of that turn's n-th datagram until the next
 * receive, which comes after the replies were sent. A reply that the socket does not take is lost, as datagrams may be.
 */
#include "pump.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

enum { SLOT_LIMIT = 1024 };

typedef struct datagram_batch {
  uint32_t slot_count; /* used in this turn */
  int32_t listeners[SLOT_LIMIT]; /* which socket it came to; numbers are never reused */
  socklen_t address_bytes[SLOT_LIMIT];
  struct sockaddr_storage addresses[SLOT_LIMIT];
  struct mmsghdr messages[DATAGRAM_LIMIT];
  struct iovec parts[DATAGRAM_LIMIT];
} datagram_batch;

void datagrams_free(pump *p) {
  free(p->datagrams);
  p->datagrams = NULL;
}

void datagrams_begin(pump *p) {
  if (p->datagrams != NULL) p->datagrams->slot_count = 0;
}

static datagram_batch *batch_of(pump *p) {
  if (p->datagrams == NULL) p->datagrams = calloc(1, sizeof *p->datagrams);
  return p->datagrams;
}

/* How many fit: in events (half are left for connections), in slots and in the input buffer (likewise). */
static uint32_t room_for(const pump *p, const datagram_batch *batch) {
  const uint32_t events = p->max_events / 2, bytes = p->input_bytes / 2;
  uint32_t room = DATAGRAM_LIMIT;
  if (p->event_count >= events || p->input_used >= bytes) return 0;
  if (room > events - p->event_count) room = events - p->event_count;
  if (room > SLOT_LIMIT - batch->slot_count) room = SLOT_LIMIT - batch->slot_count;
  const uint32_t fit = (bytes - p->input_used) / DATAGRAM_BYTES_MAX;
  return room < fit ? room : fit;
}

static void prepare(pump *p, datagram_batch *batch, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    batch->parts[i] = (struct iovec){.iov_base = p->input + p->input_used + i * DATAGRAM_BYTES_MAX, .iov_len = DATAGRAM_BYTES_MAX};
    batch->messages[i].msg_hdr = (struct msghdr){
        .msg_name = &batch->addresses[batch->slot_count + i],
        .msg_namelen = sizeof batch->addresses[0],
        .msg_iov = &batch->parts[i],
        .msg_iovlen = 1,
    };
  }
}

void datagrams_receive(pump *p, int32_t listener_number) {
  const pump_listener *listener = &p->listeners[listener_number];
  datagram_batch *batch = batch_of(p);
  if (batch == NULL || listener->fd < 0) return;
  const uint32_t room = room_for(p, batch);
  if (room == 0) return; /* level-triggered: the next turn sees it again */
  prepare(p, batch, room);
  const int count = recvmmsg(listener->fd, batch->messages, room, MSG_DONTWAIT, NULL);
  for (int i = 0; i < count; i++) { /* count < 0: nothing there, or an ICMP error of an earlier reply, which is now read */
    const uint32_t slot = batch->slot_count++;
    batch->listeners[slot] = listener_number;
    batch->address_bytes[slot] = batch->messages[i].msg_hdr.msg_namelen;
    int32_t *event = pump_emit(p, (int32_t)slot, KIND_DATAGRAM, listener->kind);
    event[EVENT_OFFSET] = (int32_t)(p->input_used + (uint32_t)i * DATAGRAM_BYTES_MAX);
    event[EVENT_LENGTH] = (int32_t)batch->messages[i].msg_len;
  }
  if (count > 0) p->input_used += (uint32_t)count * DATAGRAM_BYTES_MAX;
}

/* Sends what is prepared; datagrams that fail are skipped. */
static void send_batch(datagram_batch *batch, int fd, uint32_t count) {
  uint32_t done = fd < 0 ? count : 0; /* the listener was closed meanwhile */
  while (done < count) {
    const int sent = sendmmsg(fd, batch->messages + done, count - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      done += (uint32_t)sent;
    } else if (sent == 0 || errno != EINTR) {
      if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      done++;
    }
  }
}

const char *datagrams_send(pump *p, const int32_t *record, int32_t count) {
  datagram_batch *batch = p->datagrams;
  uint32_t prepared = 0;
  int32_t listener = -1;
  for (int32_t i = 0; i < count; i++, record += SEND_WORDS) {
    const int32_t slot = record[SEND_CONN];
    uint8_t *bytes = arena_at(p->output_arena, record[SEND_OFFSET], record[SEND_LENGTH]);
    if (batch == NULL || slot < 0 || (uint32_t)slot >= batch->slot_count) return "a datagram record names no address slot of this turn";
    if (bytes == NULL) return "a send record is outside its arena";
    if (prepared == DATAGRAM_LIMIT || (prepared > 0 && batch->listeners[slot] != listener)) {
      send_batch(batch, p->listeners[listener].fd, prepared);
      prepared = 0;
    }
    listener = batch->listeners[slot];
    batch->parts[prepared] = (struct iovec){.iov_base = bytes, .iov_len = (size_t)record[SEND_LENGTH]};
    batch->messages[prepared].msg_hdr = (struct msghdr){
        .msg_name = &batch->addresses[slot],
        .msg_namelen = batch->address_bytes[slot],
        .msg_iov = &batch->parts[prepared],
        .msg_iovlen = 1,
    };
    prepared++;
  }
  if (prepared > 0) send_batch(batch, p->listeners[listener].fd, prepared);
  return NULL;
}

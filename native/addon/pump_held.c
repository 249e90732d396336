/*
 * Held input: the bytes of a connection that JavaScript did not consume.
 *
 * Owns stashes and own arenas. The invariant: a byte is copied a bounded number of times however slowly a large request
 * arrives: small remains (the stash) are copied in front of the next bytes, large ones live in an arena of the connection, into
 * which it receives directly and which grows without copying.
 */
#include "pump.h"

#include <stdlib.h>
#include <string.h>

void held_stash_free(pump *p, pump_conn *c) {
  p->held_bytes -= c->stash_capacity;
  free(c->stash);
  c->stash = NULL;
  c->stash_bytes = c->stash_capacity = 0;
}

/* The arena dies at the next poll: JavaScript may be looking at it in this turn. */
void held_own_free(pump *p, pump_conn *c) {
  p->held_bytes -= (int64_t)arena_table[c->own_arena].bytes;
  list_push(&p->doomed_arenas, c->own_arena);
  c->own_arena = -1;
  c->own_head = c->own_tail = 0;
}

void held_drop(pump *p, pump_conn *c) {
  if (c->stash != NULL) held_stash_free(p, c);
  if (c->own_arena >= 0) held_own_free(p, c);
}

static bool stash_reserve(pump *p, pump_conn *c, uint32_t bytes) {
  if (bytes <= c->stash_capacity) return true;
  uint32_t capacity = c->stash_capacity == 0 ? 256 : c->stash_capacity;
  while (capacity < bytes) capacity *= 2;
  uint8_t *grown = realloc(c->stash, capacity);
  if (grown == NULL) return false;
  p->held_bytes += (int64_t)capacity - c->stash_capacity;
  c->stash = grown;
  c->stash_capacity = capacity;
  return true;
}

/* Keeps the `rest` last bytes of a delivery; the first `kept` of them are in the stash already (nothing was consumed). */
static bool stash_keep(pump *p, pump_conn *c, const uint8_t *rest, uint32_t rest_bytes, uint32_t kept) {
  if (!stash_reserve(p, c, rest_bytes)) return false;
  memcpy(c->stash + kept, rest + kept, rest_bytes - kept);
  c->stash_bytes = rest_bytes;
  return true;
}

static uint32_t own_bytes_for(const pump *p, uint64_t bytes) {
  uint64_t capacity = OWN_ARENA_BYTES_MIN;
  while (capacity < bytes) capacity *= 2;
  /* Room for one byte beyond the limit, or it could never be seen to be exceeded. */
  const uint64_t most = (uint64_t)p->max_input_bytes + p->receive_bytes;
  if (capacity > most && most >= bytes) capacity = most;
  return capacity > ARENA_BYTES_MAX ? (uint32_t)ARENA_BYTES_MAX : (uint32_t)capacity;
}

static bool own_open(pump *p, pump_conn *c, const uint8_t *rest, uint32_t rest_bytes) {
  const map_options options = {.numa_node = -1};
  const char *syscall_name;
  const uint32_t capacity = own_bytes_for(p, (uint64_t)rest_bytes * 2);
  const int32_t number = arena_allocate(capacity, &options, &syscall_name);
  if (number < 0) return false;
  if (!instance_hold(p->owner, number)) {
    arena_drop(number);
    return false;
  }
  memcpy(arena_table[number].base, rest, rest_bytes);
  p->held_bytes += (int64_t)arena_table[number].bytes;
  c->own_arena = number;
  c->own_head = 0;
  c->own_tail = rest_bytes;
  if (c->stash != NULL) held_stash_free(p, c);
  return true;
}

/* Makes room behind the tail: moves down what is left when that frees half (or nothing else helps), else doubles. */
bool held_own_reserve(pump *p, pump_conn *c, uint32_t room) {
  const size_t capacity = arena_table[c->own_arena].bytes;
  if (capacity - c->own_tail >= room) return true;
  const uint32_t larger = own_bytes_for(p, (uint64_t)capacity * 2);
  if (c->own_head >= capacity / 2 || (larger <= capacity && c->own_head > 0)) {
    uint8_t *base = arena_table[c->own_arena].base;
    memmove(base, base + c->own_head, c->own_tail - c->own_head);
    c->own_tail -= c->own_head;
    c->own_head = 0;
    return true;
  }
  if (larger <= capacity) return capacity > c->own_tail;
  const int32_t grown = instance_grow(p->owner, c->own_arena, larger);
  if (grown < 0) return false;
  p->held_bytes += (int64_t)larger - (int64_t)capacity;
  c->own_arena = grown;
  return true;
}

/* Stores the rest of a delivery, wherever it lies now. */
bool held_keep(pump *p, pump_conn *c, const uint8_t *rest, uint32_t rest_bytes, bool is_untouched) {
  if (c->own_arena >= 0) {
    if (rest_bytes == 0) {
      held_own_free(p, c);
    } else if (rest_bytes <= STASH_BYTES_MAX / 4) {
      if (!stash_keep(p, c, rest, rest_bytes, 0)) return false;
      held_own_free(p, c);
    } else {
      c->own_head = c->own_tail - rest_bytes;
    }
    return true;
  }
  if (rest_bytes == 0) {
    if (c->stash != NULL) held_stash_free(p, c);
    return true;
  }
  if (rest_bytes > STASH_BYTES_MAX || rest_bytes > p->receive_bytes) return own_open(p, c, rest, rest_bytes);
  return stash_keep(p, c, rest, rest_bytes, is_untouched ? c->stash_bytes : 0);
}

/*
 * Which key comes next, and how long its value is. Keys are numbers below the key count; the value length of a key is a
 * fixed function of its number, so every reply can be checked without remembering what was set.
 * Zipf keys are drawn once into a ring of 2^20 (a draw costs about 100 ns, a ring read 1 ns).
 */
#ifndef ENTRESOL_LOAD_KEYS_H
#define ENTRESOL_LOAD_KEYS_H

#include <stddef.h>
#include <stdint.h>

#include "options.h"

struct keys {
  uint64_t state;
  uint64_t key_count;
  uint32_t value_min_bytes;
  uint32_t value_span; /* max - min + 1 */
  uint32_t *ring;      /* Zipf draws; NULL = uniform */
  uint32_t ring_position;
  uint64_t next_in_order; /* MODE_FILL and MODE_SWEEP */
};

void keys_init(struct keys *keys, const struct options *options);

/* splitmix64: one multiply-xor chain per number. */
static inline uint64_t keys_mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

static inline uint64_t keys_random(struct keys *keys) { return keys_mix(keys->state++); }

/* Uniform in (0, 1]. */
static inline double keys_fraction(struct keys *keys) { return (double)((keys_random(keys) >> 11) + 1) * 0x1p-53; }

static inline uint64_t keys_below(uint64_t random, uint64_t limit) {
  return (uint64_t)(((unsigned __int128)random * limit) >> 64);
}

enum { KEYS_RING_COUNT = 1 << 20 };

static inline uint64_t keys_draw(struct keys *keys) {
  if (keys->ring == NULL) return keys_below(keys_random(keys), keys->key_count);
  return keys->ring[keys->ring_position++ & (KEYS_RING_COUNT - 1)];
}

static inline uint32_t keys_value_bytes(const struct keys *keys, uint64_t key) {
  if (keys->value_span == 1) return keys->value_min_bytes;
  return keys->value_min_bytes + (uint32_t)keys_below(keys_mix(key * 2 + 1), keys->value_span);
}

#endif

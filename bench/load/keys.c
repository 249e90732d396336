/*
 * Set-up of the key source. Zipf ranks are drawn by rejection-inversion (Hoermann and Derflinger, 1996) and scattered over
 * the key space by a multiplication, so that hot keys are not neighbours.
 */
#include "keys.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Integral of x^-s from 1, its inverse, and x^-s; s = 1 is the logarithm. */
static double integral(double x, double s) { return fabs(s - 1) < 1e-9 ? log(x) : (pow(x, 1 - s) - 1) / (1 - s); }
static double inverse(double y, double s) { return fabs(s - 1) < 1e-9 ? exp(y) : pow(1 + y * (1 - s), 1 / (1 - s)); }
static double density(double x, double s) { return pow(x, -s); }

static uint64_t draw_rank(struct keys *keys, double s) {
  const double count = (double)keys->key_count;
  const double low = integral(1.5, s) - 1;
  const double high = integral(count + 0.5, s);
  const double squeeze = 2 - inverse(integral(2.5, s) - density(2, s), s);
  for (;;) {
    double u = high + keys_fraction(keys) * (low - high);
    double x = inverse(u, s);
    double rank = floor(x + 0.5);
    if (rank < 1) rank = 1;
    if (rank > count) rank = count;
    if (rank - x <= squeeze || u >= integral(rank + 0.5, s) - density(rank, s)) return (uint64_t)rank;
  }
}

void keys_init(struct keys *keys, const struct options *options) {
  keys->state = keys_mix(options->seed) << 20;
  keys->key_count = options->key_count;
  keys->value_min_bytes = options->value_min_bytes;
  keys->value_span = options->value_max_bytes - options->value_min_bytes + 1;
  keys->ring = NULL;
  keys->ring_position = 0;
  keys->next_in_order = 0;
  if (options->zipf_exponent == 0) return;
  keys->ring = malloc(KEYS_RING_COUNT * sizeof *keys->ring);
  if (keys->ring == NULL) {
    perror("entload: Zipf ring");
    exit(1);
  }
  for (uint32_t i = 0; i < KEYS_RING_COUNT; i++) {
    keys->ring[i] = (uint32_t)((draw_rank(keys, options->zipf_exponent) * 2654435761ull) % keys->key_count);
  }
}

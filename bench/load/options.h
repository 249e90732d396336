/*
 * What one run of the load generator does: parsed once from the command line, read-only afterwards.
 */
#ifndef ENTRESOL_LOAD_OPTIONS_H
#define ENTRESOL_LOAD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum protocol { PROTOCOL_RESP, PROTOCOL_MEMCACHED };

enum mode {
  MODE_CLOSED, /* every connection sends its next batch when the last one is answered */
  MODE_OPEN,   /* batches are sent on a schedule, whatever the answers do */
  MODE_FILL,   /* closed; SET of each key once, in order */
  MODE_SWEEP,  /* closed; GET of each key once, in order */
  MODE_SPIN,   /* no sockets: what an ideal server on this core would have seen */
};

struct options {
  enum mode mode;
  enum protocol protocol;
  const char *host;
  int port;
  int connection_count;
  int pipeline;
  uint64_t key_count;
  uint32_t value_min_bytes;
  uint32_t value_max_bytes;
  double set_fraction;
  double zipf_exponent; /* 0 = uniform */
  uint64_t request_limit; /* 0 = none */
  double seconds;         /* 0 = none */
  double rate;            /* requests per second, MODE_OPEN and MODE_SPIN */
  bool even_arrivals;     /* else Poisson */
  bool busy;              /* poll without sleeping (MODE_OPEN always does) */
  uint64_t seed;
  int cpu_pid; /* process whose CPU time is read around the run; 0 = none */
};

/* Fills `options`; prints what is wrong and exits with status 2 on bad input. */
void options_parse(struct options *options, int argc, char **argv);

#endif

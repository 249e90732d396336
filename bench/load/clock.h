/*
 * The two clocks of a run: monotonic time, and the CPU time a process has used in all its threads.
 */
#ifndef ENTRESOL_LOAD_CLOCK_H
#define ENTRESOL_LOAD_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

struct cpu_time {
  uint64_t total_ns;  /* all live threads, from schedstat: exact */
  uint64_t user_ns;   /* from stat: in clock ticks */
  uint64_t kernel_ns; /* from stat: in clock ticks */
};

/* Returns zeros for pid 0; ends the program when the process is not there. */
struct cpu_time cpu_time_of(int pid);

#endif

/*
 * entload: sends RESP or memcached requests to one server and prints what came back and how long it took, as one JSON object.
 *
 * Closed loop: each connection waits for its batch. Open loop: batches start on a schedule that does not wait for the
 * server, and latency counts from the scheduled time, so a stop of the server is seen by every request it delayed (no
 * coordinated omission). Spin: the same schedule with no server, which shows what the core itself costs.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include "clock.h"
#include "connection.h"
#include "options.h"

enum { READY_COUNT = 256, DRAIN_SECONDS = 10 };

struct run {
  struct load load;
  uint64_t start_ns;
  uint64_t stop_ns; /* time limit, or UINT64_MAX */
  uint64_t end_ns;
  uint64_t max_gap_ns; /* longest time between two turns of a polling loop */
};

static struct run run;

static uint64_t arrival_gap_ns(struct load *load) {
  double mean = 1e9 * load->options->pipeline / load->options->rate;
  return (uint64_t)(load->options->even_arrivals ? mean : -log(keys_fraction(&load->keys)) * mean);
}

/* Requests of the next batch; 0 when the run is over. */
static int batch_size(const struct load *load, uint64_t now_ns) {
  const struct options *o = load->options;
  if (now_ns >= run.stop_ns) return 0;
  if (o->request_limit == 0) return o->pipeline;
  uint64_t left = o->request_limit - load->tally.issued;
  return left < (uint64_t)o->pipeline ? (int)left : o->pipeline;
}

static void serve_ready(struct load *load, int timeout_ms, bool closed_loop) {
  struct epoll_event ready[READY_COUNT];
  int count = epoll_wait(load->epoll_fd, ready, READY_COUNT, timeout_ms);
  if (count < 0 && errno != EINTR) {
    perror("entload: epoll_wait");
    exit(1);
  }
  for (int i = 0; i < count; i++) {
    struct connection *c = ready[i].data.ptr;
    if (ready[i].events & EPOLLOUT) connection_send(load, c);
    if (!(ready[i].events & ~(uint32_t)EPOLLOUT)) continue;
    connection_receive(load, c);
    if (closed_loop && connection_pending(c) == 0) {
      uint64_t now_ns = clock_ns();
      int batch = batch_size(load, now_ns);
      if (batch > 0) connection_issue(load, c, batch, now_ns);
    }
  }
}

/* Waits for the answers still out. Those that never come are told by issued - answered. */
static void drain(struct load *load) {
  const uint64_t give_up_ns = clock_ns() + DRAIN_SECONDS * 1000000000ull;
  while (load->tally.answered < load->tally.issued && clock_ns() < give_up_ns) serve_ready(load, 100, false);
}

static void run_closed(struct load *load) {
  for (int i = 0; i < load->options->connection_count; i++) {
    uint64_t now_ns = clock_ns();
    int batch = batch_size(load, now_ns);
    if (batch > 0) connection_issue(load, &load->connections[i], batch, now_ns);
  }
  const int timeout_ms = load->options->busy ? 0 : 1000;
  uint64_t last_answered = 0;
  uint64_t progress_ns = clock_ns();
  while (batch_size(load, clock_ns()) > 0) {
    serve_ready(load, timeout_ms, true);
    if (load->tally.answered != last_answered) {
      last_answered = load->tally.answered;
      progress_ns = clock_ns();
    } else if (clock_ns() - progress_ns > DRAIN_SECONDS * 1000000000ull) {
      break;
    }
  }
  drain(load);
}

static void run_open(struct load *load) {
  int turn = 0;
  uint64_t next_ns = clock_ns();
  uint64_t last_ns = next_ns;
  for (;;) {
    uint64_t now_ns = clock_ns();
    if (now_ns - last_ns > run.max_gap_ns) run.max_gap_ns = now_ns - last_ns;
    last_ns = now_ns;
    while (next_ns <= now_ns) {
      int batch = batch_size(load, next_ns);
      if (batch == 0) {
        drain(load);
        return;
      }
      struct connection *c = &load->connections[turn];
      if (!connection_has_room(load, c)) break;
      turn = turn + 1 == load->options->connection_count ? 0 : turn + 1;
      connection_issue(load, c, batch, next_ns);
      next_ns += arrival_gap_ns(load);
    }
    serve_ready(load, 0, false);
  }
}

static void run_spin(struct load *load) {
  uint64_t next_ns = clock_ns();
  uint64_t last_ns = next_ns;
  for (;;) {
    uint64_t now_ns = clock_ns();
    if (now_ns - last_ns > run.max_gap_ns) run.max_gap_ns = now_ns - last_ns;
    last_ns = now_ns;
    while (next_ns <= now_ns) {
      int batch = batch_size(load, next_ns);
      if (batch == 0) return;
      load->tally.issued += (uint64_t)batch;
      load->tally.answered += (uint64_t)batch;
      histogram_record(&load->tally.latency, now_ns - next_ns, (uint64_t)batch);
      next_ns += arrival_gap_ns(load);
    }
  }
}

static void print_text(const char *name, const char *text) {
  printf("\"%s\":\"", name);
  for (; *text != '\0'; text++) {
    unsigned char c = (unsigned char)*text;
    if (c < 0x20 || c > 0x7e) printf("\\u%04x", c);
    else if (c == '"' || c == '\\') printf("\\%c", c);
    else putchar(c);
  }
  printf("\",");
}

static void print_result(const struct load *load, const struct cpu_time *before, const struct cpu_time *after) {
  const struct tally *t = &load->tally;
  const struct histogram *h = &t->latency;
  const double seconds = (double)(run.end_ns - run.start_ns) / 1e9;
  struct rusage own;
  getrusage(RUSAGE_SELF, &own);
  const double own_cpu = (double)(own.ru_utime.tv_sec + own.ru_stime.tv_sec) +
                         (double)(own.ru_utime.tv_usec + own.ru_stime.tv_usec) / 1e6;
  printf("{\"requests\":%llu,\"unanswered\":%llu,\"seconds\":%.6f,\"perSecond\":%.1f,", (unsigned long long)t->answered,
         (unsigned long long)(t->issued - t->answered), seconds, (double)t->answered / seconds);
  printf("\"gets\":%llu,\"hits\":%llu,\"sets\":%llu,\"errors\":%llu,\"mismatches\":%llu,", (unsigned long long)t->gets,
         (unsigned long long)t->hits, (unsigned long long)t->sets, (unsigned long long)t->errors,
         (unsigned long long)t->mismatches);
  print_text("firstError", t->first_error);
  printf("\"keyBytes\":%d,\"valueBytesRead\":%llu,\"valueBytesWritten\":%llu,", WIRE_KEY_BYTES,
         (unsigned long long)t->value_bytes_read, (unsigned long long)t->value_bytes_written);
  printf("\"latencyUs\":{\"mean\":%.3f", h->total == 0 ? 0 : (double)h->sum / (double)h->total / 1e3);
  static const struct { const char *name; double percent; } PERCENTILES[] = {
      {"p50", 50}, {"p90", 90}, {"p99", 99}, {"p999", 99.9}, {"p9999", 99.99}};
  for (size_t i = 0; i < sizeof PERCENTILES / sizeof *PERCENTILES; i++) {
    printf(",\"%s\":%.3f", PERCENTILES[i].name, (double)histogram_percentile(h, PERCENTILES[i].percent) / 1e3);
  }
  printf(",\"max\":%.3f},\"maxLoopGapUs\":%.3f,", (double)h->max / 1e3, (double)run.max_gap_ns / 1e3);
  printf("\"serverCpuNs\":%llu,\"serverUserNs\":%llu,\"serverKernelNs\":%llu,\"loadCpuSeconds\":%.6f}\n",
         (unsigned long long)(after->total_ns - before->total_ns), (unsigned long long)(after->user_ns - before->user_ns),
         (unsigned long long)(after->kernel_ns - before->kernel_ns), own_cpu);
}

static void prepare(struct load *load, const struct options *options) {
  load->options = options;
  keys_init(&load->keys, options);
  if (options->mode == MODE_SPIN) return;
  load->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  load->pattern = malloc((size_t)options->value_max_bytes + PATTERN_SHIFTS);
  load->connections = calloc((size_t)options->connection_count, sizeof *load->connections);
  if (load->epoll_fd < 0 || load->pattern == NULL || load->connections == NULL) {
    perror("entload: set-up");
    exit(1);
  }
  for (size_t i = 0; i < (size_t)options->value_max_bytes + PATTERN_SHIFTS; i++) {
    load->pattern[i] = (char)('!' + keys_mix(i) % 90);
  }
  for (int i = 0; i < options->connection_count; i++) connection_open(load, &load->connections[i]);
}

int main(int argc, char **argv) {
  static struct options options;
  options_parse(&options, argc, argv);
  prepare(&run.load, &options);
  const struct cpu_time before = cpu_time_of(options.cpu_pid);
  run.start_ns = clock_ns();
  run.stop_ns = options.seconds == 0 ? UINT64_MAX : run.start_ns + (uint64_t)(options.seconds * 1e9);
  if (options.mode == MODE_OPEN) run_open(&run.load);
  else if (options.mode == MODE_SPIN) run_spin(&run.load);
  else run_closed(&run.load);
  run.end_ns = clock_ns();
  const struct cpu_time after = cpu_time_of(options.cpu_pid);
  print_result(&run.load, &before, &after);
  return 0;
}

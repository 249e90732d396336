/*
 * Command line of the load generator. Every option is `--name value`; an unknown one ends the program.
 */
#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const USAGE =
    "usage: entload --mode closed|open|fill|sweep|spin --protocol resp|memcached --port N [--host 127.0.0.1]\n"
    "  [--connections 50] [--pipeline 1] [--keys 100000] [--value-min 100] [--value-max 100]\n"
    "  [--set-fraction 0] [--zipf 0] [--requests 0] [--seconds 0] [--rate 0] [--arrivals poisson|even]\n"
    "  [--busy 0|1] [--seed 1] [--cpu-pid 0]\n"
    "Sends the load and prints one JSON object. closed and open need --requests or --seconds; open and spin need --rate.\n";

static void fail(const char *message, const char *detail) {
  fprintf(stderr, "entload: %s%s\n%s", message, detail, USAGE);
  exit(2);
}

static double number(const char *name, const char *text, double min, double max) {
  char *end;
  errno = 0;
  double value = strtod(text, &end);
  if (errno != 0 || end == text || *end != '\0' || !(value >= min && value <= max)) fail("bad value for ", name);
  return value;
}

static enum mode mode_of(const char *text) {
  if (strcmp(text, "closed") == 0) return MODE_CLOSED;
  if (strcmp(text, "open") == 0) return MODE_OPEN;
  if (strcmp(text, "fill") == 0) return MODE_FILL;
  if (strcmp(text, "sweep") == 0) return MODE_SWEEP;
  if (strcmp(text, "spin") == 0) return MODE_SPIN;
  fail("unknown mode ", text);
  return MODE_CLOSED;
}

static enum protocol protocol_of(const char *text) {
  if (strcmp(text, "resp") == 0) return PROTOCOL_RESP;
  if (strcmp(text, "memcached") == 0) return PROTOCOL_MEMCACHED;
  fail("unknown protocol ", text);
  return PROTOCOL_RESP;
}

static void set_option(struct options *o, const char *name, const char *value) {
  if (strcmp(name, "--mode") == 0) o->mode = mode_of(value);
  else if (strcmp(name, "--protocol") == 0) o->protocol = protocol_of(value);
  else if (strcmp(name, "--host") == 0) o->host = value;
  else if (strcmp(name, "--port") == 0) o->port = (int)number(name, value, 1, 65535);
  else if (strcmp(name, "--connections") == 0) o->connection_count = (int)number(name, value, 1, 10000);
  else if (strcmp(name, "--pipeline") == 0) o->pipeline = (int)number(name, value, 1, 1024);
  else if (strcmp(name, "--keys") == 0) o->key_count = (uint64_t)number(name, value, 1, 4e9);
  else if (strcmp(name, "--value-min") == 0) o->value_min_bytes = (uint32_t)number(name, value, 1, 1 << 29);
  else if (strcmp(name, "--value-max") == 0) o->value_max_bytes = (uint32_t)number(name, value, 1, 1 << 29);
  else if (strcmp(name, "--set-fraction") == 0) o->set_fraction = number(name, value, 0, 1);
  else if (strcmp(name, "--zipf") == 0) o->zipf_exponent = number(name, value, 0, 10);
  else if (strcmp(name, "--requests") == 0) o->request_limit = (uint64_t)number(name, value, 0, 1e15);
  else if (strcmp(name, "--seconds") == 0) o->seconds = number(name, value, 0, 1e6);
  else if (strcmp(name, "--rate") == 0) o->rate = number(name, value, 0, 1e9);
  else if (strcmp(name, "--arrivals") == 0) o->even_arrivals = strcmp(value, "even") == 0;
  else if (strcmp(name, "--busy") == 0) o->busy = number(name, value, 0, 1) != 0;
  else if (strcmp(name, "--seed") == 0) o->seed = (uint64_t)number(name, value, 0, 1e15);
  else if (strcmp(name, "--cpu-pid") == 0) o->cpu_pid = (int)number(name, value, 0, 1e9);
  else fail("unknown option ", name);
}

void options_parse(struct options *o, int argc, char **argv) {
  memset(o, 0, sizeof *o);
  o->host = "127.0.0.1";
  o->connection_count = 50;
  o->pipeline = 1;
  o->key_count = 100000;
  o->value_min_bytes = 100;
  o->value_max_bytes = 100;
  o->seed = 1;
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 >= argc) fail("no value for ", argv[i]);
    set_option(o, argv[i], argv[i + 1]);
  }
  if (o->value_max_bytes < o->value_min_bytes) fail("--value-max is below --value-min", "");
  if (o->mode != MODE_SPIN && o->port == 0) fail("--port is needed", "");
  if ((o->mode == MODE_OPEN || o->mode == MODE_SPIN) && o->rate <= 0) fail("--rate is needed", "");
  if (o->mode == MODE_FILL || o->mode == MODE_SWEEP) o->request_limit = o->key_count;
  if (o->request_limit == 0 && o->seconds == 0) fail("--requests or --seconds is needed", "");
}

/*
 * Requests and replies as bytes, RESP and memcached text. Encoding fills templates; parsing looks at the first line of a
 * reply only and skips its value, so a request costs the load generator tens of nanoseconds outside the kernel.
 */
#ifndef ENTRESOL_LOAD_WIRE_H
#define ENTRESOL_LOAD_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "options.h"

enum {
  WIRE_KEY_BYTES = 16,      /* "key:" and 12 digits, as redis-benchmark writes them */
  WIRE_HEAD_MAX_BYTES = 96, /* request without its value */
  WIRE_LINE_MAX_BYTES = 512,
};

/* Writes a GET at `to`; returns its end. */
char *wire_get(enum protocol protocol, char *to, uint64_t key);
/* Writes a SET up to where its value starts (the value and CRLF follow); returns the end. */
char *wire_set_head(enum protocol protocol, char *to, uint64_t key, uint32_t value_bytes);

enum reply { REPLY_VALUE, REPLY_MISS, REPLY_STORED, REPLY_ERROR };

/*
 * Judges one reply line (without its line end). For REPLY_VALUE, *value_bytes is the length of the value and *skip_bytes
 * what follows the line until the reply is over.
 */
enum reply wire_reply(enum protocol protocol, const char *line, size_t line_bytes, uint64_t *value_bytes, uint64_t *skip_bytes);

#endif

/*
 * See wire.h.
 */
#include "wire.h"

#include <string.h>

static const char RESP_GET[] = "*2\r\n$3\r\nGET\r\n$16\r\n";
static const char RESP_SET[] = "*3\r\n$3\r\nSET\r\n$16\r\n";

static char *append(char *to, const char *text, size_t bytes) {
  memcpy(to, text, bytes);
  return to + bytes;
}

static char *append_key(char *to, uint64_t key) {
  memcpy(to, "key:", 4);
  for (int i = WIRE_KEY_BYTES - 1; i >= 4; i--) {
    to[i] = (char)('0' + key % 10);
    key /= 10;
  }
  return to + WIRE_KEY_BYTES;
}

static char *append_number(char *to, uint32_t value) {
  char digits[10];
  int count = 0;
  do {
    digits[count++] = (char)('0' + value % 10);
    value /= 10;
  } while (value != 0);
  while (count > 0) *to++ = digits[--count];
  return to;
}

char *wire_get(enum protocol protocol, char *to, uint64_t key) {
  to = protocol == PROTOCOL_RESP ? append(to, RESP_GET, sizeof RESP_GET - 1) : append(to, "get ", 4);
  to = append_key(to, key);
  return append(to, "\r\n", 2);
}

char *wire_set_head(enum protocol protocol, char *to, uint64_t key, uint32_t value_bytes) {
  if (protocol == PROTOCOL_RESP) {
    to = append_key(append(to, RESP_SET, sizeof RESP_SET - 1), key);
    to = append(to, "\r\n$", 3);
  } else {
    to = append_key(append(to, "set ", 4), key);
    to = append(to, " 0 0 ", 5);
  }
  return append(append_number(to, value_bytes), "\r\n", 2);
}

static uint64_t digits_until(const char *at, const char *end) {
  uint64_t value = 0;
  while (at < end && *at >= '0' && *at <= '9') value = value * 10 + (uint64_t)(*at++ - '0');
  return value;
}

static enum reply resp_reply(const char *line, size_t bytes, uint64_t *value_bytes, uint64_t *skip_bytes) {
  if (line[0] == '+') return REPLY_STORED;
  if (line[0] != '$') return line[0] == '_' ? REPLY_MISS : REPLY_ERROR;
  if (bytes > 1 && line[1] == '-') return REPLY_MISS;
  *value_bytes = digits_until(line + 1, line + bytes);
  *skip_bytes = *value_bytes + 2;
  return REPLY_VALUE;
}

static enum reply memcached_reply(const char *line, size_t bytes, uint64_t *value_bytes, uint64_t *skip_bytes) {
  if (bytes > 6 && memcmp(line, "VALUE ", 6) == 0) {
    const char *length = line + bytes;
    while (length > line && length[-1] != ' ') length--;
    *value_bytes = digits_until(length, line + bytes);
    *skip_bytes = *value_bytes + 2 + 5; /* CRLF, "END" CRLF */
    return REPLY_VALUE;
  }
  if (bytes == 3 && memcmp(line, "END", 3) == 0) return REPLY_MISS;
  if (bytes == 6 && memcmp(line, "STORED", 6) == 0) return REPLY_STORED;
  return REPLY_ERROR;
}

enum reply wire_reply(enum protocol protocol, const char *line, size_t bytes, uint64_t *value_bytes, uint64_t *skip_bytes) {
  *value_bytes = 0;
  *skip_bytes = 0;
  if (bytes == 0) return REPLY_ERROR;
  if (protocol == PROTOCOL_RESP) return resp_reply(line, bytes, value_bytes, skip_bytes);
  return memcached_reply(line, bytes, value_bytes, skip_bytes);
}

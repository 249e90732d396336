/*
 * Numbers as Redis prints them, and SHA-1 for redis.sha1hex.
 *
 * Owns nothing. The invariant: format_number gives the fewest digits that read back as the same double.
 */
#include "lua_engine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool as_integer(double value, long long *out) {
  if (!(value > -4611686018427387904.0 && value < 4611686018427387904.0)) return false;
  *out = (long long)value;
  return (double)*out == value;
}

/* Digits without point, and the power of ten of the last one. */
static int shortest_digits(double value, char digits[20], int *last_power) {
  char text[40];
  for (int precision = 0; precision < 17; precision++) {
    snprintf(text, sizeof text, "%.*e", precision, value);
    if (precision < 16 && strtod(text, NULL) != value) continue;
    break;
  }
  char *exponent = strchr(text, 'e');
  int count = 0;
  for (const char *c = text; c < exponent; c++) {
    if (*c != '.') digits[count++] = *c;
  }
  *last_power = atoi(exponent + 1) - count + 1;
  return count;
}

size_t format_number(double value, char *out) {
  if (isnan(value)) return (size_t)sprintf(out, "nan");
  if (isinf(value)) return (size_t)sprintf(out, value < 0 ? "-inf" : "inf");
  if (value == 0) return (size_t)sprintf(out, signbit(value) ? "-0" : "0");
  if (value == floor(value) && fabs(value) < 4611686018427387904.0) return (size_t)sprintf(out, "%lld", (long long)value);
  char *start = out;
  if (value < 0) {
    *out++ = '-';
    value = -value;
  }
  char digits[20];
  int last_power;
  const int count = shortest_digits(value, digits, &last_power);
  const int exponent = last_power + count - 1;
  const int magnitude = abs(exponent);
  if (last_power >= 0 && magnitude < count + 7) {
    memcpy(out, digits, (size_t)count);
    memset(out + count, '0', (size_t)last_power);
    return (size_t)(out + count + last_power - start);
  }
  if (last_power < 0 && (last_power > -7 || magnitude < 4)) {
    const int point = count + last_power;
    if (point > 0) return (size_t)(out + sprintf(out, "%.*s.%.*s", point, digits, count - point, digits + point) - start);
    out += sprintf(out, "0.");
    memset(out, '0', (size_t)-point);
    out += -point;
    memcpy(out, digits, (size_t)count);
    return (size_t)(out + count - start);
  }
  out += sprintf(out, "%c", digits[0]);
  if (count > 1) out += sprintf(out, ".%.*s", count - 1, digits + 1);
  out += sprintf(out, "e%c%d", exponent < 0 ? '-' : '+', magnitude);
  return (size_t)(out - start);
}

/* ---- SHA-1 (FIPS 180-4) ---- */

static uint32_t rotate(uint32_t value, int bits) { return value << bits | value >> (32 - bits); }

static void sha1_block(uint32_t h[5], const uint8_t *block) {
  uint32_t w[80];
  for (int i = 0; i < 16; i++) {
    w[i] = (uint32_t)block[i * 4] << 24 | (uint32_t)block[i * 4 + 1] << 16 | (uint32_t)block[i * 4 + 2] << 8 | block[i * 4 + 3];
  }
  for (int i = 16; i < 80; i++) w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
  uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
  for (int i = 0; i < 80; i++) {
    uint32_t mix, constant;
    if (i < 20) {
      mix = (b & c) | (~b & d);
      constant = 0x5a827999;
    } else if (i < 40) {
      mix = b ^ c ^ d;
      constant = 0x6ed9eba1;
    } else if (i < 60) {
      mix = (b & c) | (b & d) | (c & d);
      constant = 0x8f1bbcdc;
    } else {
      mix = b ^ c ^ d;
      constant = 0xca62c1d6;
    }
    const uint32_t next = rotate(a, 5) + mix + e + constant + w[i];
    e = d;
    d = c;
    c = rotate(b, 30);
    b = a;
    a = next;
  }
  h[0] += a;
  h[1] += b;
  h[2] += c;
  h[3] += d;
  h[4] += e;
}

void sha1_hex(const uint8_t *data, size_t bytes, char hex[41]) {
  uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  size_t done = 0;
  for (; bytes - done >= 64; done += 64) sha1_block(h, data + done);
  uint8_t tail[128] = {0};
  const size_t rest = bytes - done;
  if (rest > 0) memcpy(tail, data + done, rest);
  tail[rest] = 0x80;
  const size_t tail_bytes = rest < 56 ? 64 : 128;
  const uint64_t bits = (uint64_t)bytes * 8;
  for (int i = 0; i < 8; i++) tail[tail_bytes - 1 - (size_t)i] = (uint8_t)(bits >> (8 * i));
  sha1_block(h, tail);
  if (tail_bytes == 128) sha1_block(h, tail + 64);
  for (int i = 0; i < 5; i++) sprintf(hex + i * 8, "%08x", h[i]);
}

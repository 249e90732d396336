/*
 * The `struct` library of scripts: values to and from packed bytes, by a format string.
 *
 *   > < byte order   !n alignment   b B h H l L T i[n] I[n] integers   f d floats   s zero-ended   cn n bytes (c0: all of it, or as
 *   many as the number before says)   x a zero byte   blank nothing
 *
 * Owns nothing. Invariant: nothing is read outside the data, whatever the format says.
 */
#include "lua_engine.h"
#include "lua_buffer.h"

#include <ctype.h>
#include <limits.h>

enum { INTEGER_BYTES_MAX = 32, ALIGNMENT_MAX = 8 };

/* A format on its way through. */
typedef struct format {
  lua_State *state;
  const char *at;
  bool is_big;
  size_t alignment;
  char option;
  size_t size; /* of the option; 0 = it has none of its own */
} format;

static int read_number(format *f, int missing) {
  if (!isdigit((unsigned char)*f->at)) return missing;
  int value = 0;
  for (; isdigit((unsigned char)*f->at); f->at++) {
    const int digit = *f->at - '0';
    if (value > (INT_MAX - digit) / 10) luaL_error(f->state, "integral size overflow");
    value = value * 10 + digit;
  }
  return value;
}

/* The next option with its size; returns the padding that goes before it at this position. */
static size_t next_option(format *f, size_t position) {
  f->option = *f->at++;
  switch (f->option) {
    case 'b': case 'B': case 'x': f->size = 1; break;
    case 'h': case 'H': f->size = sizeof(short); break;
    case 'l': case 'L': f->size = sizeof(long); break;
    case 'T': f->size = sizeof(size_t); break;
    case 'f': f->size = sizeof(float); break;
    case 'd': f->size = sizeof(double); break;
    case 'c': f->size = (size_t)read_number(f, 1); break;
    case 'i': case 'I': {
      const int size = read_number(f, sizeof(int));
      if (size > INTEGER_BYTES_MAX) luaL_error(f->state, "integral size %d is larger than limit of %d", size, INTEGER_BYTES_MAX);
      f->size = (size_t)size;
      break;
    }
    default: f->size = 0;
  }
  if (f->size == 0 || f->option == 'c') return 0;
  const size_t unit = f->size < f->alignment ? f->size : f->alignment;
  return (unit - (position & (unit - 1))) & (unit - 1);
}

/* Options that stand for no value. */
static void apply_control(format *f) {
  switch (f->option) {
    case ' ':
      return;
    case '>':
      f->is_big = true;
      return;
    case '<':
      f->is_big = false;
      return;
    case '!': {
      const int alignment = read_number(f, ALIGNMENT_MAX);
      if (alignment <= 0 || (alignment & (alignment - 1)) != 0) luaL_error(f->state, "alignment %d is not a power of 2", alignment);
      f->alignment = (size_t)alignment;
      return;
    }
    default:
      luaL_argerror(f->state, 1, lua_pushfstring(f->state, "invalid format option '%c'", f->option));
  }
}

static bool is_integer(char option) { return strchr("bBhHlLTiI", option) != NULL; }

static void reverse(uint8_t *bytes, size_t count) {
  for (size_t i = 0; i < count / 2; i++) {
    const uint8_t kept = bytes[i];
    bytes[i] = bytes[count - 1 - i];
    bytes[count - 1 - i] = kept;
  }
}

/* A double as the 64 bits of an integer, wrapping where it is none. */
static uint64_t integer_bits(double value) {
  if (value < 0) return value >= -9223372036854775808.0 ? (uint64_t)(int64_t)value : (uint64_t)INT64_MIN;
  return value < 18446744073709551616.0 ? (uint64_t)value : 0;
}

static void append_integer(byte_string *out, const format *f, double value) {
  uint8_t bytes[INTEGER_BYTES_MAX] = {0};
  uint64_t bits = integer_bits(value);
  for (size_t i = 0; i < f->size; i++, bits >>= 8) bytes[i] = (uint8_t)bits;
  if (f->is_big) reverse(bytes, f->size);
  bytes_append(out, bytes, f->size);
}

static void append_float(byte_string *out, const format *f, double value) {
  uint8_t bytes[8];
  const float single = (float)value;
  if (f->option == 'f') memcpy(bytes, &single, sizeof single);
  else memcpy(bytes, &value, sizeof value);
  if (f->is_big) reverse(bytes, f->size);
  bytes_append(out, bytes, f->size);
}

/* Returns how many bytes the text took. */
static void append_text(byte_string *out, const format *f, int argument) {
  size_t length;
  const char *text = luaL_checklstring(f->state, argument, &length);
  const size_t size = f->size == 0 ? length : f->size;
  luaL_argcheck(f->state, length >= size, argument + 1, "string too short");
  bytes_append(out, text, size);
  if (f->option == 's') bytes_append_byte(out, 0);
}

static int struct_pack(lua_State *state) {
  format f = {state, luaL_checkstring(state, 1), false, 1, 0, 0};
  int argument = 2;
  lua_pushnil(state); /* a missing argument must not be taken for the buffer */
  byte_string out;
  bytes_open(&out, state);
  while (*f.at != '\0') {
    for (size_t padding = next_option(&f, out.used); padding > 0; padding--) bytes_append_byte(&out, 0);
    if (is_integer(f.option)) append_integer(&out, &f, luaL_checknumber(state, argument++));
    else if (f.option == 'f' || f.option == 'd') append_float(&out, &f, luaL_checknumber(state, argument++));
    else if (f.option == 'c' || f.option == 's') append_text(&out, &f, argument++);
    else if (f.option == 'x') bytes_append_byte(&out, 0);
    else apply_control(&f);
  }
  bytes_push(&out);
  return 1;
}

static double read_integer(const uint8_t *from, const format *f) {
  uint64_t bits = 0;
  for (size_t i = 0; i < f->size; i++) {
    const uint8_t byte = f->is_big ? from[i] : from[f->size - 1 - i];
    bits = bits << 8 | byte;
  }
  if (!islower((unsigned char)f->option)) return (double)bits;
  if (f->size > 0 && f->size < 8 && (bits >> (f->size * 8 - 1) & 1) != 0) bits |= ~UINT64_C(0) << (f->size * 8);
  return (double)(int64_t)bits;
}

static double read_float(const uint8_t *from, const format *f) {
  uint8_t bytes[8];
  memcpy(bytes, from, f->size);
  if (f->is_big) reverse(bytes, f->size);
  float single;
  double value;
  if (f->option == 'f') {
    memcpy(&single, bytes, sizeof single);
    return single;
  }
  memcpy(&value, bytes, sizeof value);
  return value;
}

static void check_inside(lua_State *state, size_t position, size_t size, size_t length) {
  luaL_argcheck(state, size <= length && position <= length - size, 2, "data string too short");
}

static int struct_unpack(lua_State *state) {
  format f = {state, luaL_checkstring(state, 1), false, 1, 0, 0};
  size_t length;
  const uint8_t *data = (const uint8_t *)luaL_checklstring(state, 2, &length);
  const lua_Integer start = luaL_optinteger(state, 3, 1);
  luaL_argcheck(state, start > 0, 3, "offset must be 1 or greater");
  size_t position = (size_t)start - 1;
  int results = 0;
  while (*f.at != '\0') {
    position += next_option(&f, position);
    check_inside(state, position, f.size, length);
    luaL_checkstack(state, 3, "too many results");
    size_t taken = f.size;
    if (is_integer(f.option)) {
      lua_pushnumber(state, read_integer(data + position, &f));
      results++;
    } else if (f.option == 'f' || f.option == 'd') {
      lua_pushnumber(state, read_float(data + position, &f));
      results++;
    } else if (f.option == 'c') {
      if (f.size == 0) {
        if (results == 0 || !lua_isnumber(state, -1)) return luaL_error(state, "format 'c0' needs a previous size");
        const double wanted = lua_tonumber(state, -1);
        taken = wanted >= 0 && wanted <= (double)length ? (size_t)wanted : length + 1;
        lua_pop(state, 1);
        results--;
        check_inside(state, position, taken, length);
      }
      lua_pushlstring(state, (const char *)data + position, taken);
      results++;
    } else if (f.option == 's') {
      const uint8_t *end = memchr(data + position, 0, length - position);
      if (end == NULL) return luaL_error(state, "unfinished string in data");
      taken = (size_t)(end - (data + position)) + 1;
      lua_pushlstring(state, (const char *)data + position, taken - 1);
      results++;
    } else if (f.option != 'x') {
      apply_control(&f);
    }
    position += taken;
  }
  lua_pushinteger(state, (lua_Integer)position + 1);
  return results + 1;
}

static int struct_size(lua_State *state) {
  format f = {state, luaL_checkstring(state, 1), false, 1, 0, 0};
  size_t position = 0;
  while (*f.at != '\0') {
    position += next_option(&f, position);
    if (f.option == 's') return luaL_argerror(state, 1, "option 's' has no fixed size");
    if (f.option == 'c' && f.size == 0) return luaL_argerror(state, 1, "option 'c0' has no fixed size");
    if (!isalnum((unsigned char)f.option)) apply_control(&f);
    position += f.size;
  }
  lua_pushinteger(state, (lua_Integer)position);
  return 1;
}

int open_struct(lua_State *state) {
  static const luaL_Reg functions[] = {{"pack", struct_pack}, {"unpack", struct_unpack}, {"size", struct_size}, {NULL, NULL}};
  lua_newtable(state);
  luaL_register(state, NULL, functions);
  lua_setglobal(state, "struct");
  return 0;
}

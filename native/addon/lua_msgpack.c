/*
 * The `cmsgpack` library of scripts: MessagePack (github.com/msgpack/msgpack/blob/master/spec.md) to and from Lua values.
 *
 * Numbers that are whole go as integers of the least size, others as float where that is exact, else double; tables with the keys 1 .. n
 * as arrays, others as maps; what has no form (functions), and tables nested deeper than DEPTH_MAX, as nil.
 * Invariant: nothing is read beyond the end of the input.
 */
#include "lua_engine.h"
#include "lua_buffer.h"

#include <limits.h>
#include <math.h>

enum { DEPTH_MAX = 16 };

/* ---- packing ---- */

/* A type byte and the low `count` bytes of a value, most significant first. */
static void append_head(byte_string *out, int type, uint64_t value, int count) {
  uint8_t *at = bytes_reserve(out, 9);
  *at++ = (uint8_t)type;
  for (int i = count - 1; i >= 0; i--) *at++ = (uint8_t)(value >> (8 * i));
  out->used += (size_t)count + 1;
}

static void pack_integer(byte_string *out, int64_t value) {
  const uint64_t bits = (uint64_t)value;
  if (value >= 0) {
    if (value <= 127) append_head(out, (int)value, 0, 0);
    else if (value <= 0xff) append_head(out, 0xcc, bits, 1);
    else if (value <= 0xffff) append_head(out, 0xcd, bits, 2);
    else if (value <= 0xffffffffLL) append_head(out, 0xce, bits, 4);
    else append_head(out, 0xcf, bits, 8);
  } else if (value >= -32) {
    append_head(out, (int)(value & 0xff), 0, 0);
  } else if (value >= INT8_MIN) {
    append_head(out, 0xd0, bits, 1);
  } else if (value >= INT16_MIN) {
    append_head(out, 0xd1, bits, 2);
  } else if (value >= INT32_MIN) {
    append_head(out, 0xd2, bits, 4);
  } else {
    append_head(out, 0xd3, bits, 8);
  }
}

static void pack_number(byte_string *out, double value) {
  if (value >= -9223372036854775808.0 && value < 9223372036854775808.0 && (double)(int64_t)value == value) {
    pack_integer(out, (int64_t)value);
    return;
  }
  const float single = (float)value;
  if ((double)single == value) {
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    append_head(out, 0xca, bits, 4);
  } else {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    append_head(out, 0xcb, bits, 8);
  }
}

static void pack_text(byte_string *out, const char *text, size_t length) {
  if (length < 32) append_head(out, 0xa0 | (int)length, 0, 0);
  else if (length <= 0xff) append_head(out, 0xd9, length, 1);
  else if (length <= 0xffff) append_head(out, 0xda, length, 2);
  else append_head(out, 0xdb, length, 4);
  bytes_append(out, text, length);
}

static void pack_count(byte_string *out, size_t count, int fixed, int wide) {
  if (count <= 15) append_head(out, fixed | (int)count, 0, 0);
  else if (count <= 0xffff) append_head(out, wide, count, 2);
  else append_head(out, wide + 1, count, 4);
}

/* The number of entries of the table on the top; *is_array tells whether their keys are 1 .. n. */
static size_t count_entries(lua_State *state, bool *is_array) {
  size_t count = 0;
  double largest = 0;
  *is_array = true;
  for (lua_pushnil(state); lua_next(state, -2); count++) {
    lua_pop(state, 1);
    const double key = lua_type(state, -1) == LUA_TNUMBER ? lua_tonumber(state, -1) : 0;
    if (key <= 0 || key != floor(key) || key > INT_MAX) *is_array = false;
    if (key > largest) largest = key;
  }
  if (largest != (double)count) *is_array = false;
  return count;
}

/* Packs the value on the top and pops it. */
static void pack_value(byte_string *out, lua_State *state, int depth) {
  luaL_checkstack(state, 5, "in function mp_encode_lua_table_as_map");
  switch (lua_type(state, -1)) {
    case LUA_TSTRING: {
      size_t length;
      const char *text = lua_tolstring(state, -1, &length);
      pack_text(out, text, length);
      break;
    }
    case LUA_TBOOLEAN:
      append_head(out, lua_toboolean(state, -1) ? 0xc3 : 0xc2, 0, 0);
      break;
    case LUA_TNUMBER:
      pack_number(out, lua_tonumber(state, -1));
      break;
    case LUA_TTABLE: {
      if (depth == DEPTH_MAX) {
        append_head(out, 0xc0, 0, 0);
        break;
      }
      bool is_array;
      const size_t count = count_entries(state, &is_array);
      pack_count(out, count, is_array ? 0x90 : 0x80, is_array ? 0xdc : 0xde);
      if (is_array) {
        for (size_t i = 1; i <= count; i++) {
          lua_rawgeti(state, -1, (int)i);
          pack_value(out, state, depth + 1);
        }
      } else {
        lua_pushnil(state);
        while (lua_next(state, -2)) {
          lua_pushvalue(state, -2);
          pack_value(out, state, depth + 1);
          pack_value(out, state, depth + 1);
        }
      }
      break;
    }
    default:
      append_head(out, 0xc0, 0, 0);
  }
  lua_pop(state, 1);
}

static int msgpack_pack(lua_State *state) {
  const int count = lua_gettop(state);
  if (count == 0) return luaL_argerror(state, 0, "MessagePack pack needs input.");
  byte_string out;
  bytes_open(&out, state);
  for (int i = 1; i <= count; i++) {
    lua_pushvalue(state, i);
    pack_value(&out, state, 0);
  }
  bytes_push(&out);
  return 1;
}

/* ---- unpacking ---- */

typedef struct input {
  lua_State *state;
  const uint8_t *at, *end;
} input;

static const uint8_t *take(input *in, size_t count) {
  if ((size_t)(in->end - in->at) < count) luaL_error(in->state, "Missing bytes in input.");
  const uint8_t *start = in->at;
  in->at += count;
  return start;
}

static uint64_t take_unsigned(input *in, size_t count) {
  const uint8_t *from = take(in, count);
  uint64_t value = 0;
  for (size_t i = 0; i < count; i++) value = value << 8 | from[i];
  return value;
}

static void unpack_value(input *in);

static void unpack_text(input *in, size_t length) {
  const char *text = (const char *)take(in, length);
  lua_pushlstring(in->state, text, length);
}

static void unpack_array(input *in, size_t count) {
  lua_newtable(in->state);
  for (size_t i = 1; i <= count; i++) {
    unpack_value(in);
    lua_rawseti(in->state, -2, (int)i);
  }
}

static void unpack_map(input *in, size_t count) {
  lua_newtable(in->state);
  for (size_t i = 0; i < count; i++) {
    unpack_value(in);
    unpack_value(in);
    lua_settable(in->state, -3); /* a nil or NaN key raises */
  }
}

static void unpack_float(input *in) {
  const uint32_t bits = (uint32_t)take_unsigned(in, 4);
  float value;
  memcpy(&value, &bits, sizeof value);
  lua_pushnumber(in->state, value);
}

static void unpack_double(input *in) {
  const uint64_t bits = take_unsigned(in, 8);
  double value;
  memcpy(&value, &bits, sizeof value);
  lua_pushnumber(in->state, value);
}

static void unpack_value(input *in) {
  lua_State *state = in->state;
  luaL_checkstack(state, 3, "too many return values at once; use unpack_one or unpack_limit instead.");
  const int type = *take(in, 1);
  switch (type) {
    case 0xc0: lua_pushnil(state); return;
    case 0xc2: lua_pushboolean(state, 0); return;
    case 0xc3: lua_pushboolean(state, 1); return;
    case 0xca: unpack_float(in); return;
    case 0xcb: unpack_double(in); return;
    case 0xcc: lua_pushnumber(state, (double)take_unsigned(in, 1)); return;
    case 0xcd: lua_pushnumber(state, (double)take_unsigned(in, 2)); return;
    case 0xce: lua_pushnumber(state, (double)take_unsigned(in, 4)); return;
    case 0xcf: lua_pushnumber(state, (double)take_unsigned(in, 8)); return;
    case 0xd0: lua_pushnumber(state, (double)(int8_t)take_unsigned(in, 1)); return;
    case 0xd1: lua_pushnumber(state, (double)(int16_t)take_unsigned(in, 2)); return;
    case 0xd2: lua_pushnumber(state, (double)(int32_t)take_unsigned(in, 4)); return;
    case 0xd3: lua_pushnumber(state, (double)(int64_t)take_unsigned(in, 8)); return;
    case 0xd9: unpack_text(in, (size_t)take_unsigned(in, 1)); return;
    case 0xda: unpack_text(in, (size_t)take_unsigned(in, 2)); return;
    case 0xdb: unpack_text(in, (size_t)take_unsigned(in, 4)); return;
    case 0xdc: unpack_array(in, (size_t)take_unsigned(in, 2)); return;
    case 0xdd: unpack_array(in, (size_t)take_unsigned(in, 4)); return;
    case 0xde: unpack_map(in, (size_t)take_unsigned(in, 2)); return;
    case 0xdf: unpack_map(in, (size_t)take_unsigned(in, 4)); return;
    default:
      if (type < 0x80) lua_pushnumber(state, type);
      else if (type < 0x90) unpack_map(in, (size_t)type & 15);
      else if (type < 0xa0) unpack_array(in, (size_t)type & 15);
      else if (type < 0xc0) unpack_text(in, (size_t)type & 31);
      else if (type >= 0xe0) lua_pushnumber(state, (int8_t)type);
      else luaL_error(state, "Bad data format in input.");
  }
}

/* limit 0 and offset 0: all of it, and no offset among the results. */
static int unpack_some(lua_State *state, lua_Integer limit, lua_Integer offset) {
  size_t length;
  const uint8_t *data = (const uint8_t *)luaL_checklstring(state, 1, &length);
  if (offset < 0 || limit < 0) {
    return luaL_error(state, "Invalid request to unpack with offset of %d and limit of %d.", (int)offset, (int)length);
  }
  if ((size_t)offset > length) {
    return luaL_error(state, "Start offset %d greater than input length %d.", (int)offset, (int)length);
  }
  const bool is_all = limit == 0 && offset == 0;
  lua_settop(state, 1);
  input in = {state, data + offset, data + length};
  int count = 0;
  for (; in.at < in.end && (is_all || count < limit); count++) unpack_value(&in);
  if (is_all) return count;
  luaL_checkstack(state, 1, "in function mp_unpack_full");
  lua_pushinteger(state, in.at == in.end ? -1 : (lua_Integer)(in.at - data));
  lua_insert(state, 2);
  return count + 1;
}

static int msgpack_unpack(lua_State *state) { return unpack_some(state, 0, 0); }
static int msgpack_unpack_one(lua_State *state) { return unpack_some(state, 1, luaL_optinteger(state, 2, 0)); }
static int msgpack_unpack_limit(lua_State *state) {
  return unpack_some(state, luaL_checkinteger(state, 2), luaL_optinteger(state, 3, 0));
}

int open_cmsgpack(lua_State *state) {
  static const luaL_Reg functions[] = {
      {"pack", msgpack_pack}, {"unpack", msgpack_unpack}, {"unpack_one", msgpack_unpack_one}, {"unpack_limit", msgpack_unpack_limit}, {NULL, NULL}};
  lua_newtable(state);
  luaL_register(state, NULL, functions);
  lua_pushliteral(state, "cmsgpack");
  lua_setfield(state, -2, "_NAME");
  lua_pushliteral(state, "lua-cmsgpack 0.4.0");
  lua_setfield(state, -2, "_VERSION");
  lua_setglobal(state, "cmsgpack");
  return 0;
}

/*
 * The `cjson` library of scripts: its table, its settings, and encoding of Lua values as JSON.
 *
 * A table whose keys are all whole numbers from 1 on is an array, any other (an empty one, too) an object; cjson.null stands for null.
 * Invariant: what is encoded is UTF-8 if the strings are; control characters, quotes, backslashes and slashes are escaped.
 */
#include "lua_json.h"
#include "lua_buffer.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>

/* ---- encoding ---- */

typedef struct encoder {
  lua_State *state;
  const json_settings *settings;
  byte_string out;
} encoder;

static void refuse(encoder *e, int index, const char *reason) {
  luaL_error(e->state, "Cannot serialise %s: %s", luaL_typename(e->state, index), reason);
}

static void encode_text(encoder *e, int index) {
  size_t length;
  const char *text = lua_tolstring(e->state, index, &length);
  bytes_append_byte(&e->out, '"');
  size_t plain = 0; /* start of the run that needs no escape */
  for (size_t i = 0; i < length; i++) {
    const unsigned char c = (unsigned char)text[i];
    if (c >= 0x20 && c != '"' && c != '\\' && c != '/' && c != 0x7f) continue;
    bytes_append(&e->out, text + plain, i - plain);
    plain = i + 1;
    const char *letters = "\"\"\\\\//\bb\tt\nn\ff\rr";
    char escape[8];
    const char *pair = letters;
    while (*pair != '\0' && (unsigned char)*pair != c) pair += 2;
    if (c != 0 && *pair != '\0') snprintf(escape, sizeof escape, "\\%c", pair[1]);
    else snprintf(escape, sizeof escape, "\\u%04x", c);
    bytes_append(&e->out, escape, strlen(escape));
  }
  bytes_append(&e->out, text + plain, length - plain);
  bytes_append_byte(&e->out, '"');
}

static void encode_number(encoder *e, int index) {
  const double value = lua_tonumber(e->state, index);
  char text[64];
  if (!isfinite(value)) {
    if (e->settings->encode_invalid == INVALID_OFF) refuse(e, index, "must not be NaN or Inf");
    if (e->settings->encode_invalid == INVALID_NULL) bytes_append(&e->out, "null", 4);
    else if (isnan(value)) bytes_append(&e->out, "nan", 3);
    else bytes_append(&e->out, value < 0 ? "-inf" : "inf", value < 0 ? 4 : 3);
    return;
  }
  bytes_append(&e->out, text, (size_t)snprintf(text, sizeof text, "%.*g", e->settings->precision, value));
}

/* Elements if the table on the top is an array, else -1 (an empty one: 0). */
static int array_length(encoder *e) {
  double largest = 0;
  int count = 0;
  for (lua_pushnil(e->state); lua_next(e->state, -2); count++) {
    lua_pop(e->state, 1);
    const double key = lua_type(e->state, -1) == LUA_TNUMBER ? lua_tonumber(e->state, -1) : 0;
    if (key < 1 || key != floor(key) || key > INT_MAX) {
      lua_pop(e->state, 1);
      return -1;
    }
    if (key > largest) largest = key;
  }
  const json_settings *settings = e->settings;
  if (settings->sparse_ratio > 0 && largest > (double)count * settings->sparse_ratio && largest > settings->sparse_safe) {
    if (!settings->sparse_convert) refuse(e, -1, "excessively sparse array");
    return -1;
  }
  return (int)largest;
}

static void encode_value(encoder *e, int depth);

static void encode_object(encoder *e, int depth) {
  bytes_append_byte(&e->out, '{');
  bool is_first = true;
  lua_pushnil(e->state);
  while (lua_next(e->state, -2)) {
    if (!is_first) bytes_append_byte(&e->out, ',');
    is_first = false;
    if (lua_type(e->state, -2) == LUA_TSTRING) {
      encode_text(e, -2);
    } else if (lua_type(e->state, -2) == LUA_TNUMBER) {
      bytes_append_byte(&e->out, '"');
      encode_number(e, -2);
      bytes_append_byte(&e->out, '"');
    } else {
      refuse(e, -2, "table key must be a number or string");
    }
    bytes_append_byte(&e->out, ':');
    encode_value(e, depth);
    lua_pop(e->state, 1);
  }
  bytes_append_byte(&e->out, '}');
}

static void encode_table(encoder *e, int depth) {
  if (depth > e->settings->encode_depth_max || !lua_checkstack(e->state, 8)) {
    luaL_error(e->state, "Cannot serialise, excessive nesting (%d)", depth);
  }
  const int length = array_length(e);
  if (length <= 0) {
    encode_object(e, depth);
    return;
  }
  bytes_append_byte(&e->out, '[');
  for (int i = 1; i <= length; i++) {
    if (i > 1) bytes_append_byte(&e->out, ',');
    lua_rawgeti(e->state, -1, i);
    encode_value(e, depth);
    lua_pop(e->state, 1);
  }
  bytes_append_byte(&e->out, ']');
}

/* The value on the top; it stays. */
static void encode_value(encoder *e, int depth) {
  const int type = lua_type(e->state, -1);
  if (type == LUA_TSTRING) encode_text(e, -1);
  else if (type == LUA_TNUMBER) encode_number(e, -1);
  else if (type == LUA_TBOOLEAN && lua_toboolean(e->state, -1)) bytes_append(&e->out, "true", 4);
  else if (type == LUA_TBOOLEAN) bytes_append(&e->out, "false", 5);
  else if (type == LUA_TTABLE) encode_table(e, depth + 1);
  else if (type == LUA_TNIL || (type == LUA_TLIGHTUSERDATA && lua_touserdata(e->state, -1) == NULL)) bytes_append(&e->out, "null", 4);
  else refuse(e, -1, "type not supported");
}

int json_encode(lua_State *state) {
  luaL_argcheck(state, lua_gettop(state) == 1, 1, "expected 1 argument");
  encoder e = {.state = state, .settings = json_settings_of(state)};
  bytes_open(&e.out, state);
  lua_pushvalue(state, 1);
  encode_value(&e, 0);
  bytes_push(&e.out);
  return 1;
}

/* ---- settings: each function sets what it is given and returns what holds ---- */

static json_settings *begin_setting(lua_State *state, int arguments) {
  luaL_argcheck(state, lua_gettop(state) <= arguments, arguments + 1, "found too many arguments");
  lua_settop(state, arguments);
  return json_settings_of(state);
}

static void set_integer(lua_State *state, int index, int *setting, int least, int most) {
  if (!lua_isnil(state, index)) {
    const lua_Integer value = luaL_checkinteger(state, index);
    if (value < least || value > most) {
      luaL_argerror(state, 1, lua_pushfstring(state, "expected integer between %d and %d", least, most));
    }
    *setting = (int)value;
  }
  lua_pushinteger(state, *setting);
}

/* off, on (or false, true) and what more there is. */
static void set_choice(lua_State *state, int index, int *setting, const char *const *choices) {
  if (lua_isboolean(state, index)) *setting = lua_toboolean(state, index);
  else if (!lua_isnil(state, index)) *setting = luaL_checkoption(state, index, NULL, choices);
  if (*setting <= INVALID_ON) lua_pushboolean(state, *setting);
  else lua_pushstring(state, choices[*setting]);
}

static const char *const SWITCH[] = {"off", "on", NULL};

static int set_sparse_array(lua_State *state) {
  json_settings *settings = begin_setting(state, 3);
  set_choice(state, 1, &settings->sparse_convert, SWITCH);
  set_integer(state, 2, &settings->sparse_ratio, 0, INT_MAX);
  set_integer(state, 3, &settings->sparse_safe, 0, INT_MAX);
  return 3;
}

static int set_encode_max_depth(lua_State *state) {
  set_integer(state, 1, &begin_setting(state, 1)->encode_depth_max, 1, INT_MAX);
  return 1;
}

static int set_decode_max_depth(lua_State *state) {
  set_integer(state, 1, &begin_setting(state, 1)->decode_depth_max, 1, INT_MAX);
  return 1;
}

static int set_number_precision(lua_State *state) {
  set_integer(state, 1, &begin_setting(state, 1)->precision, 1, 14);
  return 1;
}

static int set_keep_buffer(lua_State *state) {
  set_choice(state, 1, &begin_setting(state, 1)->keeps_buffer, SWITCH);
  return 1;
}

static int set_encode_invalid_numbers(lua_State *state) {
  static const char *const choices[] = {"off", "on", "null", NULL};
  set_choice(state, 1, &begin_setting(state, 1)->encode_invalid, choices);
  return 1;
}

static int set_decode_invalid_numbers(lua_State *state) {
  set_choice(state, 1, &begin_setting(state, 1)->decode_invalid, SWITCH);
  return 1;
}

/* ---- the module ---- */

static int push_module(lua_State *state) {
  static const luaL_Reg functions[] = {
      {"encode", json_encode},
      {"decode", json_decode},
      {"encode_sparse_array", set_sparse_array},
      {"encode_max_depth", set_encode_max_depth},
      {"decode_max_depth", set_decode_max_depth},
      {"encode_number_precision", set_number_precision},
      {"encode_keep_buffer", set_keep_buffer},
      {"encode_invalid_numbers", set_encode_invalid_numbers},
      {"decode_invalid_numbers", set_decode_invalid_numbers},
      {"new", push_module},
  };
  static const json_settings defaults = {0, 2, 10, 1000, 1000, INVALID_OFF, INVALID_ON, 14, 1};
  lua_newtable(state);
  *(json_settings *)lua_newuserdata(state, sizeof(json_settings)) = defaults;
  for (size_t i = 0; i < COUNT_OF(functions); i++) {
    lua_pushvalue(state, -1);
    lua_pushcclosure(state, functions[i].func, 1);
    lua_setfield(state, -3, functions[i].name);
  }
  lua_pop(state, 1);
  lua_pushlightuserdata(state, NULL);
  lua_setfield(state, -2, "null");
  lua_pushliteral(state, "cjson");
  lua_setfield(state, -2, "_NAME");
  lua_pushliteral(state, "2.1.0");
  lua_setfield(state, -2, "_VERSION");
  return 1;
}

int open_cjson(lua_State *state) {
  push_module(state);
  lua_setglobal(state, "cjson");
  return 0;
}

/*
 * What the two halves of the `cjson` library share: its settings.
 *
 * A settings object belongs to one module table (cjson, or what cjson.new() gives) and is the first upvalue of its functions.
 */
#ifndef ENTRESOL_LUA_JSON_H
#define ENTRESOL_LUA_JSON_H

#include "lua_engine.h"

enum { INVALID_OFF = 0, INVALID_ON = 1, INVALID_NULL = 2 };

typedef struct json_settings {
  int sparse_convert, sparse_ratio, sparse_safe;
  int encode_depth_max, decode_depth_max;
  int encode_invalid, decode_invalid; /* INVALID_*: NaN and infinity */
  int precision;                      /* significant digits of numbers */
  int keeps_buffer;                   /* accepted; buffers are the collector's */
} json_settings;

static inline json_settings *json_settings_of(lua_State *state) { return lua_touserdata(state, lua_upvalueindex(1)); }

int json_encode(lua_State *state);
int json_decode(lua_State *state);

#endif

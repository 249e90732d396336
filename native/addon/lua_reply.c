/*
 * Between RESP and Lua values: what a command replied becomes a value, what a script returns becomes a reply.
 *
 *   integer -> number              number -> integer (cut)
 *   bulk -> string                 string -> bulk
 *   nil -> false (RESP2), nil      false, nil -> nil; true -> 1
 *   +OK -> {ok = 'OK'}             -ERR -> {err = 'ERR ...'}
 *   array -> table                 table -> array up to the first nil
 *   map, set, double, big number, verbatim string -> {map = {}}, {set = {}}, {double = n}, {big_number = ''}, {verbatim_string = {}}
 *
 * Invariant: the replies that are read here were written by our own reply writer; a reply that is written is well-formed to any depth.
 */
#include "lua_engine.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- RESP to Lua ---- */

typedef struct reader {
  const char *at, *end;
} reader;

/* The rest of the line; its length. Moves behind the line break. */
static const char *read_line(lua_State *state, reader *from, size_t *bytes) {
  const char *start = from->at;
  const char *stop = memchr(start, '\r', (size_t)(from->end - start));
  if (stop == NULL || stop + 2 > from->end) luaL_error(state, "incomplete reply of a command");
  from->at = stop + 2;
  *bytes = (size_t)(stop - start);
  return start;
}

/* As read_line, for a decimal number: most are short, and exact beyond 2^53 in the sense of a double. */
static long long read_integer(lua_State *state, reader *from) {
  size_t bytes;
  const char *line = read_line(state, from, &bytes);
  const bool is_negative = bytes > 0 && line[0] == '-';
  unsigned long long value = 0;
  for (size_t i = is_negative || (bytes > 0 && line[0] == '+') ? 1 : 0; i < bytes; i++) value = value * 10 + (unsigned)(line[i] - '0');
  return (long long)(is_negative ? 0 - value : value);
}

static const char *read_bytes(lua_State *state, reader *from, long long bytes) {
  if (bytes < 0 || from->end - from->at < bytes + 2) luaL_error(state, "incomplete reply of a command");
  const char *start = from->at;
  from->at += bytes + 2;
  return start;
}

static void read_value(lua_State *state, reader *from);

static void set_text(lua_State *state, const char *field, const char *text, size_t bytes) {
  lua_pushstring(state, field);
  lua_pushlstring(state, text, bytes);
  lua_rawset(state, -3);
}

static void read_error(lua_State *state, reader *from) {
  size_t bytes;
  const char *line = read_line(state, from, &bytes) - 1; /* with its '-' */
  redis_push_error(state, line, bytes + 1);
  lua_pushliteral(state, "ignore_error_stats_update");
  lua_pushboolean(state, 1);
  lua_rawset(state, -3);
}

static void read_array(lua_State *state, reader *from) {
  const long long count = read_integer(state, from);
  if (count < 0) {
    lua_pushboolean(state, 0);
    return;
  }
  lua_createtable(state, (int)count, 0);
  for (long long i = 1; i <= count; i++) {
    read_value(state, from);
    lua_rawseti(state, -2, (int)i);
  }
}

/* {map = {key = value}} or {set = {key = true}} */
static void read_keyed(lua_State *state, reader *from, const char *field, bool has_values) {
  const long long count = read_integer(state, from);
  lua_newtable(state);
  lua_pushstring(state, field);
  lua_createtable(state, 0, (int)count);
  for (long long i = 0; i < count; i++) {
    read_value(state, from);
    if (has_values) read_value(state, from);
    else lua_pushboolean(state, 1);
    /* Tables have no nil keys: such an element has no place in a script. */
    if (lua_isnil(state, -2)) lua_pop(state, 2);
    else lua_rawset(state, -3);
  }
  lua_rawset(state, -3);
}

static void read_verbatim(lua_State *state, reader *from) {
  const long long bytes = read_integer(state, from);
  const char *text = read_bytes(state, from, bytes);
  lua_newtable(state);
  lua_pushliteral(state, "verbatim_string");
  lua_newtable(state);
  set_text(state, "string", text + 4, (size_t)bytes - 4);
  set_text(state, "format", text, 3);
  lua_rawset(state, -3);
}

static void skip_attribute(lua_State *state, reader *from) {
  const long long pairs = read_integer(state, from);
  for (long long i = 0; i < pairs * 2; i++) {
    read_value(state, from);
    lua_pop(state, 1);
  }
  read_value(state, from);
}

static void read_value(lua_State *state, reader *from) {
  size_t bytes;
  const char *line;
  luaL_checkstack(state, 8, "reply of a command");
  if (from->at >= from->end) luaL_error(state, "incomplete reply of a command");
  switch (*from->at++) {
    case ':':
      lua_pushnumber(state, (lua_Number)read_integer(state, from));
      return;
    case '$': {
      const long long length = read_integer(state, from);
      if (length < 0) lua_pushboolean(state, 0);
      else lua_pushlstring(state, read_bytes(state, from, length), (size_t)length);
      return;
    }
    case '+':
      line = read_line(state, from, &bytes);
      lua_newtable(state);
      set_text(state, "ok", line, bytes);
      return;
    case '-':
      read_error(state, from);
      return;
    case '*':
    case '>':
      read_array(state, from);
      return;
    case '%':
      read_keyed(state, from, "map", true);
      return;
    case '~':
      read_keyed(state, from, "set", false);
      return;
    case '_':
      read_line(state, from, &bytes);
      lua_pushnil(state);
      return;
    case '#':
      line = read_line(state, from, &bytes);
      lua_pushboolean(state, bytes > 0 && line[0] == 't');
      return;
    case ',': {
      line = read_line(state, from, &bytes);
      char text[64];
      snprintf(text, sizeof text, "%.*s", (int)bytes, line);
      lua_newtable(state);
      lua_pushliteral(state, "double");
      lua_pushnumber(state, strtod(text, NULL));
      lua_rawset(state, -3);
      return;
    }
    case '(':
      line = read_line(state, from, &bytes);
      lua_newtable(state);
      set_text(state, "big_number", line, bytes);
      return;
    case '=':
      read_verbatim(state, from);
      return;
    case '|':
      skip_attribute(state, from);
      return;
    default:
      luaL_error(state, "unknown reply of a command");
  }
}

void reply_to_lua(lua_State *state, const uint8_t *reply, size_t bytes) {
  reader from = {(const char *)reply, (const char *)reply + bytes};
  read_value(state, &from);
}

/* ---- Lua to RESP ---- */

static void write_bytes(lua_engine *engine, const char *text, size_t bytes) {
  while (bytes > 0 && !engine->is_aborted) {
    if (engine->out_bytes == engine->data_bytes) {
      int32_t answer;
      const size_t full = engine->out_bytes;
      engine->out_bytes = 0;
      if (!engine_call_back(engine, CALLBACK_FLUSH, (int32_t)full, &answer)) return;
    }
    size_t part = engine->data_bytes - engine->out_bytes;
    if (part > bytes) part = bytes;
    memcpy(engine->data + engine->out_bytes, text, part);
    engine->out_bytes += part;
    text += part;
    bytes -= part;
  }
}

static void write_head(lua_engine *engine, char type, long long value) {
  char text[32];
  char *end = text + sizeof text, *at = end;
  *--at = '\n';
  *--at = '\r';
  unsigned long long rest = value < 0 ? 0 - (unsigned long long)value : (unsigned long long)value;
  do {
    *--at = (char)('0' + rest % 10);
    rest /= 10;
  } while (rest != 0);
  if (value < 0) *--at = '-';
  *--at = type;
  write_bytes(engine, at, (size_t)(end - at));
}

static void write_bulk(lua_engine *engine, const char *text, size_t bytes) {
  write_head(engine, '$', (long long)bytes);
  write_bytes(engine, text, bytes);
  write_bytes(engine, "\r\n", 2);
}

/* A line of text; line breaks within become blanks. */
/* With blanks for line breaks. */
static void write_flat(lua_engine *engine, const char *text, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    size_t part = done;
    while (part < bytes && text[part] != '\r' && text[part] != '\n') part++;
    write_bytes(engine, text + done, part - done);
    if (part < bytes) write_bytes(engine, " ", 1);
    done = part + 1;
  }
}

static void write_line(lua_engine *engine, char type, const char *text, size_t bytes) {
  write_bytes(engine, &type, 1);
  write_flat(engine, text, bytes);
  write_bytes(engine, "\r\n", 2);
}

static void write_nil(lua_engine *engine) {
  if (engine->client_resp > 2) write_bytes(engine, "_\r\n", 3);
  else write_bytes(engine, "$-1\r\n", 5);
}

static void write_count(lua_engine *engine, char type3, long long count, long long factor) {
  if (engine->client_resp > 2) write_head(engine, type3, count);
  else write_head(engine, '*', count * factor);
}

static void write_boolean(lua_engine *engine, bool value) {
  if (engine->words[ENGINE_SCRIPT_RESP] == 2) {
    if (value) write_bytes(engine, ":1\r\n", 4);
    else write_nil(engine);
  } else if (engine->client_resp > 2) {
    write_bytes(engine, value ? "#t\r\n" : "#f\r\n", 4);
  } else {
    write_bytes(engine, value ? ":1\r\n" : ":0\r\n", 4);
  }
}

static void write_double(lua_engine *engine, double value) {
  char text[64];
  const size_t bytes = format_number(value, text);
  if (engine->client_resp > 2) write_line(engine, ',', text, bytes);
  else write_bulk(engine, text, bytes);
}

/* Pushes the raw field when it has this type; else pushes nothing. */
static bool push_field(lua_State *state, const char *name, int type) {
  lua_pushstring(state, name);
  lua_rawget(state, -2);
  if (lua_type(state, -1) == type) return true;
  lua_pop(state, 1);
  return false;
}

static bool write_verbatim(lua_engine *engine, lua_State *state) {
  if (!push_field(state, "verbatim_string", LUA_TTABLE)) return false;
  bool is_written = false;
  if (push_field(state, "format", LUA_TSTRING)) {
    lua_insert(state, -2);
    if (push_field(state, "string", LUA_TSTRING)) {
      size_t bytes;
      const char *text = lua_tolstring(state, -1, &bytes);
      if (engine->client_resp > 2) {
        char format[5] = "   :";
        const char *given = lua_tostring(state, -3);
        for (int i = 0; i < 3 && given[i] != '\0'; i++) format[i] = given[i];
        write_head(engine, '=', (long long)bytes + 4);
        write_bytes(engine, format, 4);
        write_bytes(engine, text, bytes);
        write_bytes(engine, "\r\n", 2);
      } else {
        write_bulk(engine, text, bytes);
      }
      lua_pop(state, 1);
      is_written = true;
    }
    lua_pop(state, 1);
  }
  lua_pop(state, 1);
  return is_written;
}

/* The table on the top, whose keys (and values) are elements. */
static void write_keyed(lua_engine *engine, lua_State *state, char type, bool has_values) {
  long long count = 0;
  for (lua_pushnil(state); lua_next(state, -2); count++) lua_pop(state, 1);
  write_count(engine, type, count, has_values ? 2 : 1);
  lua_pushnil(state);
  while (lua_next(state, -2)) {
    lua_pushvalue(state, -2);
    lua_to_reply(engine, state);
    if (has_values) lua_to_reply(engine, state);
    else lua_pop(state, 1);
  }
}

static void write_array(lua_engine *engine, lua_State *state) {
  int count = 0;
  for (;; count++) {
    lua_rawgeti(state, -1, count + 1);
    const bool is_end = lua_isnil(state, -1);
    lua_pop(state, 1);
    if (is_end) break;
  }
  write_head(engine, '*', count);
  for (int i = 1; i <= count; i++) {
    lua_rawgeti(state, -1, i);
    lua_to_reply(engine, state);
  }
}

/* The string on the top: one line in RESP3, and the same text in RESP2. */
static void write_big_number(lua_engine *engine, lua_State *state) {
  size_t bytes;
  const char *text = lua_tolstring(state, -1, &bytes);
  if (engine->client_resp > 2) {
    write_line(engine, '(', text, bytes);
    return;
  }
  write_head(engine, '$', (long long)bytes);
  write_flat(engine, text, bytes);
  write_bytes(engine, "\r\n", 2);
}

static void write_table(lua_engine *engine, lua_State *state) {
  size_t bytes;
  const char *text;
  if (push_field(state, "err", LUA_TSTRING)) {
    text = lua_tolstring(state, -1, &bytes);
    write_line(engine, '-', text, strlen(text));
    lua_pop(state, 1);
  } else if (push_field(state, "ok", LUA_TSTRING)) {
    text = lua_tolstring(state, -1, &bytes);
    write_line(engine, '+', text, strlen(text));
    lua_pop(state, 1);
  } else if (push_field(state, "double", LUA_TNUMBER)) {
    write_double(engine, lua_tonumber(state, -1));
    lua_pop(state, 1);
  } else if (push_field(state, "big_number", LUA_TSTRING)) {
    write_big_number(engine, state);
    lua_pop(state, 1);
  } else if (write_verbatim(engine, state)) {
    return;
  } else if (push_field(state, "map", LUA_TTABLE)) {
    write_keyed(engine, state, '%', true);
    lua_pop(state, 1);
  } else if (push_field(state, "set", LUA_TTABLE)) {
    write_keyed(engine, state, '~', false);
    lua_pop(state, 1);
  } else {
    write_array(engine, state);
  }
}

/* Cut towards zero; what no integer can hold becomes the smallest one, as the hardware does it. */
static long long as_long(double value) {
  return value >= -9223372036854775808.0 && value < 9223372036854775808.0 ? (long long)value : LLONG_MIN;
}

void lua_to_reply(lua_engine *engine, lua_State *state) {
  if (!lua_checkstack(state, 10)) {
    static const char text[] = "ERR reached lua stack limit";
    write_line(engine, '-', text, sizeof text - 1);
    lua_pop(state, 1);
    return;
  }
  switch (lua_type(state, -1)) {
    case LUA_TSTRING: {
      size_t bytes;
      const char *text = lua_tolstring(state, -1, &bytes);
      write_bulk(engine, text, bytes);
      break;
    }
    case LUA_TBOOLEAN:
      write_boolean(engine, lua_toboolean(state, -1) != 0);
      break;
    case LUA_TNUMBER:
      write_head(engine, ':', as_long(lua_tonumber(state, -1)));
      break;
    case LUA_TTABLE:
      write_table(engine, state);
      break;
    default:
      write_nil(engine);
  }
  lua_pop(state, 1);
}

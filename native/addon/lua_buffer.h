/*
 * A byte string under construction, kept as userdata in one slot of the Lua stack: the collector frees it, whatever error unwinds.
 *
 * Invariant: `data` is the userdata at stack index `slot`; appending needs one free stack slot.
 */
#ifndef ENTRESOL_LUA_BUFFER_H
#define ENTRESOL_LUA_BUFFER_H

#include <lauxlib.h>
#include <lua.h>
#include <stdint.h>
#include <string.h>

typedef struct byte_string {
  lua_State *state;
  int slot;
  uint8_t *data;
  size_t used, capacity;
} byte_string;

static inline void bytes_open(byte_string *bytes, lua_State *state) {
  bytes->state = state;
  bytes->used = 0;
  bytes->capacity = 256;
  bytes->data = lua_newuserdata(state, bytes->capacity);
  bytes->slot = lua_gettop(state);
}

static inline uint8_t *bytes_reserve(byte_string *bytes, size_t more) {
  if (bytes->used + more > bytes->capacity) {
    size_t capacity = bytes->capacity;
    while (capacity < bytes->used + more) capacity *= 2;
    luaL_checkstack(bytes->state, 1, "byte string");
    uint8_t *grown = lua_newuserdata(bytes->state, capacity);
    memcpy(grown, bytes->data, bytes->used);
    lua_replace(bytes->state, bytes->slot);
    bytes->data = grown;
    bytes->capacity = capacity;
  }
  return bytes->data + bytes->used;
}

static inline void bytes_append(byte_string *bytes, const void *from, size_t count) {
  if (count == 0) return;
  memcpy(bytes_reserve(bytes, count), from, count);
  bytes->used += count;
}

static inline void bytes_append_byte(byte_string *bytes, int value) {
  *bytes_reserve(bytes, 1) = (uint8_t)value;
  bytes->used++;
}

static inline void bytes_push(const byte_string *bytes) {
  lua_pushlstring(bytes->state, (const char *)bytes->data, bytes->used);
}

#endif

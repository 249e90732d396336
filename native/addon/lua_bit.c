/*
 * The `bit` library of scripts: 32-bit operations with the results and names of Lua BitOp.
 *
 * Owns nothing. Invariant: arguments of any size wrap around to 32 bits, results are signed.
 */
#include "lua_engine.h"

#include <string.h>

/* Rounds to the nearest integer and keeps its low 32 bits: adding 2^52 + 2^51 moves them to the end of the mantissa. */
static uint32_t check_bits(lua_State *state, int index) {
  const double shifted = luaL_checknumber(state, index) + 6755399441055744.0;
  uint64_t pattern;
  memcpy(&pattern, &shifted, sizeof pattern);
  return (uint32_t)pattern;
}

static int push_bits(lua_State *state, uint32_t bits) {
  lua_pushnumber(state, (lua_Number)(int32_t)bits);
  return 1;
}

static int bit_tobit(lua_State *state) { return push_bits(state, check_bits(state, 1)); }
static int bit_bnot(lua_State *state) { return push_bits(state, ~check_bits(state, 1)); }
static int bit_bswap(lua_State *state) { return push_bits(state, __builtin_bswap32(check_bits(state, 1))); }

#define FOLD(name, operation)                                                          \
  static int bit_##name(lua_State *state) {                                            \
    uint32_t bits = check_bits(state, 1);                                              \
    for (int i = lua_gettop(state); i > 1; i--) bits = bits operation check_bits(state, i); \
    return push_bits(state, bits);                                                     \
  }
FOLD(band, &)
FOLD(bor, |)
FOLD(bxor, ^)

#define SHIFT(name, expression)                        \
  static int bit_##name(lua_State *state) {            \
    const uint32_t bits = check_bits(state, 1);        \
    const uint32_t n = check_bits(state, 2) & 31;      \
    return push_bits(state, (uint32_t)(expression));   \
  }
SHIFT(lshift, bits << n)
SHIFT(rshift, bits >> n)
SHIFT(arshift, (int32_t)bits >> n)
SHIFT(rol, bits << n | bits >> ((32 - n) & 31))
SHIFT(ror, bits >> n | bits << ((32 - n) & 31))

static int bit_tohex(lua_State *state) {
  uint32_t bits = check_bits(state, 1);
  int32_t digits = lua_isnone(state, 2) ? 8 : (int32_t)check_bits(state, 2);
  const char *alphabet = digits < 0 ? "0123456789ABCDEF" : "0123456789abcdef";
  if (digits < 0) digits = digits < -8 ? 8 : -digits;
  if (digits > 8) digits = 8;
  char text[8];
  for (int i = digits - 1; i >= 0; i--, bits >>= 4) text[i] = alphabet[bits & 15];
  lua_pushlstring(state, text, (size_t)digits);
  return 1;
}

int open_bit(lua_State *state) {
  static const luaL_Reg functions[] = {
      {"tobit", bit_tobit},   {"bnot", bit_bnot},     {"band", bit_band},       {"bor", bit_bor},
      {"bxor", bit_bxor},     {"lshift", bit_lshift}, {"rshift", bit_rshift},   {"arshift", bit_arshift},
      {"rol", bit_rol},       {"ror", bit_ror},       {"bswap", bit_bswap},     {"tohex", bit_tohex},
      {NULL, NULL},
  };
  lua_newtable(state);
  luaL_register(state, NULL, functions);
  lua_setglobal(state, "bit");
  return 0;
}

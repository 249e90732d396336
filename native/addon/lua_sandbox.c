/*
 * What scripts may see: a set of globals that reads like an ordinary table and cannot be changed.
 *
 * Lua 5.1 has no read-only tables. So each table that scripts share is kept behind an empty proxy: reads fall through by
 * __index, writes raise by __newindex, and the functions that go past metatables (rawset, next, getmetatable, table.insert ...)
 * are replaced by ones that know proxies. The invariant: no script gets hold of a table behind a proxy or of its metatable.
 *
 *   globals (proxy) --__index--> the real globals --__index--> error "nonexistent global variable"
 */
#include "lua_engine.h"

#include <string.h>

/* Keys, by address, of a proxy's metatable: the table behind, and what getmetatable shows. */
static const char BEHIND = 'b', SHOWN = 's';
/* Keys of the registry. */
static const char GLOBALS = 'g', REAL_GLOBALS = 'r', LOADING_GLOBALS = 'l';

static void push_key(lua_State *state, const char *key) { lua_pushlightuserdata(state, (void *)(uintptr_t)key); }

/* True when the value at `index` is a proxy; then the entry `key` of its metatable is pushed. */
static bool push_proxy_part(lua_State *state, int index, const char *key) {
  if (lua_type(state, index) != LUA_TTABLE || !lua_getmetatable(state, index)) return false;
  push_key(state, &BEHIND);
  lua_rawget(state, -2);
  const bool is_proxy = !lua_isnil(state, -1);
  lua_pop(state, 1);
  if (!is_proxy) {
    lua_pop(state, 1);
    return false;
  }
  push_key(state, key);
  lua_rawget(state, -2);
  lua_remove(state, -2);
  return true;
}

/* As Redis words it: with the place for a plain assignment, without for a function that would write. */
static void refuse_proxy(lua_State *state, int index) {
  if (!push_proxy_part(state, index, &BEHIND)) return;
  lua_pushliteral(state, "Attempt to modify a readonly table");
  lua_error(state);
}

static int refuse_write(lua_State *state) { return luaL_error(state, "Attempt to modify a readonly table"); }

static int missing_global(lua_State *state) {
  if (lua_gettop(state) != 2) return luaL_error(state, "Wrong number of arguments to luaProtectedTableError");
  if (!lua_isstring(state, 2)) return luaL_error(state, "Second argument to luaProtectedTableError must be a string or number");
  return luaL_error(state, "Script attempted to access nonexistent global variable '%s'", lua_tostring(state, 2));
}

/* Gives the table on the top a metatable whose __index raises. */
static void raise_on_missing(lua_State *state) {
  lua_newtable(state);
  lua_pushcfunction(state, missing_global);
  lua_setfield(state, -2, "__index");
  lua_setmetatable(state, -2);
}

void sandbox_protect(lua_State *state) {
  lua_newtable(state); /* table, proxy */
  lua_newtable(state); /* table, proxy, metatable */
  push_key(state, &BEHIND);
  lua_pushvalue(state, -4);
  lua_rawset(state, -3);
  lua_pushvalue(state, -3);
  lua_setfield(state, -2, "__index");
  lua_pushcfunction(state, refuse_write);
  lua_setfield(state, -2, "__newindex");
  if (lua_getmetatable(state, -3)) { /* what the table behind has, is shown, protected as well */
    sandbox_protect(state);
    push_key(state, &SHOWN);
    lua_insert(state, -2);
    lua_rawset(state, -3);
  }
  lua_setmetatable(state, -2);
  lua_replace(state, -2);
}

/* ---- the functions that would go past a metatable ---- */

static int guarded_rawset(lua_State *state) {
  refuse_proxy(state, 1);
  luaL_checktype(state, 1, LUA_TTABLE);
  luaL_checkany(state, 2);
  luaL_checkany(state, 3);
  lua_settop(state, 3);
  lua_rawset(state, 1);
  return 1;
}

static int guarded_rawget(lua_State *state) {
  luaL_checktype(state, 1, LUA_TTABLE);
  luaL_checkany(state, 2);
  lua_settop(state, 2);
  if (push_proxy_part(state, 1, &BEHIND)) lua_replace(state, 1);
  lua_rawget(state, 1);
  return 1;
}

static int guarded_next(lua_State *state) {
  luaL_checktype(state, 1, LUA_TTABLE);
  lua_settop(state, 2);
  if (push_proxy_part(state, 1, &BEHIND)) lua_replace(state, 1);
  if (lua_next(state, 1)) return 2;
  lua_pushnil(state);
  return 1;
}

static int guarded_pairs(lua_State *state) {
  luaL_checktype(state, 1, LUA_TTABLE);
  lua_pushvalue(state, lua_upvalueindex(1));
  lua_pushvalue(state, 1);
  lua_pushnil(state);
  return 3;
}

static int guarded_getmetatable(lua_State *state) {
  luaL_checkany(state, 1);
  if (push_proxy_part(state, 1, &SHOWN)) return 1;
  if (!lua_getmetatable(state, 1)) {
    lua_pushnil(state);
    return 1;
  }
  luaL_getmetafield(state, 1, "__metatable");
  return 1; /* the field, else the metatable */
}

static int guarded_setmetatable(lua_State *state) {
  const int type = lua_type(state, 2);
  refuse_proxy(state, 1);
  luaL_checktype(state, 1, LUA_TTABLE);
  luaL_argcheck(state, type == LUA_TNIL || type == LUA_TTABLE, 2, "nil or table expected");
  if (luaL_getmetafield(state, 1, "__metatable")) luaL_error(state, "cannot change a protected metatable");
  lua_settop(state, 2);
  /* A proxy serves as an empty metatable: what is behind it must not become one that getmetatable gives away. */
  lua_setmetatable(state, 1);
  return 1;
}

/* table.remove and table.sort find nothing to do in a proxy. */
static int guarded_insert(lua_State *state) {
  refuse_proxy(state, 1);
  return engine_of(state)->originals.insert(state);
}

static int guarded_foreach(lua_State *state) {
  if (push_proxy_part(state, 1, &BEHIND)) return luaL_error(state, "table.foreach of a shared table: use pairs");
  return engine_of(state)->originals.foreach(state);
}

/* The collector is the server's: a script that stopped it would let memory grow for all that come after. */
static int guarded_collectgarbage(lua_State *state) {
  static const char *const options[] = {"stop", "restart", "collect", "count", "step", "setpause", "setstepmul", NULL};
  const int option = luaL_checkoption(state, 1, "collect", options);
  const int argument = luaL_optint(state, 2, 0);
  if (option == 2) lua_gc(state, LUA_GCCOLLECT, 0);
  if (option == 3) {
    lua_pushnumber(state, lua_gc(state, LUA_GCCOUNT, 0) + lua_gc(state, LUA_GCCOUNTB, 0) / 1024.0);
  } else if (option == 4) {
    lua_pushboolean(state, lua_gc(state, LUA_GCSTEP, argument));
  } else {
    lua_pushnumber(state, 0);
  }
  return 1;
}

/* Errors of redis.call are tables; pcall has always given scripts the message instead. */
static int guarded_pcall(lua_State *state) {
  luaL_checkany(state, 1);
  const int failed = lua_pcall(state, lua_gettop(state) - 1, LUA_MULTRET, 0);
  if (failed != 0 && lua_istable(state, -1)) {
    lua_getfield(state, -1, "err");
    if (lua_isstring(state, -1)) lua_replace(state, -2);
    else lua_pop(state, 1);
  }
  lua_pushboolean(state, failed == 0);
  lua_insert(state, 1);
  return lua_gettop(state);
}

/* ---- compiling: source only ---- */

typedef struct source {
  const char *code;
  size_t bytes;
  bool starts_with_escape; /* a blank goes before it, and it is not byte code any more but a syntax error */
} source;

static const char *read_source(lua_State *state, void *data, size_t *bytes) {
  (void)state;
  source *from = data;
  if (from->starts_with_escape) {
    from->starts_with_escape = false;
    *bytes = 1;
    return " ";
  }
  *bytes = from->bytes;
  from->bytes = 0;
  return *bytes == 0 ? NULL : from->code;
}

int sandbox_compile(lua_State *state, const char *code, size_t bytes, const char *name) {
  source from = {code, bytes, bytes > 0 && code[0] == LUA_SIGNATURE[0]};
  return lua_load(state, read_source, &from, name);
}

static int finish_load(lua_State *state, int failed) {
  if (failed == 0) return 1;
  lua_pushnil(state);
  lua_insert(state, -2);
  return 2;
}

static int guarded_loadstring(lua_State *state) {
  size_t bytes;
  const char *code = luaL_checklstring(state, 1, &bytes);
  const char *name = luaL_optstring(state, 2, code);
  return finish_load(state, sandbox_compile(state, code, bytes, name));
}

/* load(function): the pieces are joined first, so that the first byte of all of them is looked at. */
static int guarded_load(lua_State *state) {
  const char *name = luaL_optstring(state, 2, "=(load)");
  luaL_checktype(state, 1, LUA_TFUNCTION);
  lua_settop(state, 2);
  luaL_Buffer buffer;
  luaL_buffinit(state, &buffer);
  for (;;) {
    lua_pushvalue(state, 1);
    lua_call(state, 0, 1);
    if (lua_isnil(state, -1)) break;
    if (!lua_isstring(state, -1)) return luaL_error(state, "reader function must return a string");
    if (lua_objlen(state, -1) == 0) break;
    luaL_addvalue(&buffer);
  }
  lua_pop(state, 1);
  luaL_pushresult(&buffer);
  size_t bytes;
  const char *code = lua_tolstring(state, -1, &bytes);
  return finish_load(state, sandbox_compile(state, code, bytes, name));
}

/* ---- errors get the place where they happened ---- */

int sandbox_error_handler(lua_State *state) {
  lua_Debug frame;
  bool is_known = lua_getstack(state, 1, &frame) && lua_getinfo(state, "nSl", &frame);
  if (is_known && strcmp(frame.what, "C") == 0) is_known = lua_getstack(state, 2, &frame) && lua_getinfo(state, "nSl", &frame);
  if (!lua_istable(state, 1)) {
    lua_newtable(state);
    if (lua_isstring(state, 1)) {
      lua_pushliteral(state, "ERR ");
      lua_pushvalue(state, 1);
      lua_concat(state, 2);
    } else if (lua_isboolean(state, 1)) {
      lua_pushfstring(state, "ERR %s", lua_toboolean(state, 1) ? "true" : "false");
    } else if (lua_isnil(state, 1)) {
      lua_pushliteral(state, "ERR nil");
    } else {
      lua_pushfstring(state, "ERR %s: %p", luaL_typename(state, 1), lua_topointer(state, 1));
    }
    lua_setfield(state, -2, "err");
  }
  if (is_known && !push_proxy_part(state, -1, &BEHIND)) {
    lua_pushliteral(state, "source");
    lua_pushstring(state, frame.source);
    lua_rawset(state, -3);
    lua_pushliteral(state, "line");
    lua_pushinteger(state, frame.currentline);
    lua_rawset(state, -3);
  }
  return 1;
}

/* ---- opening ---- */

static void open_library(lua_State *state, const char *name, lua_CFunction open) {
  lua_pushcfunction(state, open);
  lua_pushstring(state, name);
  lua_call(state, 1, 0);
}

static lua_CFunction replace_in_table(lua_State *state, const char *name, lua_CFunction replacement) {
  lua_getfield(state, -1, name);
  const lua_CFunction original = lua_tocfunction(state, -1);
  lua_pop(state, 1);
  lua_pushcfunction(state, replacement);
  lua_setfield(state, -2, name);
  return original;
}

static void guard_base(lua_State *state) {
  static const luaL_Reg replacements[] = {
      {"rawset", guarded_rawset},           {"rawget", guarded_rawget},
      {"next", guarded_next},               {"getmetatable", guarded_getmetatable},
      {"setmetatable", guarded_setmetatable}, {"collectgarbage", guarded_collectgarbage},
      {"pcall", guarded_pcall},             {"loadstring", guarded_loadstring},
      {"load", guarded_load},
  };
  /* The last three: later releases of Redis 7 withdrew them, as they lead out of the sandbox. */
  static const char *const removed[] = {"dofile", "loadfile", "print", "getfenv", "setfenv", "newproxy"};
  lua_pushvalue(state, LUA_GLOBALSINDEX);
  for (size_t i = 0; i < COUNT_OF(replacements); i++) replace_in_table(state, replacements[i].name, replacements[i].func);
  lua_getfield(state, -1, "next");
  lua_pushcclosure(state, guarded_pairs, 1);
  lua_setfield(state, -2, "pairs");
  for (size_t i = 0; i < COUNT_OF(removed); i++) {
    lua_pushnil(state);
    lua_setfield(state, -2, removed[i]);
  }
  lua_pop(state, 1);
}

static void guard_table(lua_State *state) {
  guarded_functions *originals = &engine_of(state)->originals;
  lua_getglobal(state, "table");
  originals->insert = replace_in_table(state, "insert", guarded_insert);
  originals->foreach = replace_in_table(state, "foreach", guarded_foreach);
  lua_pop(state, 1);
}

/* The same random numbers on every machine: a 48-bit linear congruential generator with the constants of POSIX drand48. */
static double next_random(lua_engine *engine) {
  engine->random = (engine->random * 0x5deece66dULL + 11) & 0xffffffffffffULL;
  const int32_t whole = (int32_t)(engine->random >> 17);
  return (double)(whole % INT32_MAX) / (double)INT32_MAX;
}

static int math_random(lua_State *state) {
  const double part = next_random(engine_of(state));
  switch (lua_gettop(state)) {
    case 0:
      lua_pushnumber(state, part);
      return 1;
    case 1: {
      const int upper = luaL_checkint(state, 1);
      luaL_argcheck(state, 1 <= upper, 1, "interval is empty");
      lua_pushnumber(state, (double)(long long)(part * upper) + 1);
      return 1;
    }
    case 2: {
      const int lower = luaL_checkint(state, 1), upper = luaL_checkint(state, 2);
      luaL_argcheck(state, lower <= upper, 2, "interval is empty");
      lua_pushnumber(state, (double)(long long)(part * ((double)upper - lower + 1)) + lower);
      return 1;
    }
    default:
      return luaL_error(state, "wrong number of arguments");
  }
}

static int math_randomseed(lua_State *state) {
  const int seed = luaL_checkint(state, 1);
  engine_of(state)->random = (uint64_t)(uint32_t)seed << 16 | 0x330e;
  return 0;
}

static void replace_random(lua_State *state) {
  engine_of(state)->random = 0x1234abcd330eULL;
  lua_getglobal(state, "math");
  lua_pushcfunction(state, math_random);
  lua_setfield(state, -2, "random");
  lua_pushcfunction(state, math_randomseed);
  lua_setfield(state, -2, "randomseed");
  lua_pop(state, 1);
}

/* Strings have one metatable for all: what it shows must be protected, too. */
static void protect_string_metatable(lua_State *state) {
  lua_pushliteral(state, "");
  lua_getmetatable(state, -1);
  lua_getglobal(state, "string");
  lua_setfield(state, -2, "__index");
  lua_newtable(state);
  lua_getglobal(state, "string");
  lua_setfield(state, -2, "__index");
  sandbox_protect(state);
  lua_setfield(state, -2, "__metatable");
  lua_pop(state, 2);
}

static void register_value(lua_State *state, const char *key) { /* pops the value */
  push_key(state, key);
  lua_insert(state, -2);
  lua_rawset(state, LUA_REGISTRYINDEX);
}

static void push_registered(lua_State *state, const char *key) {
  push_key(state, key);
  lua_rawget(state, LUA_REGISTRYINDEX);
}

static int open_protected(lua_State *state) {
  static const char *const shared[] = {"string", "table", "math", "coroutine", "bit", "struct", "cjson", "cmsgpack", "redis"};
  lua_engine *engine = engine_of(state);
  open_library(state, "", luaopen_base);
  open_library(state, LUA_TABLIBNAME, luaopen_table);
  open_library(state, LUA_STRLIBNAME, luaopen_string);
  open_library(state, LUA_MATHLIBNAME, luaopen_math);
  open_library(state, "bit", open_bit);
  open_library(state, "struct", open_struct);
  open_library(state, "cjson", open_cjson);
  open_library(state, "cmsgpack", open_cmsgpack);
  guard_base(state);
  guard_table(state);
  replace_random(state);
  redis_library_open(state, false);
  lua_setglobal(state, "redis");
  for (size_t i = 0; i < COUNT_OF(shared); i++) {
    lua_getglobal(state, shared[i]);
    sandbox_protect(state);
    lua_setglobal(state, shared[i]);
  }
  protect_string_metatable(state);

  lua_pushvalue(state, LUA_GLOBALSINDEX);
  raise_on_missing(state);
  lua_pushvalue(state, -1);
  register_value(state, &REAL_GLOBALS);
  sandbox_protect(state);
  lua_pushvalue(state, -1);
  lua_setglobal(state, "_G");
  lua_pushvalue(state, -1);
  register_value(state, &GLOBALS);
  lua_replace(state, LUA_GLOBALSINDEX);

  if (engine->for_functions) {
    lua_newtable(state);
    redis_library_open(state, true);
    raise_on_missing(state);
    sandbox_protect(state);
    lua_setfield(state, -2, "redis");
    raise_on_missing(state);
    register_value(state, &LOADING_GLOBALS);
  }
  return 0;
}

bool sandbox_open(lua_engine *engine) { return lua_cpcall(engine->state, open_protected, NULL) == 0; }

void sandbox_push_environment(lua_State *state) { push_registered(state, &GLOBALS); }

void sandbox_select_globals(lua_engine *engine, bool for_loading) {
  lua_State *state = engine->state;
  push_registered(state, &GLOBALS);
  lua_getmetatable(state, -1);
  push_registered(state, for_loading ? &LOADING_GLOBALS : &REAL_GLOBALS);
  lua_setfield(state, -2, "__index");
  lua_pop(state, 2);
}

void sandbox_set_global(lua_State *state, const char *name) {
  push_registered(state, &REAL_GLOBALS);
  lua_insert(state, -2);
  lua_pushstring(state, name);
  lua_insert(state, -2);
  lua_rawset(state, -3);
  lua_pop(state, 1);
}

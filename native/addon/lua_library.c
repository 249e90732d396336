/*
 * Libraries of functions: runs a library's code, which registers functions, and gives JavaScript the list of them.
 *
 * While a library loads it sees nothing but redis.register_function and redis.log. The invariant: a library that fails to load leaves no
 * function behind.
 */
#include "lua_engine.h"

#include <string.h>
#include <strings.h>

static const char LOADED = 'L';

enum { LOAD_LIMIT_MS = 500 };

static const char *const FLAG_NAMES[] = {"no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"};

/* What is known of a function while its arguments are read. Stack indices, 0 = not given. */
typedef struct registration {
  int name, description, callback;
  int flags; /* bit i: FLAG_NAMES[i] */
} registration;

static bool read_flags(lua_State *state, int index, int *flags) {
  for (int i = 1;; i++) {
    lua_pushinteger(state, i);
    lua_gettable(state, index);
    if (lua_isnil(state, -1)) {
      lua_pop(state, 1);
      return true;
    }
    const char *text = lua_tostring(state, -1);
    size_t flag = 0;
    while (text != NULL && flag < COUNT_OF(FLAG_NAMES) && strcasecmp(text, FLAG_NAMES[flag]) != 0) flag++;
    lua_pop(state, 1);
    if (text == NULL || flag == COUNT_OF(FLAG_NAMES)) return false;
    *flags |= 1 << flag;
  }
}

/* Each value stays on the stack where `into` says. Returns what is wrong, or NULL. */
static const char *read_named(lua_State *state, registration *into) {
  if (!lua_istable(state, 1)) {
    return "calling redis.register_function with a single argument is only applicable to Lua table (representing named arguments).";
  }
  lua_settop(state, 4); /* room for name, description, callback */
  for (lua_pushnil(state); lua_next(state, 1); lua_pop(state, 1)) {
    const int value = lua_gettop(state);
    if (!lua_isstring(state, -2)) return "named argument key given to redis.register_function is not a string";
    /* lua_tostring would turn a number in place, and lua_next would not find it again. */
    const char *key = lua_type(state, -2) == LUA_TSTRING ? lua_tostring(state, -2) : "";
    if (strcasecmp(key, "function_name") == 0) {
      if (!lua_isstring(state, value)) return "function_name argument given to redis.register_function must be a string";
      lua_pushvalue(state, value);
      lua_replace(state, into->name = 2);
    } else if (strcasecmp(key, "description") == 0) {
      if (!lua_isstring(state, value)) return "description argument given to redis.register_function must be a string";
      lua_pushvalue(state, value);
      lua_replace(state, into->description = 3);
    } else if (strcasecmp(key, "callback") == 0) {
      if (!lua_isfunction(state, value)) return "callback argument given to redis.register_function must be a function";
      lua_pushvalue(state, value);
      lua_replace(state, into->callback = 4);
    } else if (strcasecmp(key, "flags") == 0) {
      if (!lua_istable(state, value)) {
        return "flags argument to redis.register_function must be a table representing function flags";
      }
      if (!read_flags(state, value, &into->flags)) return "unknown flag given";
    } else {
      return "unknown argument given to redis.register_function";
    }
  }
  if (into->name == 0) return "redis.register_function must get a function name argument";
  if (into->callback == 0) return "redis.register_function must get a callback argument";
  return NULL;
}

static const char *read_positional(lua_State *state, registration *into) {
  if (!lua_isstring(state, 1)) return "first argument to redis.register_function must be a string";
  if (!lua_isfunction(state, 2)) return "second argument to redis.register_function must be a function";
  into->name = 1;
  into->callback = 2;
  return NULL;
}

static bool is_name(const char *text, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) {
    const char c = text[i];
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_')) return false;
  }
  return bytes > 0;
}

static void push_loaded(lua_State *state) {
  lua_pushlightuserdata(state, (void *)(uintptr_t)&LOADED);
  lua_rawget(state, LUA_REGISTRYINDEX);
}

/* loaded[name] = {callback, description, flags} */
static void keep(lua_State *state, const registration *given) {
  push_loaded(state);
  lua_pushvalue(state, given->name);
  lua_tostring(state, -1); /* a number serves as a name */
  lua_createtable(state, 3, 0);
  lua_pushvalue(state, given->callback);
  lua_rawseti(state, -2, 1);
  if (given->description != 0) {
    lua_pushvalue(state, given->description);
    lua_rawseti(state, -2, 2);
  }
  lua_pushinteger(state, given->flags);
  lua_rawseti(state, -2, 3);
  lua_rawset(state, -3);
}

int library_register_function(lua_State *state) {
  if (!engine_of(state)->is_loading) return redis_raise(state, "redis.register_function can only be called on FUNCTION LOAD command");
  const int count = lua_gettop(state);
  if (count < 1 || count > 2) return redis_raise(state, "wrong number of arguments to redis.register_function");
  registration given = {0};
  const char *problem = count == 1 ? read_named(state, &given) : read_positional(state, &given);
  if (problem != NULL) return redis_raise(state, problem);
  size_t bytes;
  lua_pushvalue(state, given.name);
  const char *name = lua_tolstring(state, -1, &bytes);
  if (!is_name(name, bytes)) {
    return redis_raise(state, "Library names can only contain letters, numbers, or underscores(_) and must be at least one character long");
  }
  push_loaded(state);
  lua_pushvalue(state, -2);
  lua_rawget(state, -2);
  if (!lua_isnil(state, -1)) return redis_raise(state, "Function already exists in the library");
  keep(state, &given);
  return 0;
}

/* ---- load(code, skipped, limit): an array of [name, description, flags, id], or the error as a string ---- */

typedef struct load_call {
  lua_engine *engine;
  const char *code;
  size_t bytes;
  bool is_compiled;
} load_call;

static int load_protected(lua_State *state) {
  load_call *call = lua_touserdata(state, 1);
  lua_pushlightuserdata(state, (void *)(uintptr_t)&LOADED);
  lua_newtable(state);
  lua_rawset(state, LUA_REGISTRYINDEX);
  sandbox_push_environment(state);
  lua_replace(state, LUA_GLOBALSINDEX);
  if (sandbox_compile(state, call->code, call->bytes, "@user_function") != 0) return lua_error(state);
  call->is_compiled = true;
  lua_call(state, 0, 0);
  return 0;
}

/* Moves a loaded function to the table of functions that run() reads; returns its number. */
static int adopt(lua_State *state) {
  lua_rawgeti(state, -1, 1);
  push_functions(state);
  lua_insert(state, -2);
  const int id = luaL_ref(state, -2);
  lua_pop(state, 1);
  lua_pushvalue(state, -2); /* the name stands below the description */
  set_name(state, id);
  return id;
}

static napi_value describe(napi_env env, lua_State *state, int id) {
  size_t bytes;
  napi_value row, name, description, flags, number;
  const char *text = lua_tolstring(state, -2, &bytes);
  if (napi_create_array_with_length(env, 4, &row) != napi_ok || napi_create_string_latin1(env, text, bytes, &name) != napi_ok) return NULL;
  lua_rawgeti(state, -1, 2);
  text = lua_tolstring(state, -1, &bytes);
  const napi_status status = text == NULL ? napi_get_null(env, &description) : napi_create_string_latin1(env, text, bytes, &description);
  lua_rawgeti(state, -2, 3);
  flags = make_int32(env, (int32_t)lua_tointeger(state, -1));
  number = make_int32(env, id);
  lua_pop(state, 2);
  if (status != napi_ok || flags == NULL || number == NULL) return NULL;
  const bool is_set = napi_set_element(env, row, 0, name) == napi_ok && napi_set_element(env, row, 1, description) == napi_ok &&
                      napi_set_element(env, row, 2, flags) == napi_ok && napi_set_element(env, row, 3, number) == napi_ok;
  return is_set ? row : NULL;
}

static napi_value loaded_functions(napi_env env, lua_State *state) {
  napi_value rows;
  if (napi_create_array(env, &rows) != napi_ok) return throw_status(env);
  push_loaded(state);
  uint32_t count = 0;
  lua_pushnil(state);
  while (lua_next(state, -2)) {
    napi_value row = describe(env, state, adopt(state));
    if (row == NULL || napi_set_element(env, rows, count++, row) != napi_ok) {
      lua_settop(state, 0);
      return throw_status(env);
    }
    lua_pop(state, 1);
  }
  lua_settop(state, 0);
  return rows;
}

napi_value method_load_library(napi_env env, napi_callback_info info) {
  napi_value args[3];
  void *code;
  bool is_limited;
  int32_t skipped;
  lua_engine *engine = engine_enter(env, info, 3, args);
  load_call call = {.engine = engine};
  if (engine == NULL || !read_int32(env, args[1], &skipped) || !read_bool(env, args[2], &is_limited)) return NULL;
  if (napi_get_buffer_info(env, args[0], &code, &call.bytes) != napi_ok) return throw_status(env);
  if (skipped < 0 || (size_t)skipped > call.bytes) return throw_range(env, "load: more skipped than there is");
  call.code = (const char *)code + skipped;
  call.bytes -= (size_t)skipped;
  engine->is_loading = true;
  engine->is_aborted = false;
  sandbox_select_globals(engine, true);
  engine_start_clock(engine, is_limited ? LOAD_LIMIT_MS : 0);
  const int failed = lua_cpcall(engine->state, load_protected, &call);
  lua_sethook(engine->state, NULL, 0, 0);
  sandbox_select_globals(engine, false);
  engine->is_loading = false;
  if (failed == 0) return loaded_functions(env, engine->state);
  if (call.is_compiled && lua_isstring(engine->state, -1)) { /* errors of the running code carry a code, those of the compiler do not */
    lua_pushliteral(engine->state, "ERR ");
    lua_insert(engine->state, -2);
    lua_concat(engine->state, 2);
  }
  lua_pushstring(engine->state, call.is_compiled ? "Error registering functions: " : "Error compiling function: ");
  lua_insert(engine->state, -2);
  if (lua_istable(engine->state, -1)) {
    lua_getfield(engine->state, -1, "err");
    lua_replace(engine->state, -2);
  }
  if (lua_isstring(engine->state, -1)) lua_concat(engine->state, 2);
  return take_error(env, engine->state);
}

/* forget(id): the function of a library that is gone. */
napi_value method_forget(napi_env env, napi_callback_info info) {
  napi_value args[1];
  int32_t id;
  lua_engine *engine = engine_enter(env, info, 1, args);
  if (engine == NULL || !read_int32(env, args[0], &id)) return NULL;
  push_functions(engine->state);
  luaL_unref(engine->state, -1, id);
  lua_settop(engine->state, 0);
  return NULL;
}

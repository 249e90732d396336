/*
 * The `redis` table of scripts, and the way out of the interpreter: arguments to the data arena, callback, reply to Lua values.
 *
 * Error texts are Redis's. The invariant: an operation is never entered twice at once, and nothing of JavaScript is on the C stack when
 * an error is raised.
 */
#include "lua_engine.h"

#include <stdlib.h>
#include <string.h>

/* ---- errors as tables: {err = 'CODE text'} ---- */

int redis_push_error(lua_State *state, const char *text, size_t bytes) {
  lua_newtable(state);
  lua_pushliteral(state, "err");
  while (bytes > 0 && (text[bytes - 1] == '\r' || text[bytes - 1] == '\n')) bytes--;
  const bool has_code = bytes > 0 && text[0] == '-';
  if (has_code) {
    text++;
    bytes--;
  }
  if (has_code && memchr(text, ' ', bytes) != NULL) {
    lua_pushlstring(state, text, bytes);
  } else {
    lua_pushliteral(state, "ERR ");
    lua_pushlstring(state, text, bytes);
    lua_concat(state, 2);
  }
  lua_rawset(state, -3);
  return 1;
}

int redis_raise(lua_State *state, const char *text) {
  redis_push_error(state, text, strlen(text));
  return lua_error(state);
}

/* ---- into JavaScript ---- */

bool engine_call_back(lua_engine *engine, int callback, int32_t argument, int32_t *result) {
  napi_env env = engine->owner->env;
  napi_handle_scope scope;
  bool is_done = false;
  if (napi_open_handle_scope(env, &scope) == napi_ok) {
    napi_value function, receiver, answer;
    engine->words[ENGINE_FLUSHED] = argument;
    is_done = napi_get_reference_value(env, engine->callbacks[callback], &function) == napi_ok &&
              napi_get_undefined(env, &receiver) == napi_ok &&
              napi_call_function(env, receiver, function, 0, NULL, &answer) == napi_ok &&
              napi_get_value_int32(env, answer, result) == napi_ok;
    napi_close_handle_scope(env, scope);
  }
  if (!is_done) engine->is_aborted = true;
  return is_done;
}

/* JavaScript threw, or the thread is being ended: from here on every line raises again, so that no pcall holds it up. */
static void raise_on_each_line(lua_State *state, lua_Debug *frame) {
  (void)frame;
  luaL_error(state, "the script was aborted");
}

static int raise_aborted(lua_State *state) {
  lua_sethook(state, raise_on_each_line, LUA_MASKLINE | LUA_MASKCOUNT, 1);
  return luaL_error(state, "the script was aborted");
}

/* Room for `bytes` in the data arena; false = no memory. */
static bool reserve_data(lua_engine *engine, size_t bytes) {
  if (bytes <= engine->data_bytes) return true;
  if (bytes > ARENA_BYTES_MAX) return false;
  size_t wanted = engine->data_bytes;
  while (wanted < bytes) wanted *= 2;
  const int32_t grown = instance_grow(engine->owner, engine->data_arena, wanted);
  if (grown < 0) return false;
  engine->data_arena = grown;
  engine->data_bytes = wanted;
  engine->data = arena_at(grown, 0, (int64_t)wanted);
  engine->words[ENGINE_DATA_ARENA] = grown;
  return true;
}

/* Copies the arguments on the stack to the data arena. NULL, or what is wrong with them. */
static const char *collect_arguments(lua_State *state, lua_engine *engine) {
  const int count = lua_gettop(state);
  if (count == 0) return "Please specify at least one argument for this redis lib call";
  if (count > ENGINE_ARGUMENTS_MAX) return "too many arguments";
  size_t used = 0;
  for (int i = 0; i < count; i++) {
    char number[64];
    const char *text;
    size_t bytes;
    const int type = lua_type(state, i + 1);
    if (type == LUA_TNUMBER) {
      const double value = lua_tonumber(state, i + 1);
      long long integer;
      bytes = as_integer(value, &integer) ? format_number((double)(integer == 0 ? 0 : integer), number) : format_number(value, number);
      text = number;
    } else if (type == LUA_TSTRING) {
      text = lua_tolstring(state, i + 1, &bytes);
    } else {
      return "Lua redis lib command arguments must be strings or integers";
    }
    if (!reserve_data(engine, used + bytes)) return "not enough memory for the arguments of the command";
    memcpy(engine->data + used, text, bytes);
    engine->words[ENGINE_ARGUMENTS + i * 2] = (int32_t)used;
    engine->words[ENGINE_ARGUMENTS + i * 2 + 1] = (int32_t)bytes;
    used += bytes;
  }
  engine->words[ENGINE_COUNT] = count;
  return NULL;
}

/* The reply, wherever it lies: in the reply arena, or (long ones) joined in the spill. */
static const uint8_t *whole_reply(lua_engine *engine, size_t in_arena, size_t *bytes) {
  if (engine->spill_bytes == 0) {
    *bytes = in_arena;
    return engine->reply;
  }
  if (engine->spill_bytes + in_arena > engine->spill_capacity) {
    uint8_t *grown = realloc(engine->spill, engine->spill_bytes + in_arena);
    if (grown == NULL) return NULL;
    engine->spill = grown;
    engine->spill_capacity = engine->spill_bytes + in_arena;
  }
  memcpy(engine->spill + engine->spill_bytes, engine->reply, in_arena);
  *bytes = engine->spill_bytes + in_arena;
  return engine->spill;
}

int redis_call_operation(lua_State *state, int operation, bool raises) {
  lua_engine *engine = engine_of(state);
  if (engine->is_aborted) return raise_aborted(state);
  if (!engine->is_running) return luaL_error(state, "redis.call outside a script");
  if (engine->is_calling) {
    return redis_raise(state, "luaRedisGenericCommand() recursive call detected. Are you doing funny stuff with Lua debug hooks?");
  }
  const char *problem = collect_arguments(state, engine);
  lua_settop(state, 0);
  if (problem != NULL) {
    redis_push_error(state, problem, strlen(problem));
    return raises ? lua_error(state) : 1;
  }
  engine->words[ENGINE_OPERATION] = operation;
  engine->spill_bytes = 0;
  engine->is_calling = true;
  int32_t answer;
  const bool is_done = engine_call_back(engine, CALLBACK_CALL, 0, &answer);
  engine->is_calling = false;
  if (!is_done) return raise_aborted(state);
  if (operation == OPERATION_MAY_CALL) {
    if (answer < 0) return redis_raise(state, "Invalid command passed to redis.acl_check_cmd()");
    lua_pushboolean(state, answer != 0);
    return 1;
  }
  size_t bytes;
  const uint8_t *reply = whole_reply(engine, (size_t)answer, &bytes);
  if (reply == NULL) return luaL_error(state, "not enough memory");
  const bool is_error = bytes > 0 && reply[0] == '-';
  reply_to_lua(state, reply, bytes);
  return raises && is_error ? lua_error(state) : 1;
}

/* ---- the functions ---- */

static int redis_call(lua_State *state) { return redis_call_operation(state, OPERATION_CALL, true); }
static int redis_pcall(lua_State *state) { return redis_call_operation(state, OPERATION_CALL, false); }
static int redis_acl_check_cmd(lua_State *state) { return redis_call_operation(state, OPERATION_MAY_CALL, true); }

static int redis_error_reply(lua_State *state) {
  if (lua_gettop(state) != 1 || lua_type(state, 1) != LUA_TSTRING) {
    static const char text[] = "wrong number or type of arguments";
    return redis_push_error(state, text, sizeof text - 1);
  }
  if (*lua_tostring(state, 1) != '-') {
    lua_pushliteral(state, "-");
    lua_insert(state, 1);
    lua_concat(state, 2);
  }
  /* Redis takes the message to its first zero byte. */
  const char *text = lua_tostring(state, 1);
  return redis_push_error(state, text, strlen(text));
}

static int redis_status_reply(lua_State *state) {
  if (lua_gettop(state) != 1 || lua_type(state, 1) != LUA_TSTRING) {
    static const char text[] = "wrong number or type of arguments";
    return redis_push_error(state, text, sizeof text - 1);
  }
  lua_newtable(state);
  lua_pushvalue(state, 1);
  lua_setfield(state, -2, "ok");
  return 1;
}

static int redis_sha1hex(lua_State *state) {
  if (lua_gettop(state) != 1) return redis_raise(state, "wrong number of arguments");
  size_t bytes = 0;
  const char *text = lua_tolstring(state, 1, &bytes);
  char hex[41];
  sha1_hex((const uint8_t *)text, text == NULL ? 0 : bytes, hex);
  lua_pushlstring(state, hex, 40);
  return 1;
}

static int redis_log(lua_State *state) {
  const int count = lua_gettop(state);
  if (count < 2) return redis_raise(state, "redis.log() requires two arguments or more.");
  if (!lua_isnumber(state, 1)) return redis_raise(state, "First argument must be a number (log level).");
  const int level = (int)lua_tonumber(state, 1);
  if (level < 0 || level > 3) return redis_raise(state, "Invalid debug level.");
  lua_engine *engine = engine_of(state);
  if (engine->is_aborted) return raise_aborted(state);
  luaL_Buffer buffer;
  luaL_buffinit(state, &buffer);
  for (int i = 2; i <= count; i++) {
    if (i > 2 && lua_isstring(state, i)) luaL_addchar(&buffer, ' ');
    size_t bytes;
    const char *text = lua_isstring(state, i) ? lua_tolstring(state, i, &bytes) : NULL;
    if (text != NULL) luaL_addlstring(&buffer, text, bytes);
  }
  luaL_pushresult(&buffer);
  size_t bytes;
  const char *text = lua_tolstring(state, -1, &bytes);
  if (!reserve_data(engine, bytes)) return luaL_error(state, "not enough memory");
  memcpy(engine->data, text, bytes);
  engine->words[ENGINE_OPERATION] = OPERATION_LOG;
  engine->words[ENGINE_LEVEL] = level;
  engine->words[ENGINE_COUNT] = 1;
  engine->words[ENGINE_ARGUMENTS] = 0;
  engine->words[ENGINE_ARGUMENTS + 1] = (int32_t)bytes;
  int32_t answer;
  return engine_call_back(engine, CALLBACK_CALL, 0, &answer) ? 0 : raise_aborted(state);
}

static int redis_setresp(lua_State *state) {
  if (lua_gettop(state) != 1) return redis_raise(state, "redis.setresp() requires one argument.");
  const int version = (int)lua_tonumber(state, 1);
  if (version != 2 && version != 3) return redis_raise(state, "RESP version must be 2 or 3.");
  engine_of(state)->words[ENGINE_SCRIPT_RESP] = version;
  return 0;
}

/* What a script changes is always recorded as its effects: choosing where they go has no meaning here, wrong values have. */
static int redis_set_repl(lua_State *state) {
  if (lua_gettop(state) != 1) return redis_raise(state, "redis.set_repl() requires one argument.");
  if (((int)lua_tonumber(state, 1) & ~3) != 0) {
    return redis_raise(state, "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.");
  }
  return 0;
}

static int redis_replicate_commands(lua_State *state) {
  lua_pushboolean(state, 1);
  return 1;
}

/* There is no debugger: as in Redis outside a debugging session. */
static int redis_breakpoint(lua_State *state) {
  lua_pushboolean(state, 0);
  return 1;
}

static int redis_debug(lua_State *state) {
  (void)state;
  return 0;
}

void redis_library_open(lua_State *state, bool for_loading) {
  static const luaL_Reg running[] = {
      {"call", redis_call},           {"pcall", redis_pcall},       {"acl_check_cmd", redis_acl_check_cmd},
      {"setresp", redis_setresp},     {"sha1hex", redis_sha1hex},   {"error_reply", redis_error_reply},
      {"status_reply", redis_status_reply}, {"set_repl", redis_set_repl}, {NULL, NULL},
  };
  static const luaL_Reg single[] = {
      {"replicate_commands", redis_replicate_commands}, {"breakpoint", redis_breakpoint}, {"debug", redis_debug}, {NULL, NULL},
  };
  static const struct {
    const char *name;
    int value;
  } constants[] = {{"REPL_NONE", 0}, {"REPL_AOF", 1}, {"REPL_SLAVE", 2}, {"REPL_REPLICA", 2}, {"REPL_ALL", 3}}, levels[] = {
      {"LOG_DEBUG", 0}, {"LOG_VERBOSE", 1}, {"LOG_NOTICE", 2}, {"LOG_WARNING", 3}};
  lua_newtable(state);
  if (for_loading) {
    lua_pushcfunction(state, library_register_function);
    lua_setfield(state, -2, "register_function");
  } else {
    luaL_register(state, NULL, running);
    if (!engine_of(state)->for_functions) luaL_register(state, NULL, single);
    for (size_t i = 0; i < COUNT_OF(constants); i++) {
      lua_pushinteger(state, constants[i].value);
      lua_setfield(state, -2, constants[i].name);
    }
  }
  for (size_t i = 0; i < COUNT_OF(levels); i++) {
    lua_pushinteger(state, levels[i].value);
    lua_setfield(state, -2, levels[i].name);
  }
  lua_pushcfunction(state, redis_log);
  lua_setfield(state, -2, "log");
  lua_pushstring(state, engine_of(state)->version);
  lua_setfield(state, -2, "REDIS_VERSION");
  lua_pushinteger(state, engine_of(state)->version_number);
  lua_setfield(state, -2, "REDIS_VERSION_NUM");
}

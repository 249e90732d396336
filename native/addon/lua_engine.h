/*
 * The Lua part of the addon: one engine is one Lua 5.1 interpreter of one thread, closed to everything but its arguments.
 *
 * An engine knows no commands and no keys. What a script asks for with redis.call goes as bytes to a JavaScript callback, and what comes back is
 * RESP. Three arenas are shared with JavaScript:
 *
 *   words   Int32: | header (ENGINE_*) | offset, length | offset, length ... of the arguments of a call
 *   data    arguments of a call; the script's reply on its way out, piece by piece. Grows: its number stands in the header
 *   reply   what the called command replied; more than fits is handed over with spill()
 *
 * The invariant: an error that unwinds the interpreter (lua_error is a longjmp) never crosses a Node-API frame, so callbacks
 * into JavaScript finish before an error is raised.
 */
#ifndef ENTRESOL_LUA_ENGINE_H
#define ENTRESOL_LUA_ENGINE_H

#include "addon.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

/* Words of the header; src/native/lua.ts has the same list. */
enum {
  ENGINE_OPERATION = 0,  /* what the call callback is asked for: OPERATION_* */
  ENGINE_COUNT = 1,      /* arguments of the call */
  ENGINE_DATA_ARENA = 2, /* the data arena's number now */
  ENGINE_SCRIPT_RESP = 3, /* redis.setresp */
  ENGINE_REPLY_FLAGS = 4, /* REPLY_* of the script's reply */
  ENGINE_LEVEL = 5,       /* redis.log */
  ENGINE_FLUSHED = 6,      /* bytes of the reply that flush is asked to take */
  ENGINE_ARGUMENTS = 16,
  ENGINE_ARGUMENTS_MAX = 8192, /* more than Lua's own limit for one call */
};

enum { OPERATION_CALL = 0, OPERATION_MAY_CALL = 1, OPERATION_LOG = 2 };

enum {
  REPLY_IS_ERROR = 1,
  REPLY_IS_COUNTED = 2, /* the error was a command's, which has counted it */
};

enum { CALLBACK_CALL, CALLBACK_INTERRUPT, CALLBACK_FLUSH, CALLBACKS };

typedef struct guarded_functions {
  lua_CFunction insert, foreach;
} guarded_functions;

typedef struct lua_engine {
  instance *owner;
  lua_State *state;
  bool for_functions; /* libraries of functions, else single scripts */
  bool is_running;
  bool is_loading;   /* a library registers its functions */
  bool is_calling;   /* inside redis.call */
  bool is_aborted;   /* JavaScript threw: only unwinding is left */
  bool is_unlimited; /* allocations of ours may pass the limit */
  size_t bytes, bytes_max;
  int32_t words_arena, data_arena, reply_arena;
  int32_t *words;
  uint8_t *data, *reply;
  size_t data_bytes, reply_bytes;
  uint8_t *spill;
  size_t spill_bytes, spill_capacity;
  size_t out_bytes; /* of the reply that is being written into data */
  int client_resp;
  double slow_at_ms; /* monotonic; from then on the interrupt callback is asked; 0 = never */
  uint64_t random;
  int gc_debt; /* runs since the last step of the collector */
  int version_number; /* of Redis, as scripts see it */
  char version[32];
  napi_ref callbacks[CALLBACKS];
  guarded_functions originals;
  struct lua_engine *next;
} lua_engine;

/* The engine of a state or of one of its coroutines. */
static inline lua_engine *engine_of(lua_State *state) {
  void *engine;
  lua_getallocf(state, &engine);
  return engine;
}

double monotonic_ms(void);

/* lua_sandbox.c */
bool sandbox_open(lua_engine *engine);
void sandbox_push_environment(lua_State *state);        /* the globals that scripts see */
void sandbox_select_globals(lua_engine *engine, bool for_loading); /* what a library sees while it loads */
void sandbox_set_global(lua_State *state, const char *name); /* pops the value */
/* Replaces the table on the top by one that reads the same and cannot be written. */
void sandbox_protect(lua_State *state);
/* luaL_loadbuffer that takes source only: byte code could do anything. */
int sandbox_compile(lua_State *state, const char *code, size_t bytes, const char *name);
int sandbox_error_handler(lua_State *state);

/* lua_redis.c */
void redis_library_open(lua_State *state, bool for_loading); /* pushes the table */
int redis_push_error(lua_State *state, const char *text, size_t bytes); /* {err = ...}; '-CODE text' or 'text' */
int redis_raise(lua_State *state, const char *text);
int redis_call_operation(lua_State *state, int operation, bool raises);
/* Runs a callback; on an exception marks the engine aborted. */
bool engine_call_back(lua_engine *engine, int callback, int32_t argument, int32_t *result);

/* lua_reply.c */
void reply_to_lua(lua_State *state, const uint8_t *reply, size_t bytes);
void lua_to_reply(lua_engine *engine, lua_State *state); /* pops the value */

/* lua_format.c */
size_t format_number(double value, char *out); /* as Redis prints one; at most 64 bytes */
bool as_integer(double value, long long *out);
void sha1_hex(const uint8_t *data, size_t bytes, char hex[41]);

napi_value take_error(napi_env env, lua_State *state);

/* lua_run.c */
int open_script_tables(lua_State *state);
napi_value method_find(napi_env env, napi_callback_info info);
napi_value method_define(napi_env env, napi_callback_info info);
napi_value method_run(napi_env env, napi_callback_info info);

/* lua_library.c */
napi_value method_load_library(napi_env env, napi_callback_info info);
napi_value method_forget(napi_env env, napi_callback_info info);
int library_register_function(lua_State *state);

/* Libraries of scripts; each pushes nothing and defines a global. */
int open_bit(lua_State *state);
int open_struct(lua_State *state);
int open_cjson(lua_State *state);
int open_cmsgpack(lua_State *state);

void push_functions(lua_State *state); /* the table of what run() can run, by number */
void set_name(lua_State *state, int id); /* of a function, for its errors; pops it */
lua_engine *engine_enter(napi_env env, napi_callback_info info, size_t count, napi_value *args);
void engine_start_clock(lua_engine *engine, double limit_ms);

#endif

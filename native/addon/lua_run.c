/*
 * Scripts by number, and running them.
 *
 * Owns nothing: what is compiled lives in tables of the interpreter's registry. The invariant: a script gets no more than its keys and
 * arguments, and what it leaves behind is a reply, or an exception of JavaScript that goes on.
 */
#include "lua_engine.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GC_RUNS = 50, SPILL_BYTES_KEPT = 1 << 20 };

/* Keys of the registry: compiled scripts and their names by number, numbers by body and by digest. */
static const char FUNCTIONS = 'f', NAMES = 'n', BODIES = 'b', DIGESTS = 'd', HANDLER = 'h';

static void push_registered(lua_State *state, const char *key) {
  lua_pushlightuserdata(state, (void *)(uintptr_t)key);
  lua_rawget(state, LUA_REGISTRYINDEX);
}

void set_name(lua_State *state, int id) { /* pops the name */
  push_registered(state, &NAMES);
  lua_insert(state, -2);
  lua_rawseti(state, -2, id);
  lua_pop(state, 1);
}

void push_functions(lua_State *state) { push_registered(state, &FUNCTIONS); }

int open_script_tables(lua_State *state) {
  static const char *const tables[] = {&FUNCTIONS, &NAMES, &BODIES, &DIGESTS};
  for (size_t i = 0; i < COUNT_OF(tables); i++) {
    lua_pushlightuserdata(state, (void *)(uintptr_t)tables[i]);
    lua_newtable(state);
    lua_rawset(state, LUA_REGISTRYINDEX);
  }
  lua_pushlightuserdata(state, (void *)(uintptr_t)&HANDLER);
  lua_pushcfunction(state, sandbox_error_handler);
  lua_rawset(state, LUA_REGISTRYINDEX);
  return 0;
}

/* ---- scripts by number ---- */

typedef struct find_call {
  const char *text;
  size_t bytes;
  const char *table;
  int32_t id;
} find_call;

static int find_protected(lua_State *state) {
  find_call *call = lua_touserdata(state, 1);
  push_registered(state, call->table);
  lua_pushlstring(state, call->text, call->bytes);
  lua_rawget(state, -2);
  call->id = lua_isnumber(state, -1) ? (int32_t)lua_tonumber(state, -1) : -1;
  return 0;
}

/* find(byDigest, arena, offset, bytes): the script's number or -1. */
napi_value method_find(napi_env env, napi_callback_info info) {
  napi_value args[4];
  int32_t word[4];
  lua_engine *engine = engine_enter(env, info, 4, args);
  if (engine == NULL) return NULL;
  for (int i = 0; i < 4; i++) {
    if (!read_int32(env, args[i], &word[i])) return NULL;
  }
  const uint8_t *text = arena_at(word[1], word[2], word[3]);
  if (text == NULL) return throw_range(env, "find: the range is outside its arena");
  find_call call = {(const char *)text, (size_t)word[3], word[0] != 0 ? &DIGESTS : &BODIES, -1};
  char digest[40];
  if (word[0] != 0) { /* digests come in either case */
    if (word[3] != sizeof digest) return make_int32(env, -1);
    for (size_t i = 0; i < sizeof digest; i++) digest[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] | 0x20 : text[i]);
    call.text = digest;
  }
  engine->is_unlimited = true;
  const int failed = lua_cpcall(engine->state, find_protected, &call);
  engine->is_unlimited = false;
  if (failed != 0) lua_settop(engine->state, 0);
  return make_int32(env, call.id);
}

typedef struct define_call {
  const char *code; /* the whole body */
  size_t bytes, skipped; /* the first line of flags is no Lua */
  const char *digest;
  int32_t id;
} define_call;

static int define_protected(lua_State *state) {
  const define_call *call = lua_touserdata(state, 1);
  sandbox_push_environment(state);
  lua_replace(state, LUA_GLOBALSINDEX);
  if (sandbox_compile(state, call->code + call->skipped, call->bytes - call->skipped, "@user_script") != 0) return lua_error(state);
  push_functions(state);
  lua_insert(state, -2);
  lua_rawseti(state, -2, call->id);
  lua_pushstring(state, call->digest);
  set_name(state, call->id);
  push_registered(state, &BODIES);
  lua_pushlstring(state, call->code, call->bytes);
  lua_pushinteger(state, call->id);
  lua_rawset(state, -3);
  push_registered(state, &DIGESTS);
  lua_pushstring(state, call->digest);
  lua_pushinteger(state, call->id);
  lua_rawset(state, -3);
  return 0;
}

/* The error on the top of the stack as a JavaScript string (bytes as latin1), and off the stack. */
napi_value take_error(napi_env env, lua_State *state) {
  size_t bytes;
  if (lua_istable(state, -1)) {
    lua_getfield(state, -1, "err");
    lua_replace(state, -2);
  }
  const char *text = lua_tolstring(state, -1, &bytes);
  if (text == NULL) {
    text = "unknown error";
    bytes = strlen(text);
  }
  napi_value value;
  const napi_status status = napi_create_string_latin1(env, text, bytes, &value);
  lua_settop(state, 0);
  return status == napi_ok ? value : throw_status(env);
}

/* define(id, digest, code, skipped): null, or the compiler's message. */
napi_value method_define(napi_env env, napi_callback_info info) {
  napi_value args[4];
  define_call call;
  void *code;
  int32_t skipped;
  char digest[64];
  size_t digest_bytes;
  lua_engine *engine = engine_enter(env, info, 4, args);
  if (engine == NULL || !read_int32(env, args[0], &call.id) || !read_int32(env, args[3], &skipped)) return NULL;
  if (napi_get_value_string_latin1(env, args[1], digest, sizeof digest, &digest_bytes) != napi_ok ||
      napi_get_buffer_info(env, args[2], &code, &call.bytes) != napi_ok) {
    return throw_status(env);
  }
  if (skipped < 0 || (size_t)skipped > call.bytes) return throw_range(env, "define: more skipped than there is");
  call.code = code;
  call.skipped = (size_t)skipped;
  call.digest = digest;
  if (lua_cpcall(engine->state, define_protected, &call) != 0) return take_error(env, engine->state);
  napi_value nothing;
  return napi_get_null(env, &nothing) == napi_ok ? nothing : throw_status(env);
}

/* ---- running ---- */

typedef struct run_call {
  lua_engine *engine;
  int32_t id;
  const int32_t *pairs; /* offset, length of each key, then of each argument */
  int32_t key_count, argument_count;
  const char *base;
  bool is_written;
} run_call;

static void push_texts(lua_State *state, const char *base, const int32_t *pairs, int32_t count) {
  lua_createtable(state, count, 0);
  for (int32_t i = 0; i < count; i++) {
    lua_pushlstring(state, base + pairs[i * 2], (size_t)pairs[i * 2 + 1]);
    lua_rawseti(state, -2, i + 1);
  }
}

/* The error on the top as a reply: with the script's name and the place, if they are known. */
static void write_failure(run_call *call, lua_State *state) {
  lua_engine *engine = call->engine;
  push_registered(state, &NAMES);
  lua_rawgeti(state, -1, call->id);
  lua_replace(state, -2);
  lua_insert(state, -2);
  const char *name = lua_tostring(state, -2);
  if (!lua_istable(state, -1)) {
    const char *text = lua_isstring(state, -1) ? lua_tostring(state, -1) : "execution failure";
    char cut[128];
    snprintf(cut, sizeof cut, "%.100s", text);
    lua_pushfstring(state, "ERR Error running script %s, %s", name, cut);
  } else {
    lua_getfield(state, -1, "ignore_error_stats_update");
    if (lua_toboolean(state, -1)) engine->words[ENGINE_REPLY_FLAGS] |= REPLY_IS_COUNTED;
    lua_getfield(state, -2, "err");
    lua_getfield(state, -3, "source");
    lua_getfield(state, -4, "line");
    const char *text = lua_isstring(state, -3) ? lua_tostring(state, -3) : "ERR unknown error";
    if (lua_isstring(state, -1) && lua_isstring(state, -2)) {
      lua_pushfstring(state, "%s script: %s, on %s:%s.", text, name, lua_tostring(state, -2), lua_tostring(state, -1));
    } else {
      lua_pushstring(state, text);
    }
  }
  lua_newtable(state);
  lua_insert(state, -2);
  lua_setfield(state, -2, "err");
}

static int run_protected(lua_State *state) {
  run_call *call = lua_touserdata(state, 1);
  lua_engine *engine = call->engine;
  sandbox_push_environment(state);
  lua_replace(state, LUA_GLOBALSINDEX);
  push_registered(state, &HANDLER);
  push_functions(state);
  lua_rawgeti(state, -1, call->id);
  lua_remove(state, -2);
  push_texts(state, call->base, call->pairs, call->key_count);
  if (!engine->for_functions) sandbox_set_global(state, "KEYS");
  push_texts(state, call->base, call->pairs + call->key_count * 2, call->argument_count);
  if (!engine->for_functions) sandbox_set_global(state, "ARGV");
  engine->is_unlimited = false;
  const int failed = lua_pcall(state, engine->for_functions ? 2 : 0, 1, 2);
  lua_sethook(state, NULL, 0, 0);
  engine->is_unlimited = true;
  if (engine->is_aborted) return 0;
  if (failed != 0) {
    write_failure(call, state);
  } else if (lua_istable(state, -1)) {
    lua_pushliteral(state, "ignore_error_stats_update");
    lua_rawget(state, -2);
    if (lua_toboolean(state, -1)) engine->words[ENGINE_REPLY_FLAGS] |= REPLY_IS_COUNTED;
    lua_pop(state, 1);
  }
  lua_to_reply(engine, state);
  call->is_written = true;
  return 0;
}

static void after_run(lua_engine *engine) {
  if (++engine->gc_debt >= GC_RUNS) {
    lua_gc(engine->state, LUA_GCSTEP, GC_RUNS);
    engine->gc_debt = 0;
  }
  if (engine->spill_capacity > SPILL_BYTES_KEPT) {
    free(engine->spill);
    engine->spill = NULL;
    engine->spill_capacity = 0;
  }
}

/*
 * run(id, pairs, first, keyCount, argumentCount, arena, clientResp, slowAfterMs): the bytes of the reply that stand in the data arena
 * when it is done (what did not fit was given to flush before).
 */
napi_value method_run(napi_env env, napi_callback_info info) {
  napi_value args[8];
  int32_t first, arena_number, client_resp;
  double slow_after_ms;
  size_t pair_words;
  napi_typedarray_type type;
  void *pairs;
  lua_engine *engine = engine_enter(env, info, 8, args);
  run_call call = {.engine = engine};
  if (engine == NULL || !read_int32(env, args[0], &call.id) || !read_int32(env, args[2], &first) ||
      !read_int32(env, args[3], &call.key_count) || !read_int32(env, args[4], &call.argument_count) ||
      !read_int32(env, args[5], &arena_number) || !read_int32(env, args[6], &client_resp) || !read_double(env, args[7], &slow_after_ms)) {
    return NULL;
  }
  if (napi_get_typedarray_info(env, args[1], &type, &pair_words, &pairs, NULL, NULL) != napi_ok || type != napi_int32_array) {
    return throw_type(env, "run: expected an Int32Array");
  }
  const int64_t words = ((int64_t)call.key_count + call.argument_count) * 2;
  if (first < 0 || call.key_count < 0 || call.argument_count < 0 || first + words > (int64_t)pair_words) {
    return throw_range(env, "run: arguments outside the array");
  }
  if (engine->is_running) return throw_coded(env, "EBUSY", -EBUSY, "lua", NULL, "the engine runs a script already");
  call.pairs = (const int32_t *)pairs + first;
  for (int64_t i = 0; i < words; i += 2) {
    if (arena_at(arena_number, call.pairs[i], call.pairs[i + 1]) == NULL) return throw_range(env, "run: an argument is outside its arena");
  }
  call.base = (const char *)arena_at(arena_number, 0, 0);
  engine->client_resp = client_resp;
  engine->words[ENGINE_SCRIPT_RESP] = 2;
  engine->words[ENGINE_REPLY_FLAGS] = 0;
  engine->out_bytes = 0;
  engine->is_running = engine->is_unlimited = true;
  engine->is_aborted = engine->is_calling = false;
  engine_start_clock(engine, slow_after_ms);
  const int failed = lua_cpcall(engine->state, run_protected, &call);
  lua_sethook(engine->state, NULL, 0, 0);
  lua_settop(engine->state, 0);
  engine->is_running = engine->is_unlimited = false;
  if (!engine->is_aborted) after_run(engine);
  bool is_pending = false;
  napi_is_exception_pending(env, &is_pending);
  if (is_pending) return NULL;
  if (engine->is_aborted || failed != 0 || !call.is_written) return throw_coded(env, "ECANCELED", -ECANCELED, "lua", NULL, "the script was aborted");
  return make_int32(env, (int32_t)engine->out_bytes);
}

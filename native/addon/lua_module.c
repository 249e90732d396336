/*
 * Lua as JavaScript sees it: createLua and the methods of an engine.
 *
 * Owns the engines of each environment; a closed one stays as a shell until the environment ends, so that a late call is an error and
 * not a crash. The invariant: the interpreter is entered through lua_cpcall or lua_pcall only, so no error of Lua leaves it.
 */
#include "lua_engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * Debian's static library is built without -fPIC: its references to these three variables of the C library cannot be resolved in a
 * shared object. The linker's --wrap turns them to these; nothing that uses them is within a script's reach.
 */
extern FILE *__real_stdin, *__real_stdout, *__real_stderr;
__attribute__((visibility("hidden"))) FILE *__wrap_stdin, *__wrap_stdout, *__wrap_stderr;

enum { DATA_BYTES = 64 << 10, REPLY_BYTES = 256 << 10, HOOK_INSTRUCTIONS = 100000, GC_RUNS = 50 };
enum { WORDS_BYTES = (ENGINE_ARGUMENTS + ENGINE_ARGUMENTS_MAX * 2) * 4 };
/* A data arena that one large command has made is given back after the script. */
enum { DATA_BYTES_KEPT = 1 << 20 };

/* Keys of the registry: compiled scripts and their names by number, numbers by body and by digest. */
static const char FUNCTIONS = 'f', NAMES = 'n', BODIES = 'b', DIGESTS = 'd', HANDLER = 'h';

double monotonic_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1000 + (double)now.tv_nsec / 1e6;
}

static void *allocate(void *data, void *old, size_t old_bytes, size_t bytes) {
  lua_engine *engine = data;
  if (bytes == 0) {
    free(old);
    engine->bytes -= old_bytes;
    return NULL;
  }
  if (bytes > old_bytes && engine->bytes - old_bytes + bytes > engine->bytes_max && !engine->is_unlimited) return NULL;
  void *block = realloc(old, bytes);
  if (block != NULL) engine->bytes += bytes - old_bytes;
  return block;
}

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

static int open_tables(lua_State *state) {
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

/* ---- the clock of a running script ---- */

static void on_count(lua_State *state, lua_Debug *frame) {
  (void)frame;
  lua_engine *engine = engine_of(state);
  if (engine->is_aborted) luaL_error(state, "the script was aborted");
  if (engine->is_calling || monotonic_ms() < engine->slow_at_ms) return;
  if (engine->is_loading) {
    lua_sethook(state, on_count, LUA_MASKLINE, 0);
    redis_raise(state, "FUNCTION LOAD timeout");
  }
  double is_killed;
  const bool is_done = engine_call_back(engine, CALLBACK_INTERRUPT, 0, &is_killed);
  if (is_done && is_killed == 0) return;
  /* From here on every line asks again: no pcall can hold the end up. */
  lua_sethook(state, on_count, LUA_MASKLINE | LUA_MASKCOUNT, 1);
  if (!is_done) luaL_error(state, "the script was aborted");
  redis_raise(state, "Script killed by user with SCRIPT KILL...");
}

void engine_start_clock(lua_engine *engine, double limit_ms) {
  engine->slow_at_ms = limit_ms > 0 ? monotonic_ms() + limit_ms : 1e300;
  lua_sethook(engine->state, on_count, LUA_MASKCOUNT, HOOK_INSTRUCTIONS);
}

/* ---- life ---- */

static void close_engine(lua_engine *engine) {
  if (engine->state == NULL) return;
  lua_close(engine->state);
  engine->state = NULL;
  free(engine->spill);
  engine->spill = NULL;
  for (int i = 0; i < CALLBACKS; i++) {
    if (engine->callbacks[i] != NULL) napi_delete_reference(engine->owner->env, engine->callbacks[i]);
    engine->callbacks[i] = NULL;
  }
}

void lua_destroy_all(instance *owner) {
  while (owner->engines != NULL) {
    lua_engine *engine = owner->engines;
    owner->engines = engine->next;
    close_engine(engine);
    free(engine);
  }
}

lua_engine *engine_enter(napi_env env, napi_callback_info info, size_t count, napi_value *args) {
  void *data;
  if (!read_args(env, info, count, args, &data)) return NULL;
  lua_engine *engine = data;
  if (engine->state != NULL) return engine;
  throw_errno(env, EBADF, "lua", NULL);
  return NULL;
}

static int32_t take_arena(lua_engine *engine, size_t bytes, void *address) {
  const char *reason;
  const map_options options = {.numa_node = -1};
  const int32_t number = arena_allocate(bytes, &options, &reason);
  if (number < 0) return number;
  if (!instance_hold(engine->owner, number)) {
    arena_drop(number);
    return -ENOMEM;
  }
  uint8_t *base = arena_at(number, 0, (int64_t)bytes);
  memcpy(address, &base, sizeof base);
  return number;
}

static napi_value method_close(napi_env env, napi_callback_info info) {
  lua_engine *engine = engine_enter(env, info, 0, NULL);
  if (engine == NULL) return NULL;
  if (engine->is_running) return throw_coded(env, "EBUSY", -EBUSY, "lua", NULL, "the engine runs a script");
  close_engine(engine);
  instance_release(engine->owner, engine->words_arena);
  instance_release(engine->owner, engine->data_arena);
  instance_release(engine->owner, engine->reply_arena);
  return NULL;
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
static napi_value method_find(napi_env env, napi_callback_info info) {
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
static napi_value method_define(napi_env env, napi_callback_info info) {
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
  if (engine->spill_capacity > DATA_BYTES_KEPT) {
    free(engine->spill);
    engine->spill = NULL;
    engine->spill_capacity = 0;
  }
}

/*
 * run(id, pairs, first, keyCount, argumentCount, arena, clientResp, slowAfterMs): the bytes of the reply that stand in the data arena
 * when it is done (what did not fit was given to flush before).
 */
static napi_value method_run(napi_env env, napi_callback_info info) {
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

/* spill(bytes): the reply arena is full; keeps its first bytes until the command has replied. */
static napi_value method_spill(napi_env env, napi_callback_info info) {
  napi_value args[1];
  int32_t bytes;
  lua_engine *engine = engine_enter(env, info, 1, args);
  if (engine == NULL || !read_int32(env, args[0], &bytes)) return NULL;
  if (bytes < 0 || (size_t)bytes > engine->reply_bytes) return throw_range(env, "spill: more than the arena holds");
  const size_t wanted = engine->spill_bytes + (size_t)bytes;
  if (wanted > engine->spill_capacity) {
    uint8_t *grown = realloc(engine->spill, wanted * 2);
    if (grown == NULL) return throw_errno(env, ENOMEM, "realloc", NULL);
    engine->spill = grown;
    engine->spill_capacity = wanted * 2;
  }
  memcpy(engine->spill + engine->spill_bytes, engine->reply, (size_t)bytes);
  engine->spill_bytes = wanted;
  return NULL;
}

static napi_value method_memory(napi_env env, napi_callback_info info) {
  lua_engine *engine = engine_enter(env, info, 0, NULL);
  return engine == NULL ? NULL : make_double(env, (double)engine->bytes);
}

/* ---- createLua(forFunctions, bytesMax, version, versionNumber, call, interrupt, flush) ---- */

static bool fill_engine(lua_engine *engine) {
  engine->data_bytes = DATA_BYTES;
  engine->reply_bytes = REPLY_BYTES;
  engine->words_arena = take_arena(engine, WORDS_BYTES, &engine->words);
  engine->data_arena = take_arena(engine, DATA_BYTES, &engine->data);
  engine->reply_arena = take_arena(engine, REPLY_BYTES, &engine->reply);
  if (engine->words_arena < 0 || engine->data_arena < 0 || engine->reply_arena < 0) return false;
  engine->words[ENGINE_DATA_ARENA] = engine->data_arena;
  engine->is_unlimited = true;
  engine->state = lua_newstate(allocate, engine);
  const bool is_open = engine->state != NULL && lua_cpcall(engine->state, open_tables, NULL) == 0 && sandbox_open(engine);
  engine->is_unlimited = false;
  return is_open;
}

static napi_value engine_object(napi_env env, lua_engine *engine) {
  static const method methods[] = {
      {"find", method_find},     {"define", method_define}, {"run", method_run},     {"spill", method_spill},
      {"memory", method_memory}, {"close", method_close},   {"load", method_load_library}, {"forget", method_forget},
  };
  napi_value object, number;
  if (napi_create_object(env, &object) != napi_ok) return throw_status(env);
  if (!define_methods(env, object, methods, COUNT_OF(methods), engine)) return NULL;
  const struct {
    const char *name;
    int32_t value;
  } numbers[] = {{"wordsArena", engine->words_arena}, {"dataArena", engine->data_arena}, {"replyArena", engine->reply_arena}};
  for (size_t i = 0; i < COUNT_OF(numbers); i++) {
    if ((number = make_int32(env, numbers[i].value)) == NULL) return NULL;
    if (napi_set_named_property(env, object, numbers[i].name, number) != napi_ok) return throw_status(env);
  }
  return object;
}

static napi_value create_lua(napi_env env, napi_callback_info info) {
  napi_value args[7];
  double bytes_max, version;
  size_t text_bytes;
  lua_engine *engine = calloc(1, sizeof *engine);
  if (engine == NULL) return throw_errno(env, ENOMEM, "calloc", NULL);
  engine->owner = instance_of(env);
  engine->next = engine->owner->engines;
  engine->owner->engines = engine;
  if (!read_args(env, info, 7, args, NULL) || !read_bool(env, args[0], &engine->for_functions) ||
      !read_double(env, args[1], &bytes_max) || !read_double(env, args[3], &version)) {
    return NULL;
  }
  engine->bytes_max = (size_t)bytes_max;
  engine->version_number = (int)version;
  if (napi_get_value_string_latin1(env, args[2], engine->version, sizeof engine->version, &text_bytes) != napi_ok) return throw_status(env);
  for (int i = 0; i < CALLBACKS; i++) {
    if (napi_create_reference(env, args[4 + i], 1, &engine->callbacks[i]) != napi_ok) return throw_status(env);
  }
  return fill_engine(engine) ? engine_object(env, engine) : throw_errno(env, ENOMEM, "lua", NULL);
}

bool lua_init(napi_env env, napi_value exports) {
  static const method methods[] = {{"createLua", create_lua}};
  __wrap_stdin = __real_stdin;
  __wrap_stdout = __real_stdout;
  __wrap_stderr = __real_stderr;
  return define_methods(env, exports, methods, COUNT_OF(methods), NULL);
}

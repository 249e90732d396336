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

enum { DATA_BYTES = 64 << 10, REPLY_BYTES = 256 << 10, HOOK_INSTRUCTIONS = 100000 };
enum { WORDS_BYTES = (ENGINE_ARGUMENTS + ENGINE_ARGUMENTS_MAX * 2) * 4 };
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
  int32_t is_killed;
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
  const bool is_open = engine->state != NULL && lua_cpcall(engine->state, open_script_tables, NULL) == 0 && sandbox_open(engine);
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

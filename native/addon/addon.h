/*
 * Shared declarations of the addon: the per-environment instance, coded errors, argument reading and the arena table.
 *
 * Owns nothing. The invariant that matters: whatever JavaScript passes is checked here or by the callee before memory
 * is touched; an arena number plus offset plus length becomes a pointer only through arena_at().
 */
#ifndef ENTRESOL_ADDON_H
#define ENTRESOL_ADDON_H

#include <node_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- arenas (arena.c) ---- */

enum { ARENA_LIMIT = 65536 };               /* arenas of one process */
#define ARENA_BYTES_MAX ((size_t)1 << 30)   /* one ArrayBuffer must hold one; offsets stay small integers */

typedef struct arena {
  uint8_t *base; /* NULL = the number is free */
  size_t bytes;
  uint32_t references; /* over all environments; under the table's mutex */
  bool from_file;      /* dev, ino and offset identify it */
  bool copy_on_write;  /* MAP_PRIVATE: of one user alone, never found by its range */
  bool sync;           /* MAP_SYNC: persist by cache-line write-back */
  dev_t dev;
  ino_t ino;
  off_t offset;
  uint64_t faults; /* pages that SIGBUS has turned into zeros */
} arena;

typedef struct map_options {
  bool populate;
  bool huge_pages;
  bool sync;
  bool copy_on_write;
  int numa_node; /* -1 = no binding */
} map_options;

extern arena arena_table[ARENA_LIMIT];
extern int32_t arena_high_water; /* numbers ever used */

/* The address of [offset, offset+bytes) of an arena, or NULL when there is no such range. */
static inline uint8_t *arena_at(int32_t number, int64_t offset, int64_t bytes) {
  if (number < 0 || number >= ARENA_LIMIT || offset < 0 || bytes < 0) return NULL;
  uint8_t *base = __atomic_load_n(&arena_table[number].base, __ATOMIC_ACQUIRE);
  if (base == NULL || (uint64_t)offset + (uint64_t)bytes > arena_table[number].bytes) return NULL;
  return base + offset;
}

/* These return an arena number with one reference, or -errno; *syscall names what failed. */
int32_t arena_map(int fd, int64_t offset, size_t bytes, const map_options *options, const char **syscall);
int32_t arena_allocate(size_t bytes, const map_options *options, const char **syscall);
/* Moves an anonymous arena with exactly one reference to a larger mapping under a new number; the old number dies. */
int32_t arena_grow(int32_t number, size_t bytes);
bool arena_retain(int32_t number);
void arena_drop(int32_t number);

/* SIGBUS inside a file-backed arena becomes a page of zeros (fault.c). */
void fault_handler_install(void);
uint64_t fault_count(void);

/* ---- one environment (module.c) ---- */

typedef struct arena_hold {
  uint32_t references; /* this environment's share of arena.references */
  napi_ref buffer;     /* weak; the ArrayBuffer of this environment, so that wrapping twice gives the same one */
} arena_hold;

struct pump;
struct lua_engine;

typedef struct instance {
  napi_env env;
  bool is_stopping; /* the thread is being terminated: do not wait any more */
  arena_hold *holds; /* by arena number */
  int32_t hold_capacity;
  int32_t *control; /* copy control block */
  napi_ref control_buffer;
  int *exit_fds; /* closed when the environment ends */
  uint32_t exit_fd_count, exit_fd_capacity;
  int *events; /* eventfds made here, closed when the environment ends */
  uint32_t event_count, event_capacity;
  struct pump *pumps;
  struct lua_engine *engines;
} instance;

instance *instance_of(napi_env env);
/* After a wait for nothing: has this thread been told to stop? `any` is a value at hand. */
void instance_note_stop(instance *self, napi_value any);
/* Books one reference, which the caller took, to this environment; false = out of memory. */
bool instance_hold(instance *self, int32_t arena_number);
/* Gives one back; the last one detaches this environment's ArrayBuffer. False when none is held. */
bool instance_release(instance *self, int32_t arena_number);
/* The environment's ArrayBuffer over an arena; NULL with a pending exception on failure. */
napi_value instance_wrap(instance *self, int32_t arena_number);
/* An own arena grew into a new number: detaches the old ArrayBuffer and moves the booking. Returns as arena_grow. */
int32_t instance_grow(instance *self, int32_t arena_number, size_t bytes);

/* ---- eventfds (event.c): registered, so that a number that was closed and reused is never written to ---- */
int event_open(void); /* descriptor or -errno */
void event_close(int fd);
int event_wake(int fd); /* 0 or -errno */

/* ---- bytes ---- */
uint32_t crc32c_update(uint32_t seed, const uint8_t *data, size_t bytes);

/* ---- errors and arguments (errors.c); all throwers return NULL ---- */
napi_value throw_errno(napi_env env, int error, const char *syscall, const char *path);
napi_value throw_fd_errno(napi_env env, int error, const char *syscall, int fd); /* the path comes from /proc */
napi_value throw_coded(napi_env env, const char *code, int error, const char *syscall, const char *path, const char *text);
napi_value throw_range(napi_env env, const char *text);
napi_value throw_type(napi_env env, const char *text);
napi_value throw_status(napi_env env); /* a Node-API call failed */

/* Reads exactly `count` arguments; false with a pending TypeError. */
bool read_args(napi_env env, napi_callback_info info, size_t count, napi_value *args, void **data);
bool read_int64(napi_env env, napi_value value, int64_t *out);
bool read_int32(napi_env env, napi_value value, int32_t *out);
bool read_bool(napi_env env, napi_value value, bool *out);
bool read_double(napi_env env, napi_value value, double *out);
char *read_string(napi_env env, napi_value value); /* malloc-ed; NULL with a pending exception */

napi_value make_int32(napi_env env, int32_t value);
napi_value make_uint32(napi_env env, uint32_t value);
napi_value make_double(napi_env env, double value);
napi_value make_bool(napi_env env, bool value);
napi_value make_string(napi_env env, const char *text);

typedef struct method {
  const char *name;
  napi_callback call;
} method;

/* Defines the methods on an object; each call gets `data`. False with a pending exception. */
bool define_methods(napi_env env, napi_value object, const method *methods, size_t count, void *data);

/* Each part adds its functions to the exports. */
bool angle_init(napi_env env, napi_value exports);
bool region_init(napi_env env, napi_value exports);
bool persist_init(napi_env env, napi_value exports);
bool bytes_init(napi_env env, napi_value exports);
bool sync_init(napi_env env, napi_value exports);
bool machine_init(napi_env env, napi_value exports);
bool spin_init(napi_env env, napi_value exports);
bool pump_init(napi_env env, napi_value exports);
bool lua_init(napi_env env, napi_value exports); /* where the Lua library is missing, these two do nothing (lua_missing.c) */
void lua_destroy_all(instance *self);
void pump_destroy_all(instance *self);

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif

/*
 * The module's entry and the per-environment instance: one for the main thread, one for each worker thread.
 *
 * Owns what an environment took: its references to arenas, its ArrayBuffers, pumps, eventfds and descriptors to close at
 * its end. The invariant: the clean-up hook, which also runs when a worker is terminated, gives all of it back, so a
 * dead worker leaves no socket, no byte lock and no mapping behind.
 */
#include "addon.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

instance *instance_of(napi_env env) {
  void *data = NULL;
  napi_get_instance_data(env, &data);
  return data;
}

/*
 * V8 stops a terminated thread when it enters a JavaScript function or after some dozens of loop rounds, so a loop that does
 * nothing but wait must not wait in each of them (measured, Node 20: terminate() took 30 waits). Node-API refuses calls that
 * could run JavaScript from the moment of termination on; comparing a value with itself is the cheapest of them.
 */
void instance_note_stop(instance *self, napi_value any) {
  bool is_equal;
  if (napi_strict_equals(self->env, any, any, &is_equal) != napi_ok) self->is_stopping = true;
}

bool instance_hold(instance *self, int32_t arena_number) {
  if (arena_number >= self->hold_capacity) {
    int32_t capacity = self->hold_capacity == 0 ? 64 : self->hold_capacity;
    while (capacity <= arena_number) capacity *= 2;
    arena_hold *holds = realloc(self->holds, (size_t)capacity * sizeof *holds);
    if (holds == NULL) return false;
    memset(holds + self->hold_capacity, 0, (size_t)(capacity - self->hold_capacity) * sizeof *holds);
    self->holds = holds;
    self->hold_capacity = capacity;
  }
  self->holds[arena_number].references++;
  return true;
}

/* The live ArrayBuffer behind a hold, or NULL. */
static napi_value held_buffer(instance *self, arena_hold *hold) {
  napi_value buffer = NULL;
  if (hold->buffer == NULL) return NULL;
  if (napi_get_reference_value(self->env, hold->buffer, &buffer) != napi_ok) return NULL;
  return buffer;
}

static void forget_buffer(instance *self, arena_hold *hold) {
  if (hold->buffer == NULL) return;
  napi_handle_scope scope;
  if (napi_open_handle_scope(self->env, &scope) == napi_ok) {
    napi_value buffer = held_buffer(self, hold);
    if (buffer != NULL) napi_detach_arraybuffer(self->env, buffer);
    napi_close_handle_scope(self->env, scope);
  }
  napi_delete_reference(self->env, hold->buffer);
  hold->buffer = NULL;
}

bool instance_release(instance *self, int32_t arena_number) {
  if (arena_number < 0 || arena_number >= self->hold_capacity || self->holds[arena_number].references == 0) return false;
  arena_hold *hold = &self->holds[arena_number];
  /* Detached, a view that is used by mistake reads nothing instead of unmapped memory. */
  if (--hold->references == 0) forget_buffer(self, hold);
  arena_drop(arena_number);
  return true;
}

napi_value instance_wrap(instance *self, int32_t arena_number) {
  if (arena_at(arena_number, 0, 0) == NULL) return throw_range(self->env, "no such arena");
  const bool is_held = arena_number < self->hold_capacity && self->holds[arena_number].references > 0;
  if (!is_held) { /* another thread mapped it: keep it mapped for as long as this environment may look at it */
    if (!arena_retain(arena_number)) return throw_range(self->env, "no such arena");
    if (!instance_hold(self, arena_number)) {
      arena_drop(arena_number);
      return throw_errno(self->env, ENOMEM, "wrapArena", NULL);
    }
  }
  arena_hold *hold = &self->holds[arena_number];
  napi_value buffer = held_buffer(self, hold);
  if (buffer != NULL) return buffer;
  if (hold->buffer != NULL) napi_delete_reference(self->env, hold->buffer);
  hold->buffer = NULL;
  const arena *entry = &arena_table[arena_number];
  if (napi_create_external_arraybuffer(self->env, entry->base, entry->bytes, NULL, NULL, &buffer) != napi_ok ||
      napi_create_reference(self->env, buffer, 0, &hold->buffer) != napi_ok) {
    return throw_status(self->env);
  }
  return buffer;
}

int32_t instance_grow(instance *self, int32_t arena_number, size_t bytes) {
  const int32_t grown = arena_grow(arena_number, bytes);
  if (grown < 0) return grown;
  forget_buffer(self, &self->holds[arena_number]);
  self->holds[arena_number].references = 0;
  if (instance_hold(self, grown)) return grown;
  arena_drop(grown);
  return -ENOMEM;
}

static void at_environment_end(void *data) {
  instance *self = data;
  lua_destroy_all(self);
  pump_destroy_all(self);
  for (uint32_t i = 0; i < self->exit_fd_count; i++) close(self->exit_fds[i]);
  for (uint32_t i = 0; i < self->event_count; i++) event_close(self->events[i]);
  for (int32_t i = 0; i < self->hold_capacity; i++) {
    forget_buffer(self, &self->holds[i]);
    for (; self->holds[i].references > 0; self->holds[i].references--) arena_drop(i);
  }
  if (self->control_buffer != NULL) napi_delete_reference(self->env, self->control_buffer);
  free(self->exit_fds);
  free(self->events);
  free(self->holds);
  free(self);
}

NAPI_MODULE_INIT(/* napi_env env, napi_value exports */) {
  instance *self = calloc(1, sizeof *self);
  if (self == NULL) return throw_errno(env, ENOMEM, "calloc", NULL);
  self->env = env;
  if (napi_set_instance_data(env, self, NULL, NULL) != napi_ok ||
      napi_add_env_cleanup_hook(env, at_environment_end, self) != napi_ok) {
    free(self);
    return throw_status(env);
  }
  if (!region_init(env, exports) || !persist_init(env, exports) || !bytes_init(env, exports) || !angle_init(env, exports) ||
      !sync_init(env, exports) || !machine_init(env, exports) || !spin_init(env, exports) || !pump_init(env, exports) || !lua_init(env, exports)) {
    return NULL;
  }
  return exports;
}

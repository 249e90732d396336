/*
 * Waiting and owner death: futexes, byte locks, descriptors that die with their thread, clocks.
 *
 * Owns the list of descriptors to close at an environment's end. The invariant: byte locks are OFD locks, bound to the
 * open file description, so the kernel drops them however the owner dies, and threads of one process exclude each other.
 */
#include "addon.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef F_OFD_GETLK
#define F_OFD_GETLK 36
#define F_OFD_SETLK 37
#endif

static int32_t *futex_word(napi_env env, int32_t number, int64_t offset) {
  if (offset % 4 == 0) {
    int32_t *word = (int32_t *)(void *)arena_at(number, offset, 4);
    if (word != NULL) return word;
  }
  throw_range(env, "futex: no aligned word there");
  return NULL;
}

static napi_value futex_wait(napi_env env, napi_callback_info info) {
  napi_value args[4];
  int32_t number, expected;
  int64_t offset;
  double timeout_ms;
  if (!read_args(env, info, 4, args, NULL) || !read_int32(env, args[0], &number) || !read_int64(env, args[1], &offset) ||
      !read_int32(env, args[2], &expected) || !read_double(env, args[3], &timeout_ms)) {
    return NULL;
  }
  int32_t *word = futex_word(env, number, offset);
  if (word == NULL) return NULL;
  instance *self = instance_of(env);
  if (!(timeout_ms >= 0) || self->is_stopping) timeout_ms = 0;
  if (timeout_ms > 1e9) timeout_ms = 1e9;
  const time_t seconds = (time_t)(timeout_ms / 1000);
  const struct timespec timeout = {.tv_sec = seconds, .tv_nsec = (long)((timeout_ms - (double)seconds * 1000) * 1e6)};
  if (syscall(SYS_futex, word, FUTEX_WAIT, expected, &timeout, NULL, 0) == 0) return make_bool(env, true);
  if (errno == ETIMEDOUT || errno == EAGAIN || errno == EINTR) {
    if (errno == ETIMEDOUT) instance_note_stop(self, args[0]);
    return make_bool(env, false);
  }
  return throw_errno(env, errno, "futex", NULL);
}

static napi_value futex_wake(napi_env env, napi_callback_info info) {
  napi_value args[3];
  int32_t number, count;
  int64_t offset;
  if (!read_args(env, info, 3, args, NULL) || !read_int32(env, args[0], &number) || !read_int64(env, args[1], &offset) ||
      !read_int32(env, args[2], &count)) {
    return NULL;
  }
  int32_t *word = futex_word(env, number, offset);
  if (word == NULL) return NULL;
  long woken = syscall(SYS_futex, word, FUTEX_WAKE, count, NULL, NULL, 0);
  return woken < 0 ? throw_errno(env, errno, "futex", NULL) : make_int32(env, (int32_t)woken);
}

/* Runs a lock command on one byte; 0 or errno. */
static int lock_command(int fd, int command, short type, int64_t byte, struct flock *lock) {
  *lock = (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
  int status;
  do {
    status = fcntl(fd, command, lock);
  } while (status != 0 && errno == EINTR);
  return status == 0 ? 0 : errno;
}

static bool read_lock_args(napi_env env, napi_callback_info info, int32_t *fd, int64_t *byte) {
  napi_value args[2];
  return read_args(env, info, 2, args, NULL) && read_int32(env, args[0], fd) && read_int64(env, args[1], byte);
}

/* False when another description's lock is in the way. */
static napi_value take_lock(napi_env env, napi_callback_info info, short type) {
  int32_t fd;
  int64_t byte;
  struct flock lock;
  if (!read_lock_args(env, info, &fd, &byte)) return NULL;
  int error = lock_command(fd, F_OFD_SETLK, type, byte, &lock);
  if (error == 0) return make_bool(env, true);
  if (error == EAGAIN || error == EACCES) return make_bool(env, false);
  return throw_fd_errno(env, error, "fcntl", fd);
}

static napi_value lock_byte(napi_env env, napi_callback_info info) {
  return take_lock(env, info, F_WRLCK);
}

static napi_value lock_byte_shared(napi_env env, napi_callback_info info) {
  return take_lock(env, info, F_RDLCK);
}

static napi_value unlock_byte(napi_env env, napi_callback_info info) {
  int32_t fd;
  int64_t byte;
  struct flock lock;
  if (!read_lock_args(env, info, &fd, &byte)) return NULL;
  int error = lock_command(fd, F_OFD_SETLK, F_UNLCK, byte, &lock);
  return error == 0 ? NULL : throw_fd_errno(env, error, "fcntl", fd);
}

static napi_value is_byte_locked(napi_env env, napi_callback_info info) {
  int32_t fd;
  int64_t byte;
  struct flock lock;
  if (!read_lock_args(env, info, &fd, &byte)) return NULL;
  int error = lock_command(fd, F_OFD_GETLK, F_WRLCK, byte, &lock);
  return error == 0 ? make_bool(env, lock.l_type != F_UNLCK) : throw_fd_errno(env, error, "fcntl", fd);
}

static napi_value close_at_exit(napi_env env, napi_callback_info info) {
  napi_value args[1];
  int32_t fd;
  if (!read_args(env, info, 1, args, NULL) || !read_int32(env, args[0], &fd)) return NULL;
  instance *self = instance_of(env);
  if (self->exit_fd_count == self->exit_fd_capacity) {
    const uint32_t capacity = self->exit_fd_capacity == 0 ? 16 : self->exit_fd_capacity * 2;
    int *grown = realloc(self->exit_fds, capacity * sizeof *grown);
    if (grown == NULL) return throw_errno(env, ENOMEM, "closeAtExit", NULL);
    self->exit_fds = grown;
    self->exit_fd_capacity = capacity;
  }
  self->exit_fds[self->exit_fd_count++] = fd;
  return NULL;
}

static napi_value close_file(napi_env env, napi_callback_info info) {
  napi_value args[1];
  int32_t fd;
  if (!read_args(env, info, 1, args, NULL) || !read_int32(env, args[0], &fd)) return NULL;
  instance *self = instance_of(env);
  for (uint32_t i = 0; i < self->exit_fd_count; i++) { /* its number may soon mean another file */
    if (self->exit_fds[i] == fd) self->exit_fds[i--] = self->exit_fds[--self->exit_fd_count];
  }
  /* Linux frees the number even when close reports EINTR. */
  return close(fd) == 0 || errno == EINTR ? NULL : throw_errno(env, errno, "close", NULL);
}

static napi_value clock_ms(napi_env env, clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return make_double(env, (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6);
}

static napi_value monotonic_ms(napi_env env, napi_callback_info info) {
  (void)info;
  return clock_ms(env, CLOCK_MONOTONIC);
}

static napi_value realtime_ms(napi_env env, napi_callback_info info) {
  (void)info;
  return clock_ms(env, CLOCK_REALTIME);
}

static napi_value open_event(napi_env env, napi_callback_info info) {
  (void)info;
  instance *self = instance_of(env);
  if (self->event_count == self->event_capacity) {
    const uint32_t capacity = self->event_capacity == 0 ? 16 : self->event_capacity * 2;
    int *grown = realloc(self->events, capacity * sizeof *grown);
    if (grown == NULL) return throw_errno(env, ENOMEM, "openEvent", NULL);
    self->events = grown;
    self->event_capacity = capacity;
  }
  int fd = event_open();
  if (fd < 0) return throw_errno(env, -fd, "eventfd", NULL);
  self->events[self->event_count++] = fd;
  return make_int32(env, fd);
}

static napi_value wake(napi_env env, napi_callback_info info) {
  napi_value args[1];
  int32_t fd;
  if (!read_args(env, info, 1, args, NULL) || !read_int32(env, args[0], &fd)) return NULL;
  int error = -event_wake(fd);
  return error == 0 ? NULL : throw_errno(env, error, "write", NULL);
}

/* Not in every libc's headers. */
enum { BARRIER_QUERY = 0, BARRIER_GLOBAL = 1 };

static napi_value has_global_barrier(napi_env env, napi_callback_info info) {
  (void)info;
  const long commands = syscall(SYS_membarrier, BARRIER_QUERY, 0, 0);
  return make_bool(env, commands >= 0 && (commands & BARRIER_GLOBAL) != 0);
}

static napi_value global_barrier(napi_env env, napi_callback_info info) {
  (void)info;
  return make_bool(env, syscall(SYS_membarrier, BARRIER_GLOBAL, 0, 0) == 0);
}

bool sync_init(napi_env env, napi_value exports) {
  static const method methods[] = {
      {"futexWait", futex_wait},     {"futexWake", futex_wake},   {"lockByte", lock_byte},       {"unlockByte", unlock_byte},
      {"lockByteShared", lock_byte_shared},
      {"isByteLocked", is_byte_locked}, {"closeAtExit", close_at_exit}, {"closeFile", close_file}, {"monotonicMs", monotonic_ms},
      {"realtimeMs", realtime_ms},   {"openEvent", open_event},   {"wake", wake},
      {"hasGlobalBarrier", has_global_barrier}, {"globalBarrier", global_barrier},
  };
  return define_methods(env, exports, methods, COUNT_OF(methods), NULL);
}

/*
 * Files and arenas as JavaScript sees them: open, reserve, map, wrap, release.
 *
 * Owns nothing; arena.c owns the mappings, module.c the environment's references. The invariant: a reservation that
 * fails leaves the file at its former size, and every failure names the path.
 */
#include "addon.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MFD_CLOEXEC
#define MFD_CLOEXEC 1u
#endif

static napi_value open_file(napi_env env, napi_callback_info info) {
  napi_value args[3];
  bool create, exclusive;
  if (!read_args(env, info, 3, args, NULL) || !read_bool(env, args[1], &create) || !read_bool(env, args[2], &exclusive)) return NULL;
  char *path = read_string(env, args[0]);
  if (path == NULL) return NULL;
  int fd;
  do {
    fd = open(path, O_RDWR | O_CLOEXEC | (create ? O_CREAT : 0) | (exclusive ? O_EXCL : 0), 0600);
  } while (fd < 0 && errno == EINTR);
  napi_value result = fd < 0 ? throw_errno(env, errno, "open", path) : make_int32(env, fd);
  free(path);
  return result;
}

static napi_value open_memory(napi_env env, napi_callback_info info) {
  napi_value args[1];
  if (!read_args(env, info, 1, args, NULL)) return NULL;
  char *name = read_string(env, args[0]);
  if (name == NULL) return NULL;
  int fd = (int)syscall(SYS_memfd_create, name, MFD_CLOEXEC);
  napi_value result = fd < 0 ? throw_errno(env, errno, "memfd_create", name) : make_int32(env, fd);
  free(name);
  return result;
}

static napi_value file_bytes(napi_env env, napi_callback_info info) {
  napi_value args[1];
  int32_t fd;
  struct stat status;
  if (!read_args(env, info, 1, args, NULL) || !read_int32(env, args[0], &fd)) return NULL;
  if (fstat(fd, &status) != 0) return throw_fd_errno(env, errno, "fstat", fd);
  return make_double(env, (double)status.st_size);
}

static napi_value reserve(napi_env env, napi_callback_info info) {
  napi_value args[3];
  int32_t fd;
  int64_t offset, bytes;
  struct stat before;
  if (!read_args(env, info, 3, args, NULL) || !read_int32(env, args[0], &fd) || !read_int64(env, args[1], &offset) ||
      !read_int64(env, args[2], &bytes)) {
    return NULL;
  }
  if (fstat(fd, &before) != 0) return throw_fd_errno(env, errno, "fstat", fd);
  int error;
  do {
    error = posix_fallocate(fd, offset, bytes);
  } while (error == EINTR);
  if (error == 0) return NULL;
  /* Only cut, never extend: part of the range may have been added before the disk was full. */
  struct stat after;
  if (fstat(fd, &after) == 0 && after.st_size > before.st_size && ftruncate(fd, before.st_size) != 0) {
    return throw_fd_errno(env, errno, "ftruncate", fd);
  }
  return throw_fd_errno(env, error, "posix_fallocate", fd);
}

static napi_value punch_hole(napi_env env, napi_callback_info info) {
  napi_value args[3];
  int32_t fd;
  int64_t offset, bytes;
  if (!read_args(env, info, 3, args, NULL) || !read_int32(env, args[0], &fd) || !read_int64(env, args[1], &offset) ||
      !read_int64(env, args[2], &bytes)) {
    return NULL;
  }
  int status;
  do {
    status = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes);
  } while (status != 0 && errno == EINTR);
  return status == 0 ? NULL : throw_fd_errno(env, errno, "fallocate", fd);
}

static bool read_flag(napi_env env, napi_value object, const char *name, bool *out) {
  napi_value value;
  napi_valuetype type;
  *out = false;
  if (napi_get_named_property(env, object, name, &value) != napi_ok || napi_typeof(env, value, &type) != napi_ok) {
    return throw_status(env) != NULL;
  }
  return type == napi_undefined || read_bool(env, value, out);
}

static bool read_options(napi_env env, napi_value object, map_options *out) {
  napi_value value;
  napi_valuetype type;
  if (napi_typeof(env, object, &type) != napi_ok || type != napi_object) return throw_type(env, "expected map options") != NULL;
  if (!read_flag(env, object, "populate", &out->populate) || !read_flag(env, object, "hugePages", &out->huge_pages) ||
      !read_flag(env, object, "sync", &out->sync) || !read_flag(env, object, "copyOnWrite", &out->copy_on_write)) {
    return false;
  }
  out->numa_node = -1;
  if (napi_get_named_property(env, object, "numaNode", &value) != napi_ok || napi_typeof(env, value, &type) != napi_ok) {
    return throw_status(env) != NULL;
  }
  return type == napi_undefined || read_int32(env, value, &out->numa_node);
}

static napi_value hand_out(napi_env env, int32_t number) {
  if (instance_hold(instance_of(env), number)) return make_int32(env, number);
  arena_drop(number);
  return throw_errno(env, ENOMEM, "mmap", NULL);
}

static napi_value map_arena(napi_env env, napi_callback_info info) {
  napi_value args[4];
  int32_t fd;
  int64_t offset, bytes;
  map_options options;
  const char *syscall_name = "mmap";
  if (!read_args(env, info, 4, args, NULL) || !read_int32(env, args[0], &fd) || !read_int64(env, args[1], &offset) ||
      !read_int64(env, args[2], &bytes) || !read_options(env, args[3], &options)) {
    return NULL;
  }
  if (offset < 0 || bytes <= 0 || (size_t)bytes > ARENA_BYTES_MAX) return throw_range(env, "an arena holds 1 byte to 1 GiB");
  int32_t number = arena_map(fd, offset, (size_t)bytes, &options, &syscall_name);
  if (number < 0) return throw_fd_errno(env, -number, syscall_name, fd);
  return hand_out(env, number);
}

static napi_value allocate_arena(napi_env env, napi_callback_info info) {
  napi_value args[2];
  int64_t bytes;
  map_options options;
  const char *syscall_name = "mmap";
  if (!read_args(env, info, 2, args, NULL) || !read_int64(env, args[0], &bytes) || !read_options(env, args[1], &options)) return NULL;
  if (bytes <= 0 || (size_t)bytes > ARENA_BYTES_MAX) return throw_range(env, "an arena holds 1 byte to 1 GiB");
  int32_t number = arena_allocate((size_t)bytes, &options, &syscall_name);
  if (number < 0) return throw_errno(env, -number, syscall_name, NULL);
  return hand_out(env, number);
}

static napi_value wrap_arena(napi_env env, napi_callback_info info) {
  napi_value args[1];
  int32_t number;
  if (!read_args(env, info, 1, args, NULL) || !read_int32(env, args[0], &number)) return NULL;
  return instance_wrap(instance_of(env), number);
}

static napi_value release_arena(napi_env env, napi_callback_info info) {
  napi_value args[1];
  int32_t number;
  if (!read_args(env, info, 1, args, NULL) || !read_int32(env, args[0], &number)) return NULL;
  if (!instance_release(instance_of(env), number)) return throw_range(env, "this thread holds no such arena");
  return NULL;
}

/* Sums the size lines that /proc/self/smaps gives for the arena's part of the address space. */
static int measure(int32_t number, double *resident, double *huge) {
  const uintptr_t from = (uintptr_t)arena_table[number].base, to = from + arena_table[number].bytes;
  FILE *file = fopen("/proc/self/smaps", "re");
  if (file == NULL) return errno;
  char line[512];
  bool is_inside = false;
  *resident = *huge = 0;
  while (fgets(line, sizeof line, file) != NULL) {
    unsigned long first, last, kilobytes;
    char name[64];
    if (sscanf(line, "%lx-%lx ", &first, &last) == 2) {
      is_inside = first < to && last > from;
    } else if (is_inside && sscanf(line, "%63[^:]: %lu kB", name, &kilobytes) == 2) {
      if (strcmp(name, "Rss") == 0) *resident += (double)kilobytes * 1024;
      if (strcmp(name, "AnonHugePages") == 0 || strcmp(name, "ShmemPmdMapped") == 0 || strcmp(name, "FilePmdMapped") == 0) {
        *huge += (double)kilobytes * 1024;
      }
    }
  }
  fclose(file);
  return 0;
}

static napi_value arena_info(napi_env env, napi_callback_info info) {
  napi_value args[1], result;
  int32_t number;
  double resident, huge;
  if (!read_args(env, info, 1, args, NULL) || !read_int32(env, args[0], &number)) return NULL;
  if (arena_at(number, 0, 0) == NULL) return throw_range(env, "no such arena");
  int error = measure(number, &resident, &huge);
  if (error != 0) return throw_errno(env, error, "open", "/proc/self/smaps");
  if (napi_create_object(env, &result) != napi_ok) return throw_status(env);
  napi_set_named_property(env, result, "bytes", make_double(env, (double)arena_table[number].bytes));
  napi_set_named_property(env, result, "residentBytes", make_double(env, resident));
  napi_set_named_property(env, result, "hugePageBytes", make_double(env, huge));
  return result;
}

static napi_value sigbus_count(napi_env env, napi_callback_info info) {
  (void)info;
  return make_double(env, (double)fault_count());
}

static napi_value arena_faults(napi_env env, napi_callback_info info) {
  napi_value args[1];
  int32_t number;
  if (!read_args(env, info, 1, args, NULL) || !read_int32(env, args[0], &number)) return NULL;
  if (arena_at(number, 0, 0) == NULL) return throw_range(env, "no such arena");
  return make_double(env, (double)__atomic_load_n(&arena_table[number].faults, __ATOMIC_RELAXED));
}

bool region_init(napi_env env, napi_value exports) {
  static const method methods[] = {
      {"openFile", open_file},       {"openMemory", open_memory},         {"fileBytes", file_bytes},
      {"reserve", reserve},          {"punchHole", punch_hole},           {"mapArena", map_arena},
      {"wrapArena", wrap_arena},     {"allocateArena", allocate_arena},   {"releaseArena", release_arena},
      {"arenaInfo", arena_info},     {"sigbusCount", sigbus_count},       {"arenaFaults", arena_faults},
  };
  return define_methods(env, exports, methods, COUNT_OF(methods), NULL);
}

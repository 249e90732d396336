/*
 * Facts about the machine: what kind of file system a path lies on, and on which CPUs a thread runs.
 *
 * Owns nothing.
 */
#include "addon.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
  uint32_t magic;
  const char *name;
} file_systems[] = {
    {0xef53, "ext4"},         {0x01021994, "tmpfs"},    {0x58465342, "xfs"},      {0x9123683e, "btrfs"},    {0x958458f6, "hugetlbfs"},
    {0x858458f6, "ramfs"},    {0x794c7630, "overlay"},  {0x6969, "nfs"},          {0x65735546, "fuse"},     {0x2fc12fc1, "zfs"},
    {0xf2f52010, "f2fs"},     {0x4d44, "vfat"},         {0x2011bab0, "exfat"},    {0xff534d42, "cifs"},     {0x01021997, "9p"},
    {0x5346544e, "ntfs"},     {0x00c36400, "ceph"},     {0x73717368, "squashfs"}, {0x64626720, "debugfs"},  {0x9fa0, "proc"},
    {0x62656572, "sysfs"},    {0x1cd1, "devpts"},       {0xca451a4e, "bcachefs"}, {0xe0f5e1e2, "erofs"},
};

static const char *file_system_name(uint32_t magic, char *unknown, size_t bytes) {
  for (size_t i = 0; i < COUNT_OF(file_systems); i++) {
    if (file_systems[i].magic == magic) return file_systems[i].name;
  }
  snprintf(unknown, bytes, "0x%x", magic);
  return unknown;
}

/* The start of the kernel's struct statx; the C libraries differ in whether and where they declare it. */
typedef struct statx_head {
  uint32_t mask, block_bytes;
  uint64_t attributes;
  uint8_t rest[240];
} statx_head;

static bool is_dax(const char *path) {
#ifdef SYS_statx
  enum { ATTRIBUTE_DAX = 0x00200000 };
  statx_head status;
  /* A kernel without statx has no per-file DAX either. */
  return syscall(SYS_statx, AT_FDCWD, path, 0, 0, &status) == 0 && (status.attributes & ATTRIBUTE_DAX) != 0;
#else
  (void)path;
  return false;
#endif
}

static napi_value file_system(napi_env env, napi_callback_info info) {
  napi_value args[1], result = NULL;
  struct statfs status;
  char unknown[32];
  if (!read_args(env, info, 1, args, NULL)) return NULL;
  char *path = read_string(env, args[0]);
  if (path == NULL) return NULL;
  if (statfs(path, &status) != 0) {
    throw_errno(env, errno, "statfs", path);
  } else if (napi_create_object(env, &result) != napi_ok) {
    throw_status(env);
  } else {
    const double block = (double)status.f_bsize;
    napi_set_named_property(env, result, "type", make_string(env, file_system_name((uint32_t)status.f_type, unknown, sizeof unknown)));
    napi_set_named_property(env, result, "bytes", make_double(env, (double)status.f_blocks * block));
    napi_set_named_property(env, result, "freeBytes", make_double(env, (double)status.f_bavail * block));
    napi_set_named_property(env, result, "dax", make_bool(env, is_dax(path)));
  }
  free(path);
  return result;
}

static napi_value pin_thread(napi_env env, napi_callback_info info) {
  napi_value args[1], item;
  uint32_t count;
  cpu_set_t cpus;
  if (!read_args(env, info, 1, args, NULL)) return NULL;
  if (napi_get_array_length(env, args[0], &count) != napi_ok) return throw_type(env, "expected a list of CPU numbers");
  if (count == 0) return NULL;
  CPU_ZERO(&cpus);
  for (uint32_t i = 0; i < count; i++) {
    int32_t cpu;
    if (napi_get_element(env, args[0], i, &item) != napi_ok) return throw_status(env);
    if (!read_int32(env, item, &cpu)) return NULL;
    if (cpu < 0 || cpu >= CPU_SETSIZE) return throw_range(env, "no such CPU");
    CPU_SET((size_t)cpu, &cpus);
  }
  if (sched_setaffinity(0, sizeof cpus, &cpus) != 0) return throw_errno(env, errno, "sched_setaffinity", NULL);
  return NULL;
}

bool machine_init(napi_env env, napi_value exports) {
  static const method methods[] = {{"fileSystem", file_system}, {"pinThread", pin_thread}};
  return define_methods(env, exports, methods, COUNT_OF(methods), NULL);
}

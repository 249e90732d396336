/**
 * stat, fstat and lstat for glibc before 2.33, where they were not functions of the library but wrappers in every program.
 *
 * Linked into release builds alone (scripts/release/old-glibc.mjs); a build from a clone uses its own glibc's. Hidden, so that
 * nothing outside of the addon sees them.
 */
#include <stddef.h>

struct stat;

/* What the functions below have called since the first 64-bit glibc; the version number is that of struct stat. */
#if defined(__x86_64__)
enum { STAT_VERSION = 1 };
#else
enum { STAT_VERSION = 0 };
#endif

int __xstat64(int version, const char *path, struct stat *status);
int __fxstat64(int version, int fd, struct stat *status);
int __lxstat64(int version, const char *path, struct stat *status);

#define HIDDEN __attribute__((visibility("hidden")))

/* On 64-bit machines struct stat and struct stat64 are the same. */
HIDDEN int stat64(const char *path, struct stat *status) { return __xstat64(STAT_VERSION, path, status); }
HIDDEN int fstat64(int fd, struct stat *status) { return __fxstat64(STAT_VERSION, fd, status); }
HIDDEN int lstat64(const char *path, struct stat *status) { return __lxstat64(STAT_VERSION, path, status); }
HIDDEN int stat(const char *path, struct stat *status) { return __xstat64(STAT_VERSION, path, status); }
HIDDEN int fstat(int fd, struct stat *status) { return __fxstat64(STAT_VERSION, fd, status); }
HIDDEN int lstat(const char *path, struct stat *status) { return __lxstat64(STAT_VERSION, path, status); }

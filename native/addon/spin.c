/*
 * Passing time without doing anything: how a machine without persistent memory behaves as if an access had been slower.
 *
 * Owns nothing. The invariant: spin(ns) returns when at least so much time has passed since it was called.
 */
#include "addon.h"

#include <time.h>

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static napi_value spin(napi_env env, napi_callback_info info) {
  const double start = now_ns();
  napi_value args[1];
  double ns;
  if (!read_args(env, info, 1, args, NULL) || !read_double(env, args[0], &ns)) return NULL;
  while (now_ns() - start < ns) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  return NULL;
}

bool spin_init(napi_env env, napi_value exports) {
  static const method methods[] = {{"spin", spin}};
  return define_methods(env, exports, methods, COUNT_OF(methods), NULL);
}

/*
 * Making a range durable.
 *
 * Owns nothing. The invariant: when persist() returns, the bytes survive a power cut. On a MAP_SYNC mapping the caches
 * are written back line by line and fenced; on every other mapping the kernel does it (msync).
 */
#include "addon.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LINE_BYTES = 64 };

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

__attribute__((target("clwb"))) static void write_back_clwb(uint8_t *line, uint8_t *end) {
  for (; line < end; line += LINE_BYTES) _mm_clwb(line);
}

__attribute__((target("clflushopt"))) static void write_back_clflushopt(uint8_t *line, uint8_t *end) {
  for (; line < end; line += LINE_BYTES) _mm_clflushopt(line);
}

static void write_back_clflush(uint8_t *line, uint8_t *end) {
  for (; line < end; line += LINE_BYTES) _mm_clflush(line);
}

typedef void (*write_back_function)(uint8_t *, uint8_t *);

/* CPUID leaf 7: EBX bit 24 = CLWB (keeps the line cached), bit 23 = CLFLUSHOPT. */
static write_back_function choose(void) {
  unsigned a, b, c, d;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return write_back_clflush;
  if ((b & (1u << 24)) != 0) return write_back_clwb;
  return (b & (1u << 23)) != 0 ? write_back_clflushopt : write_back_clflush;
}

static bool write_back(uint8_t *line, uint8_t *end) {
  static write_back_function chosen;
  write_back_function function = __atomic_load_n(&chosen, __ATOMIC_RELAXED);
  if (function == NULL) {
    function = choose();
    __atomic_store_n(&chosen, function, __ATOMIC_RELAXED);
  }
  function(line, end);
  _mm_sfence();
  return true;
}

#elif defined(__aarch64__)
#include <sys/auxv.h>

enum { CPU_HAS_DCPOP = 1 << 16 /* HWCAP_DCPOP */ };

static bool write_back(uint8_t *line, uint8_t *end) {
  if ((getauxval(AT_HWCAP) & CPU_HAS_DCPOP) == 0) return false;
  for (; line < end; line += LINE_BYTES) {
    register uint8_t *address __asm__("x0") = line;
    __asm__ volatile(".inst 0xd50b7c20" /* dc cvap, x0 */ : : "r"(address) : "memory");
  }
  __asm__ volatile("dsb sy" ::: "memory");
  return true;
}

#else
static bool write_back(uint8_t *line, uint8_t *end) {
  (void)line;
  (void)end;
  return false;
}
#endif

static napi_value persist(napi_env env, napi_callback_info info) {
  napi_value args[3];
  int32_t number;
  int64_t offset, bytes;
  if (!read_args(env, info, 3, args, NULL) || !read_int32(env, args[0], &number) || !read_int64(env, args[1], &offset) ||
      !read_int64(env, args[2], &bytes)) {
    return NULL;
  }
  uint8_t *start = arena_at(number, offset, bytes);
  if (start == NULL) return throw_range(env, "persist: the range is outside the arena");
  if (bytes == 0) return NULL;
  if (arena_table[number].sync) {
    uint8_t *line = (uint8_t *)((uintptr_t)start & ~(uintptr_t)(LINE_BYTES - 1));
    if (write_back(line, start + bytes)) return NULL;
  }
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uint8_t *first_page = (uint8_t *)((uintptr_t)start & ~(page - 1));
  if (msync(first_page, (size_t)(start + bytes - first_page), MS_SYNC) != 0) return throw_errno(env, errno, "msync", NULL);
  return NULL;
}

bool persist_init(napi_env env, napi_value exports) {
  static const method methods[] = {{"persist", persist}};
  return define_methods(env, exports, methods, COUNT_OF(methods), NULL);
}

/*
 * CRC-32C (Castagnoli, reflected polynomial 0x82f63b78), with the CPU's instruction where it has one.
 *
 * Owns the table for the CPUs that have none. The invariant: crc(a + b) = crc(b, seed = crc(a)), seed 0 at the start;
 * crc of the nine bytes "123456789" is 0xe3069283.
 */
#include "addon.h"

#include <pthread.h>
#include <string.h>

typedef uint32_t (*update_function)(uint32_t crc, const uint8_t *data, size_t bytes);

static const uint32_t polynomial = 0x82f63b78;

static uint32_t table[8][256]; /* [n][b]: effect of byte b followed by n zero bytes */
static update_function chosen;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill_table(void) {
  for (uint32_t byte = 0; byte < 256; byte++) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ ((crc & 1) != 0 ? polynomial : 0);
    table[0][byte] = crc;
  }
  for (uint32_t byte = 0; byte < 256; byte++) {
    for (int n = 1; n < 8; n++) table[n][byte] = (table[n - 1][byte] >> 8) ^ table[0][table[n - 1][byte] & 0xff];
  }
}

static uint32_t update_by_table(uint32_t crc, const uint8_t *data, size_t bytes) {
  for (; bytes >= 8; data += 8, bytes -= 8) { /* eight bytes a step, each through its own table */
    uint32_t low = crc ^ ((uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24);
    crc = table[7][low & 0xff] ^ table[6][(low >> 8) & 0xff] ^ table[5][(low >> 16) & 0xff] ^ table[4][low >> 24] ^
          table[3][data[4]] ^ table[2][data[5]] ^ table[1][data[6]] ^ table[0][data[7]];
  }
  for (; bytes > 0; data++, bytes--) crc = (crc >> 8) ^ table[0][(crc ^ *data) & 0xff];
  return crc;
}

#if defined(__x86_64__)
#include <nmmintrin.h>

__attribute__((target("sse4.2"))) static uint32_t update_by_cpu(uint32_t crc, const uint8_t *data, size_t bytes) {
  uint64_t wide = crc;
  for (; bytes >= 8; data += 8, bytes -= 8) {
    uint64_t word;
    memcpy(&word, data, 8);
    wide = _mm_crc32_u64(wide, word);
  }
  crc = (uint32_t)wide;
  for (; bytes > 0; data++, bytes--) crc = _mm_crc32_u8(crc, *data);
  return crc;
}

static bool cpu_can(void) { return __builtin_cpu_supports("sse4.2"); }

#elif defined(__aarch64__)
#include <sys/auxv.h>

enum { CPU_HAS_CRC32 = 1 << 7 /* HWCAP_CRC32 */ };

__attribute__((target("+crc"))) static uint32_t update_by_cpu(uint32_t crc, const uint8_t *data, size_t bytes) {
  for (; bytes >= 8; data += 8, bytes -= 8) {
    uint64_t word;
    memcpy(&word, data, 8);
    __asm__("crc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(word));
  }
  for (; bytes > 0; data++, bytes--) __asm__("crc32cb %w0, %w0, %w1" : "+r"(crc) : "r"((uint32_t)*data));
  return crc;
}

static bool cpu_can(void) { return (getauxval(AT_HWCAP) & CPU_HAS_CRC32) != 0; }

#else
#define update_by_cpu update_by_table
static bool cpu_can(void) { return false; }
#endif

static void choose(void) {
  fill_table();
  chosen = cpu_can() ? update_by_cpu : update_by_table;
}

uint32_t crc32c_update(uint32_t seed, const uint8_t *data, size_t bytes) {
  pthread_once(&once, choose);
  return ~chosen(~seed, data, bytes);
}

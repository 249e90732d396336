/*
 * The process-wide table of arenas: mapped ranges of bytes with small numbers, shared by all threads of the process.
 *
 * Owns the mappings. The invariant: the same file range (dev, ino, offset, bytes) is mapped shared once, so every thread sees it
 * at one address; a number is reused only after its last reference is gone. arena_at() reads the table without the mutex:
 * a thread learns a number only after its entry was published.
 */
#include "addon.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MAP_SHARED_VALIDATE
#define MAP_SHARED_VALIDATE 0x03
#endif
#ifndef MAP_SYNC
#define MAP_SYNC 0x80000
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { NUMA_BIND = 2 /* MPOL_BIND */, NUMA_NODE_LIMIT = 1024 };

arena arena_table[ARENA_LIMIT];
int32_t arena_high_water = 0;

static pthread_mutex_t table_mutex = PTHREAD_MUTEX_INITIALIZER;
static int32_t search_from = 0; /* no free number below it */

static int32_t find_free_number(void) {
  for (int32_t i = search_from; i < ARENA_LIMIT; i++) {
    if (arena_table[i].base == NULL) return i;
  }
  return -ENFILE;
}

/* Publishes a mapping under a free number, with one reference. Called under the mutex. */
static int32_t publish(uint8_t *base, const arena *facts) {
  int32_t number = find_free_number();
  if (number < 0) return number;
  arena *entry = &arena_table[number];
  *entry = *facts;
  entry->base = NULL;
  entry->references = 1;
  __atomic_store_n(&entry->base, base, __ATOMIC_RELEASE);
  if (number + 1 > arena_high_water) __atomic_store_n(&arena_high_water, number + 1, __ATOMIC_RELEASE);
  search_from = number + 1;
  return number;
}

static void withdraw(int32_t number) {
  __atomic_store_n(&arena_table[number].base, NULL, __ATOMIC_RELEASE);
  if (number < search_from) search_from = number;
}

static int bind_to_node(uint8_t *base, size_t bytes, int node) {
  unsigned long mask[NUMA_NODE_LIMIT / (8 * sizeof(unsigned long))] = {0};
  const unsigned bits = 8 * sizeof(unsigned long);
  if (node >= NUMA_NODE_LIMIT) return EINVAL;
  mask[(unsigned)node / bits] = 1ul << ((unsigned)node % bits);
  return syscall(SYS_mbind, base, bytes, NUMA_BIND, mask, NUMA_NODE_LIMIT, 0) == 0 ? 0 : errno;
}

/* Faults every page in. Kernels before 5.14 lack the call: there one read per page. */
static int populate(uint8_t *base, size_t bytes) {
  int status;
  do {
    status = madvise(base, bytes, MADV_POPULATE_WRITE);
  } while (status != 0 && errno == EINTR);
  if (status == 0) return 0;
  if (errno != EINVAL) return errno;
  const long page = sysconf(_SC_PAGESIZE);
  for (size_t at = 0; at < bytes; at += (size_t)page) (void)*(volatile uint8_t *)(base + at);
  return 0;
}

/* Placement first, then huge pages, then population: each decides how the later one allocates. */
static int apply_options(uint8_t *base, size_t bytes, const map_options *options, const char **syscall_name) {
  int error = 0;
  if (options->numa_node >= 0) {
    *syscall_name = "mbind";
    error = bind_to_node(base, bytes, options->numa_node);
  }
  /* A refusal (no transparent huge pages in this kernel or file system) costs speed only; arenaInfo tells. */
  if (error == 0 && options->huge_pages) (void)madvise(base, bytes, MADV_HUGEPAGE);
  if (error == 0 && options->populate) {
    *syscall_name = "madvise";
    error = populate(base, bytes);
  }
  return error;
}

static int32_t find_file_range(const arena *facts) {
  for (int32_t i = 0; i < arena_high_water; i++) {
    const arena *entry = &arena_table[i];
    if (entry->base != NULL && entry->from_file && !entry->copy_on_write && entry->dev == facts->dev && entry->ino == facts->ino &&
        entry->offset == facts->offset && entry->bytes == facts->bytes) {
      return i;
    }
  }
  return -ENOENT;
}

/* Takes one more reference to a range that is mapped already. */
static int32_t retain_file_range(const arena *facts) {
  pthread_mutex_lock(&table_mutex);
  const int32_t number = find_file_range(facts);
  if (number >= 0) arena_table[number].references++;
  pthread_mutex_unlock(&table_mutex);
  return number;
}

/* Publishes a mapping, or takes that of a thread that was faster and drops ours. */
static int32_t publish_file_range(uint8_t *base, const arena *facts) {
  pthread_mutex_lock(&table_mutex);
  int32_t number = facts->copy_on_write ? -ENOENT : find_file_range(facts);
  const bool is_ours = number < 0;
  if (is_ours) {
    number = publish(base, facts);
  } else {
    arena_table[number].references++;
  }
  pthread_mutex_unlock(&table_mutex);
  if (!is_ours || number < 0) munmap(base, facts->bytes);
  return number;
}

int32_t arena_map(int fd, int64_t offset, size_t bytes, const map_options *options, const char **syscall_name) {
  struct stat status;
  *syscall_name = "fstat";
  if (fstat(fd, &status) != 0) return -errno;
  *syscall_name = "mmap";
  /* A mapping beyond the end of the file would only fail later, by SIGBUS. */
  if (S_ISREG(status.st_mode) && (int64_t)status.st_size < offset + (int64_t)bytes) return -EINVAL;
  arena facts = {.bytes = bytes, .from_file = true, .sync = options->sync, .dev = status.st_dev, .ino = status.st_ino, .offset = offset};
  facts.copy_on_write = options->copy_on_write;
  const int32_t number = facts.copy_on_write ? -ENOENT : retain_file_range(&facts);
  if (number >= 0) return number;
  fault_handler_install();
  int flags = options->sync ? MAP_SHARED_VALIDATE | MAP_SYNC : MAP_SHARED;
  /* Nothing is reserved for the copies: a reader of a large pool changes few pages of it. */
  if (options->copy_on_write) flags = MAP_PRIVATE | MAP_NORESERVE;
  uint8_t *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, offset);
  if (base == MAP_FAILED) return -errno;
  /* Outside the mutex: populating a gigabyte takes a third of a second. */
  const int error = apply_options(base, bytes, options, syscall_name);
  if (error == 0) return publish_file_range(base, &facts);
  munmap(base, bytes);
  return -error;
}

int32_t arena_allocate(size_t bytes, const map_options *options, const char **syscall_name) {
  *syscall_name = "mmap";
  uint8_t *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return -errno;
  int error = apply_options(base, bytes, options, syscall_name);
  int32_t number = -error;
  if (error == 0) {
    arena facts = {.bytes = bytes};
    pthread_mutex_lock(&table_mutex);
    number = publish(base, &facts);
    pthread_mutex_unlock(&table_mutex);
  }
  if (number < 0) munmap(base, bytes);
  return number;
}

int32_t arena_grow(int32_t number, size_t bytes) {
  pthread_mutex_lock(&table_mutex);
  arena *old = &arena_table[number];
  int32_t grown;
  if (old->base == NULL || old->from_file || old->references != 1) {
    grown = -EBUSY;
  } else {
    arena facts = {.bytes = bytes};
    const size_t old_bytes = old->bytes;
    /* mremap moves page table entries, not bytes: growing to n by doubling copies nothing. */
    uint8_t *base = mremap(old->base, old_bytes, bytes, MREMAP_MAYMOVE);
    if (base == MAP_FAILED) {
      grown = -errno;
    } else {
      grown = publish(base, &facts);
      if (grown >= 0) {
        withdraw(number);
      } else { /* no number left: stay as it was, at the address it has now */
        uint8_t *back = mremap(base, bytes, old_bytes, 0);
        __atomic_store_n(&old->base, back == MAP_FAILED ? base : back, __ATOMIC_RELEASE);
      }
    }
  }
  pthread_mutex_unlock(&table_mutex);
  return grown;
}

bool arena_retain(int32_t number) {
  if (number < 0 || number >= ARENA_LIMIT) return false;
  pthread_mutex_lock(&table_mutex);
  const bool exists = arena_table[number].base != NULL;
  if (exists) arena_table[number].references++;
  pthread_mutex_unlock(&table_mutex);
  return exists;
}

void arena_drop(int32_t number) {
  pthread_mutex_lock(&table_mutex);
  arena *entry = &arena_table[number];
  if (entry->base != NULL && --entry->references == 0) {
    uint8_t *base = entry->base;
    withdraw(number);
    munmap(base, entry->bytes);
  }
  pthread_mutex_unlock(&table_mutex);
}

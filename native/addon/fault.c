/*
 * SIGBUS inside a file-backed arena: a truncated file or a failing medium.
 *
 * Owns the process's SIGBUS handler. It maps a page of zeros over the faulting one and counts; the check words of what is
 * stored there then fail, and the caller decides. Any other SIGBUS goes to the handler that was there before.
 */
#include "addon.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

static struct sigaction previous;
static uint64_t faults = 0;
static uintptr_t page_bytes = 4096;
static pthread_once_t installed = PTHREAD_ONCE_INIT;

/* Number of the arena, of a file, that has the address; -1 when none does. */
static int32_t arena_of(uintptr_t address) {
  const int32_t count = __atomic_load_n(&arena_high_water, __ATOMIC_ACQUIRE);
  for (int32_t i = 0; i < count; i++) {
    const uintptr_t base = (uintptr_t)__atomic_load_n(&arena_table[i].base, __ATOMIC_ACQUIRE);
    if (base != 0 && arena_table[i].from_file && address >= base && address - base < arena_table[i].bytes) return i;
  }
  return -1;
}

static void pass_on(int number, siginfo_t *info, void *context) {
  if ((previous.sa_flags & SA_SIGINFO) != 0 && previous.sa_sigaction != NULL) {
    previous.sa_sigaction(number, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(number);
  } else if (previous.sa_handler == SIG_DFL) { /* the process dies as it would have, once this handler has returned */
    signal(SIGBUS, SIG_DFL);
    raise(SIGBUS);
  }
}

static void on_fault(int number, siginfo_t *info, void *context) {
  const uintptr_t address = (uintptr_t)info->si_addr;
  const int saved_errno = errno; /* the interrupted code may be about to read it */
  const int32_t owner = info->si_code > 0 ? arena_of(address) : -1; /* > 0: raised by the kernel, so the address is real */
  if (owner >= 0) {
    void *page = (void *)(address & ~(page_bytes - 1));
    if (mmap(page, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page) {
      __atomic_add_fetch(&arena_table[owner].faults, 1, __ATOMIC_RELAXED);
      __atomic_add_fetch(&faults, 1, __ATOMIC_RELEASE);
      errno = saved_errno;
      return;
    }
  }
  pass_on(number, info, context);
}

static void install(void) {
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
  page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, &previous);
}

void fault_handler_install(void) { pthread_once(&installed, install); }

uint64_t fault_count(void) { return __atomic_load_n(&faults, __ATOMIC_ACQUIRE); }

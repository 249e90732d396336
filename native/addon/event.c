/*
 * The registry of this process's eventfds.
 *
 * Owns which descriptor numbers are eventfds of ours. The invariant: event_wake() writes to a registered eventfd or not
 * at all. A worker that dies closes its eventfds; without the registry a late wake could write eight bytes into
 * whatever file or client connection got the number next.
 */
#include "addon.h"

#include <errno.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { DESCRIPTOR_LIMIT = 1 << 20 };

static uint8_t registered[DESCRIPTOR_LIMIT / 8];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static inline bool is_registered(int fd) {
  return fd >= 0 && fd < DESCRIPTOR_LIMIT && (registered[fd >> 3] & (1 << (fd & 7))) != 0;
}

int event_open(void) {
  int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (fd < 0) return -errno;
  if (fd >= DESCRIPTOR_LIMIT) {
    close(fd);
    return -EMFILE;
  }
  pthread_mutex_lock(&mutex);
  registered[fd >> 3] |= (uint8_t)(1 << (fd & 7));
  pthread_mutex_unlock(&mutex);
  return fd;
}

void event_close(int fd) {
  pthread_mutex_lock(&mutex);
  if (is_registered(fd)) {
    registered[fd >> 3] &= (uint8_t)~(1 << (fd & 7));
    close(fd);
  }
  pthread_mutex_unlock(&mutex);
}

int event_wake(int fd) {
  const uint64_t one = 1;
  int error = EBADF;
  pthread_mutex_lock(&mutex);
  if (is_registered(fd)) {
    ssize_t written;
    do {
      written = write(fd, &one, sizeof one);
    } while (written < 0 && errno == EINTR);
    /* EAGAIN: the counter is full, so the reader is awake in any case. */
    error = written < 0 && errno != EAGAIN ? errno : 0;
  }
  pthread_mutex_unlock(&mutex);
  return -error;
}

/*
 * Unix sockets, shared by the pumps of this process: a path has one socket, which no option of the kernel spreads over threads.
 *
 * Every member watches the socket (one of them wakes), and whoever accepts hands the connection to the next member in turn. Owns the
 * socket files and the connections between two members. The invariants: a socket file is removed only if nobody listens on it, or
 * with its last member; a connection that was handed over belongs to one member, and is closed only when no member is left.
 */
#include "pump.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

typedef struct handed_conn {
  int fd;
  uint8_t kind;
} handed_conn;

typedef struct unix_member {
  struct unix_member *next;
  const pump *owner;
  int wake_fd;
  bool is_paused;
  uint8_t kind;
  uint32_t count, capacity;
  handed_conn *handed; /* accepted by others, not yet taken */
} unix_member;

struct unix_socket {
  struct unix_socket *next;
  unix_member *members;
  unix_member *turn; /* who gets the next connection; NULL: the first */
  int fd;
  dev_t dev; /* of the socket file, so that only this one is removed later */
  ino_t ino;
  char path[sizeof((struct sockaddr_un *)0)->sun_path];
};

static unix_socket *sockets;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* ---- the socket file ---- */

/* True when the path is a socket file that nobody listens on. */
static bool is_stale(const struct sockaddr_un *address) {
  struct stat status;
  if (lstat(address->sun_path, &status) != 0 || !S_ISSOCK(status.st_mode)) return false;
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const bool is_refused = connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 && errno == ECONNREFUSED;
  close(fd);
  return is_refused;
}

static int bind_unix(int fd, const struct sockaddr_un *address) {
  if (bind(fd, (const struct sockaddr *)address, sizeof *address) == 0) return 0;
  if (errno != EADDRINUSE || !is_stale(address)) return errno;
  if (unlink(address->sun_path) != 0) return errno;
  return bind(fd, (const struct sockaddr *)address, sizeof *address) == 0 ? 0 : errno;
}

/* Gives the bound file its mode, before anybody can connect, listens, and notes which file it is. 0 or errno. */
static int begin_listening(unix_socket *s, int mode, int backlog, const char **syscall_name) {
  struct stat status;
  *syscall_name = "chmod";
  if (chmod(s->path, (mode_t)mode) != 0) return errno;
  *syscall_name = "listen";
  if (listen(s->fd, backlog) != 0) return errno;
  *syscall_name = "stat";
  if (stat(s->path, &status) != 0) return errno;
  s->dev = status.st_dev;
  s->ino = status.st_ino;
  return 0;
}

/* A socket on a path that this process has not got yet; NULL with *error set. */
static unix_socket *open_socket(const char *path, int mode, int backlog, int *error, const char **syscall_name) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  unix_socket *s = calloc(1, sizeof *s);
  *syscall_name = "calloc";
  *error = ENOMEM;
  if (s == NULL) return NULL;
  strcpy(address.sun_path, path);
  strcpy(s->path, path);
  *syscall_name = "socket";
  s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (s->fd < 0) {
    *error = errno;
    free(s);
    return NULL;
  }
  *syscall_name = "bind";
  *error = bind_unix(s->fd, &address);
  if (*error == 0) {
    *error = begin_listening(s, mode, backlog, syscall_name);
    if (*error == 0) return s;
    unlink(path);
  }
  close(s->fd);
  free(s);
  return NULL;
}

static bool is_own_file(const unix_socket *s) {
  struct stat status;
  return stat(s->path, &status) == 0 && status.st_dev == s->dev && status.st_ino == s->ino;
}

/* This process's socket on a path; one whose file somebody has replaced does not count. */
static unix_socket *find_socket(const char *path) {
  for (unix_socket *s = sockets; s != NULL; s = s->next) {
    if (strcmp(s->path, path) == 0 && is_own_file(s)) return s;
  }
  return NULL;
}

/* ---- members ---- */

static bool add_member(unix_socket *s, const pump *p, uint8_t kind) {
  unix_member *member = calloc(1, sizeof *member);
  if (member == NULL) return false;
  member->owner = p;
  member->wake_fd = p->wake_fd;
  member->kind = kind;
  member->next = s->members;
  s->members = member;
  return true;
}

/* Queues a connection for a member. Called under the mutex. */
static bool hand(unix_member *member, int fd) {
  if (member->count == member->capacity) {
    const uint32_t capacity = member->capacity == 0 ? 16 : member->capacity * 2;
    handed_conn *grown = realloc(member->handed, capacity * sizeof *grown);
    if (grown == NULL) return false;
    member->handed = grown;
    member->capacity = capacity;
  }
  member->handed[member->count++] = (handed_conn){.fd = fd, .kind = member->kind};
  return true;
}

/* The member whose turn it is, paused ones passed over; NULL when all are. */
static unix_member *next_member(unix_socket *s) {
  unix_member *first = s->turn != NULL ? s->turn : s->members;
  unix_member *member = first;
  if (first == NULL) return NULL;
  do {
    unix_member *after = member->next != NULL ? member->next : s->members;
    if (!member->is_paused) {
      s->turn = after;
      return member;
    }
    member = after;
  } while (member != first);
  return NULL;
}

/* What a leaving member had not taken goes to the others. */
static void pass_on(unix_socket *s, const unix_member *leaving) {
  for (uint32_t i = 0; i < leaving->count; i++) {
    unix_member *heir = next_member(s);
    if (heir != NULL && hand(heir, leaving->handed[i].fd)) (void)event_wake(heir->wake_fd);
    else close(leaving->handed[i].fd);
  }
}

static void close_socket(unix_socket *s) {
  unix_socket **at = &sockets;
  while (*at != s) at = &(*at)->next;
  *at = s->next;
  if (is_own_file(s)) unlink(s->path);
  close(s->fd);
  free(s);
}

int unix_join(const pump *p, const char *path, int mode, int backlog, uint8_t kind, unix_socket **joined, const char **syscall_name) {
  *syscall_name = "bind";
  if (path[0] == '\0' || strlen(path) >= sizeof sockets->path) return -ENAMETOOLONG;
  int error = 0;
  pthread_mutex_lock(&mutex);
  unix_socket *s = find_socket(path);
  if (s == NULL && (s = open_socket(path, mode, backlog, &error, syscall_name)) != NULL) {
    s->next = sockets;
    sockets = s;
  }
  int fd = -error;
  if (s != NULL) {
    *syscall_name = "dup";
    fd = fcntl(s->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) fd = -errno;
    if (fd >= 0 && !add_member(s, p, kind)) {
      close(fd);
      fd = -ENOMEM;
    }
    if (s->members == NULL) close_socket(s);
  }
  pthread_mutex_unlock(&mutex);
  *joined = s;
  return fd;
}

void unix_leave(const pump *p, unix_socket *s) {
  pthread_mutex_lock(&mutex);
  unix_member **at = &s->members;
  while ((*at)->owner != p) at = &(*at)->next;
  unix_member *gone = *at;
  *at = gone->next;
  if (s->turn == gone) s->turn = gone->next;
  pass_on(s, gone);
  free(gone->handed);
  free(gone);
  if (s->members == NULL) close_socket(s);
  pthread_mutex_unlock(&mutex);
}

void unix_pause(const pump *p, unix_socket *s, bool is_paused) {
  pthread_mutex_lock(&mutex);
  for (unix_member *member = s->members; member != NULL; member = member->next) {
    if (member->owner == p) member->is_paused = is_paused;
  }
  pthread_mutex_unlock(&mutex);
}

/* ---- connections ---- */

bool unix_hand_over(const pump *p, unix_socket *s, int fd) {
  bool is_handed = false;
  pthread_mutex_lock(&mutex);
  unix_member *member = next_member(s);
  if (member != NULL && member->owner != p && hand(member, fd)) {
    (void)event_wake(member->wake_fd);
    is_handed = true;
  }
  pthread_mutex_unlock(&mutex);
  return is_handed;
}

void unix_take_handed(pump *p) {
  pthread_mutex_lock(&mutex);
  for (unix_socket *s = sockets; s != NULL; s = s->next) {
    for (unix_member *member = s->members; member != NULL; member = member->next) {
      if (member->owner != p) continue;
      for (uint32_t i = 0; i < member->count; i++) (void)accept_conn(p, member->handed[i].fd, member->handed[i].kind);
      member->count = 0;
    }
  }
  pthread_mutex_unlock(&mutex);
}

/*
 * Listeners: TCP and UDP with SO_REUSEPORT (every worker has its own), unix sockets (pump_unix.c).
 *
 * Owns the listening sockets. The invariant: threads of this process share a port, another process gets EADDRINUSE as without
 * SO_REUSEPORT.
 */
#include "pump.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEEPALIVE_IDLE_S = 300, KEEPALIVE_INTERVAL_S = 100, KEEPALIVE_PROBES = 3 };

/* ---- ports this process listens on ---- */

typedef struct bound_address {
  struct bound_address *next;
  struct sockaddr_storage address;
  socklen_t bytes;
  int type;
  int count;
} bound_address;

static bound_address *bound_addresses;
static pthread_mutex_t bound_mutex = PTHREAD_MUTEX_INITIALIZER;

static bound_address **find_bound(const struct sockaddr_storage *address, socklen_t bytes, int type) {
  bound_address **at = &bound_addresses;
  while (*at != NULL && ((*at)->bytes != bytes || (*at)->type != type || memcmp(&(*at)->address, address, bytes) != 0)) at = &(*at)->next;
  return at;
}

static bool note_bound(const struct sockaddr_storage *address, socklen_t bytes, int type) {
  bound_address **at = find_bound(address, bytes, type);
  if (*at == NULL) {
    *at = calloc(1, sizeof **at);
    if (*at == NULL) return false;
    memcpy(&(*at)->address, address, bytes);
    (*at)->bytes = bytes;
    (*at)->type = type;
  }
  (*at)->count++;
  return true;
}

static void forget_bound(int fd, int type) {
  struct sockaddr_storage address = {0};
  socklen_t bytes = sizeof address;
  if (getsockname(fd, (struct sockaddr *)&address, &bytes) != 0) return;
  pthread_mutex_lock(&bound_mutex);
  bound_address **at = find_bound(&address, bytes, type);
  if (*at != NULL && --(*at)->count == 0) {
    bound_address *gone = *at;
    *at = gone->next;
    free(gone);
  }
  pthread_mutex_unlock(&bound_mutex);
}

/* ---- sockets ---- */

static int set_option(int fd, int level, int name, int value) { return setsockopt(fd, level, name, &value, sizeof value) == 0 ? 0 : errno; }

static void set_port(struct sockaddr_storage *address, int port) {
  if (address->ss_family == AF_INET6) {
    ((struct sockaddr_in6 *)address)->sin6_port = htons((uint16_t)port);
  } else {
    ((struct sockaddr_in *)address)->sin_port = htons((uint16_t)port);
  }
}

/* Numeric addresses need no resolver; of a name, its first IPv4 address, else its first. */
static int resolve(const char *host, int port, int type, struct sockaddr_storage *address, socklen_t *bytes) {
  const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = type, .ai_flags = AI_PASSIVE};
  struct addrinfo *found = NULL;
  const bool is_any = host[0] == '\0' || strcmp(host, "*") == 0;
  const int error = getaddrinfo(is_any ? "0.0.0.0" : host, NULL, &hints, &found);
  if (error != 0) return error;
  const struct addrinfo *chosen = found;
  for (const struct addrinfo *at = found; at != NULL; at = at->ai_next) {
    if (at->ai_family == AF_INET) {
      chosen = at;
      break;
    }
  }
  memset(address, 0, sizeof *address);
  memcpy(address, chosen->ai_addr, chosen->ai_addrlen);
  *bytes = chosen->ai_addrlen;
  freeaddrinfo(found);
  set_port(address, port);
  return 0;
}

/* Binds without SO_REUSEPORT for a moment: the kernel then says whether anybody else has the port. */
static int probe(const struct sockaddr_storage *address, socklen_t bytes, int type) {
  const int fd = socket(address->ss_family, type | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  int error = 0;
  if (type == SOCK_STREAM) error = set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  if (error == 0 && address->ss_family == AF_INET6) error = set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
  if (error == 0 && bind(fd, (const struct sockaddr *)address, bytes) != 0) error = errno;
  close(fd);
  return error;
}

/* Options of the listener are inherited by what it accepts: no setsockopt per connection. */
static int set_socket_options(int fd, int family, int type) {
  int error = set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
  if (error == 0 && family == AF_INET6) error = set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
  if (type != SOCK_STREAM) return error;
  if (error == 0) error = set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  if (error == 0) error = set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  if (error == 0) error = set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  if (error == 0) error = set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
  if (error == 0) error = set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
  if (error == 0) error = set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES);
  return error;
}

/* Opens, binds and notes an Internet socket. Called under the mutex. Descriptor or -errno. */
static int open_bound(struct sockaddr_storage *address, socklen_t bytes, int port, int type, const char **syscall_name) {
  *syscall_name = "bind";
  if (port != 0 && *find_bound(address, bytes, type) == NULL) {
    const int error = probe(address, bytes, type);
    if (error != 0) return -error;
  }
  *syscall_name = "socket";
  const int fd = socket(address->ss_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -errno;
  *syscall_name = "setsockopt";
  int error = set_socket_options(fd, address->ss_family, type);
  if (error == 0 && bind(fd, (struct sockaddr *)address, bytes) != 0) {
    *syscall_name = "bind";
    error = errno;
  }
  if (error == 0 && getsockname(fd, (struct sockaddr *)address, &bytes) != 0) error = errno;
  if (error == 0 && !note_bound(address, bytes, type)) error = ENOMEM;
  if (error == 0) return fd;
  close(fd);
  return -error;
}

/* ---- listeners ---- */

static int32_t add_listener(pump *p, int fd, int domain, int type, uint8_t kind) {
  pump_listener *grown = realloc(p->listeners, ((size_t)p->listener_count + 1) * sizeof *grown);
  if (grown == NULL) return -ENOMEM;
  p->listeners = grown;
  grown[p->listener_count] = (pump_listener){.fd = fd, .domain = domain, .type = type, .kind = kind};
  return p->listener_count++;
}

static int32_t start_listener(pump *p, int fd, int domain, int type, uint8_t kind, const char **syscall_name) {
  const int32_t number = add_listener(p, fd, domain, type, kind);
  if (number < 0) return number;
  *syscall_name = "epoll_ctl";
  if (type == SOCK_STREAM) {
    listeners_watch(p);
    return number;
  }
  struct epoll_event watch = {.events = EPOLLIN, .data.u64 = watch_data(WATCH_DATAGRAMS, 0, number)};
  if (epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &watch) == 0) return number;
  p->listener_count--;
  return -errno;
}

static int32_t listen_internet(pump *p, const char *host, int port, int backlog, int type, uint8_t kind, const char **syscall_name,
                               bool *is_name_error) {
  struct sockaddr_storage address;
  socklen_t bytes;
  *syscall_name = "getaddrinfo";
  const int error = resolve(host, port, type, &address, &bytes);
  *is_name_error = error != 0;
  if (error != 0) return error == EAI_SYSTEM ? -errno : -ENOENT;
  pthread_mutex_lock(&bound_mutex);
  const int fd = open_bound(&address, bytes, port, type, syscall_name);
  int status = fd < 0 ? fd : 0;
  if (fd >= 0 && type == SOCK_STREAM) { /* under the mutex: from here on another thread's probe would see us */
    *syscall_name = "listen";
    if (listen(fd, backlog) != 0) status = -errno;
  }
  pthread_mutex_unlock(&bound_mutex);
  if (status == 0) status = start_listener(p, fd, address.ss_family, type, kind, syscall_name);
  if (status < 0 && fd >= 0) {
    forget_bound(fd, type);
    close(fd);
  }
  return status;
}

int32_t listen_tcp(pump *p, const char *host, int port, int backlog, uint8_t kind, const char **syscall_name, bool *is_name_error) {
  return listen_internet(p, host, port, backlog, SOCK_STREAM, kind, syscall_name, is_name_error);
}

int32_t listen_udp(pump *p, const char *host, int port, uint8_t kind, const char **syscall_name, bool *is_name_error) {
  return listen_internet(p, host, port, 0, SOCK_DGRAM, kind, syscall_name, is_name_error);
}

int32_t listen_unix(pump *p, const char *path, int mode, int backlog, uint8_t kind, const char **syscall_name) {
  unix_socket *joined;
  const int fd = unix_join(p, path, mode, backlog, kind, &joined, syscall_name);
  if (fd < 0) return fd;
  const int32_t number = start_listener(p, fd, AF_UNIX, SOCK_STREAM, kind, syscall_name);
  if (number >= 0) {
    p->listeners[number].shared = joined;
    return number;
  }
  unix_leave(p, joined);
  close(fd);
  return number;
}

void listener_close(pump *p, int32_t number) {
  pump_listener *listener = &p->listeners[number];
  if (listener->fd < 0) return;
  if (listener->shared != NULL) {
    /* The socket lives on in other members: this epoll must forget it by hand. */
    if (listener->is_watched) (void)epoll_ctl(p->epoll_fd, EPOLL_CTL_DEL, listener->fd, NULL);
    unix_leave(p, listener->shared);
    listener->shared = NULL;
  } else {
    forget_bound(listener->fd, listener->type);
  }
  close(listener->fd);
  listener->fd = -1;
  listener->is_watched = false;
}

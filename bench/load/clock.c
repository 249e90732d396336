/*
 * See clock.h. A thread that ends during a run takes its schedstat with it; the servers measured here keep theirs.
 */
#include "clock.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void fail(const char *path) {
  perror(path);
  exit(1);
}

static uint64_t thread_ns(int pid, const char *thread) {
  char path[300];
  snprintf(path, sizeof path, "/proc/%d/task/%s/schedstat", pid, thread);
  FILE *file = fopen(path, "r");
  if (file == NULL) return 0; /* the thread ended between readdir and here */
  unsigned long long ns = 0;
  int fields = fscanf(file, "%llu", &ns);
  fclose(file);
  return fields == 1 ? ns : 0;
}

static void read_stat(int pid, struct cpu_time *time) {
  char path[64];
  char text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  FILE *file = fopen(path, "r");
  if (file == NULL) fail(path);
  size_t bytes = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[bytes] = '\0';
  const char *after_name = strrchr(text, ')');
  unsigned long long user = 0;
  unsigned long long kernel = 0;
  if (after_name == NULL ||
      sscanf(after_name + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user, &kernel) != 2) {
    fail(path);
  }
  uint64_t tick_ns = 1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK);
  time->user_ns = user * tick_ns;
  time->kernel_ns = kernel * tick_ns;
}

struct cpu_time cpu_time_of(int pid) {
  struct cpu_time time = {0, 0, 0};
  if (pid == 0) return time;
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/task", pid);
  DIR *tasks = opendir(path);
  if (tasks == NULL) fail(path);
  for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
    if (task->d_name[0] != '.') time.total_ns += thread_ns(pid, task->d_name);
  }
  closedir(tasks);
  read_stat(pid, &time);
  return time;
}

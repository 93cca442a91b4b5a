// LD_PRELOAD: lets calls fail as they do on a machine that has run out of something.
//
//   FLEET_REFUSE=PROGRAM:KIND:N    the N-th call of this kind fails, once; N+: and all later ones; 0: none
//   FLEET_REFUSE_COUNT=FILE        a file of at least 16 bytes of zeros: the calls of all processes of that program, then the
//                                  number of those that failed
//
// PROGRAM is the name of an executable file. KIND: thread, process, file, socket, memory, write; pidfd and close_range: a kernel
// that lacks them. All processes of the program count together, also those that it has forked. Only calls that go through the
// dynamic linker count, so none of the C library's own. vfork() is left out: a function around it would return twice.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum kind { THREAD, PROCESS, DESCRIPTOR, SOCKET, MEMORY, WRITE, PIDFD, CLOSE_RANGE, KINDS };
static const char* const kind_names[KINDS] = {"thread", "process", "file",  "socket",
                                              "memory", "write",   "pidfd", "close_range"};

struct counters {
  _Atomic uint64_t calls, refused;
};

static struct counters* counters;  // NULL: this program is not concerned
static enum kind chosen;
static uint64_t first;
static int goes_on;

static int is_program(const char* name, size_t length) {
  char path[4096];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
  if (size <= 0) return 0;
  path[size] = '\0';
  const char* own = strrchr(path, '/') + 1;
  return strlen(own) == length && memcmp(own, name, length) == 0;
}

__attribute__((constructor)) static void set_up(void) {
  const char *wanted = getenv("FLEET_REFUSE"), *file = getenv("FLEET_REFUSE_COUNT");
  const char* kind = wanted ? strchr(wanted, ':') : NULL;
  const char* number = kind ? strchr(kind + 1, ':') : NULL;
  if (!number || !file || !is_program(wanted, (size_t)(kind - wanted))) return;
  ++kind;
  int found = KINDS;
  for (int i = 0; i < KINDS; ++i) {
    const size_t length = strlen(kind_names[i]);
    if (length == (size_t)(number - kind) && memcmp(kind, kind_names[i], length) == 0) found = i;
  }
  if (found == KINDS) return;
  chosen = (enum kind)found;
  char* end = NULL;
  first = strtoull(number + 1, &end, 10);
  goes_on = *end == '+';
  // Not by way of the functions below.
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, file, O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  void* memory = (void*)syscall(SYS_mmap, NULL, sizeof(struct counters), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0L);
  syscall(SYS_close, fd);
  if (memory != MAP_FAILED) counters = memory;
}

// Whether this call fails.
static int refuse(enum kind kind) {
  if (!counters || kind != chosen) return 0;
  const uint64_t number = atomic_fetch_add(&counters->calls, 1) + 1;
  if (first == 0 || number < first || (number > first && !goes_on)) return 0;
  atomic_fetch_add(&counters->refused, 1);
  return 1;
}

#define REAL(name)                                                            \
  __extension__({                                                             \
    static __typeof__(&name) found;                                           \
    if (!found) found = (__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name); \
    found;                                                                    \
  })
#define REFUSE(kind, error) \
  if (refuse(kind)) return errno = (error), -1

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
  if (refuse(THREAD)) return EAGAIN;
  return REAL(pthread_create)(thread, attributes, body, argument);
}

pid_t fork(void) {
  REFUSE(PROCESS, EAGAIN);
  return REAL(fork)();
}

int clone(int (*body)(void*), void* stack, int flags, void* argument, ...) {
  REFUSE(PROCESS, EAGAIN);
  return REAL(clone)(body, stack, flags, argument);
}

int posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions, const posix_spawnattr_t* attributes,
                char* const argv[], char* const environment[]) {
  if (refuse(PROCESS)) return EAGAIN;
  return REAL(posix_spawn)(pid, path, actions, attributes, argv, environment);
}

int posix_spawnp(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions, const posix_spawnattr_t* attributes,
                 char* const argv[], char* const environment[]) {
  if (refuse(PROCESS)) return EAGAIN;
  return REAL(posix_spawnp)(pid, path, actions, attributes, argv, environment);
}

// The mode is given if the flags create a file.
#define MODE_OF(flags)                                  \
  mode_t mode = 0;                                      \
  if ((flags) & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))) { \
    va_list rest;                                       \
    va_start(rest, flags);                              \
    mode = va_arg(rest, mode_t);                        \
    va_end(rest);                                       \
  }

int open(const char* path, int flags, ...) {
  MODE_OF(flags)
  REFUSE(DESCRIPTOR, EMFILE);
  return REAL(open)(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  MODE_OF(flags)
  REFUSE(DESCRIPTOR, EMFILE);
  return REAL(open64)(path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  MODE_OF(flags)
  REFUSE(DESCRIPTOR, EMFILE);
  return REAL(openat)(folder, path, flags, mode);
}

int openat64(int folder, const char* path, int flags, ...) {
  MODE_OF(flags)
  REFUSE(DESCRIPTOR, EMFILE);
  return REAL(openat64)(folder, path, flags, mode);
}

int memfd_create(const char* name, unsigned flags) {
  REFUSE(DESCRIPTOR, EMFILE);
  return REAL(memfd_create)(name, flags);
}

int pipe2(int ends[2], int flags) {
  REFUSE(DESCRIPTOR, EMFILE);
  return REAL(pipe2)(ends, flags);
}

int eventfd(unsigned value, int flags) {
  REFUSE(DESCRIPTOR, EMFILE);
  return REAL(eventfd)(value, flags);
}

int epoll_create1(int flags) {
  REFUSE(DESCRIPTOR, EMFILE);
  return REAL(epoll_create1)(flags);
}

int inotify_init1(int flags) {
  REFUSE(DESCRIPTOR, EMFILE);
  return REAL(inotify_init1)(flags);
}

int timerfd_create(int clock, int flags) {
  REFUSE(DESCRIPTOR, EMFILE);
  return REAL(timerfd_create)(clock, flags);
}

int socket(int domain, int type, int protocol) {
  REFUSE(SOCKET, EMFILE);
  return REAL(socket)(domain, type, protocol);
}

int socketpair(int domain, int type, int protocol, int ends[2]) {
  REFUSE(SOCKET, EMFILE);
  return REAL(socketpair)(domain, type, protocol, ends);
}

void* mmap(void* address, size_t size, int protection, int flags, int file, off_t offset) {
  if (refuse(MEMORY)) return errno = ENOMEM, MAP_FAILED;
  return REAL(mmap)(address, size, protection, flags, file, offset);
}

void* mmap64(void* address, size_t size, int protection, int flags, int file, off64_t offset) {
  if (refuse(MEMORY)) return errno = ENOMEM, MAP_FAILED;
  return REAL(mmap64)(address, size, protection, flags, file, offset);
}

// Only files lie on a disk that may be full.
static int is_on_disk(int file) {
  struct stat status;
  return counters && chosen == WRITE && fstat(file, &status) == 0 && S_ISREG(status.st_mode);
}

ssize_t write(int file, const void* bytes, size_t size) {
  if (is_on_disk(file)) REFUSE(WRITE, ENOSPC);
  return REAL(write)(file, bytes, size);
}

ssize_t pwrite(int file, const void* bytes, size_t size, off_t offset) {
  if (is_on_disk(file)) REFUSE(WRITE, ENOSPC);
  return REAL(pwrite)(file, bytes, size, offset);
}

ssize_t pwrite64(int file, const void* bytes, size_t size, off64_t offset) {
  if (is_on_disk(file)) REFUSE(WRITE, ENOSPC);
  return REAL(pwrite64)(file, bytes, size, offset);
}

long syscall(long number, ...) {
  long given[6];
  va_list rest;
  va_start(rest, number);
  for (int i = 0; i < 6; ++i) given[i] = va_arg(rest, long);
  va_end(rest);
  if (number == SYS_pidfd_open) REFUSE(PIDFD, ENOSYS);
  if (number == SYS_close_range) REFUSE(CLOSE_RANGE, ENOSYS);
  return REAL(syscall)(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}

int close_range(unsigned from, unsigned to, int flags) {
  REFUSE(CLOSE_RANGE, ENOSYS);
  return REAL(close_range)(from, to, flags);
}

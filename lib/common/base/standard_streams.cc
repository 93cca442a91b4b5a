#include "base/standard_streams.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <initializer_list>

namespace fleet {

// open() returns the lowest free number. Child processes inherit it, hence no O_CLOEXEC.
void reserve_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    const int opened = ::open("/dev/null", O_RDONLY);
    if (opened < 0) (void)::open("/", O_PATH);  // in a container without /dev
  }
}

bool flush_standard_output() {
  errno = 0;
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (written || errno == EPIPE) return true;
  pollfd reader = {STDOUT_FILENO, 0, 0};  // the reason of an earlier failure is not known
  return ::poll(&reader, 1, 0) == 1 && (reader.revents & (POLLERR | POLLHUP)) != 0;
}

bool standard_output_is_closed() {
  const int flags = ::fcntl(STDOUT_FILENO, F_GETFL);
  return flags == -1 || (flags & O_ACCMODE) == O_RDONLY;
}

}  // namespace fleet

#include "base/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace fleet {

// open() returns the lowest free number. Child processes inherit it, hence no O_CLOEXEC.
void reserve_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    const int opened = ::open("/dev/null", O_RDONLY);
    if (opened < 0) (void)::open("/", O_PATH);  // in a container without /dev
  }
}

}  // namespace fleet

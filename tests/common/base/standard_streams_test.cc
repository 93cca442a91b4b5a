#include "base/standard_streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>

namespace fleet {
namespace {

// The exit code of `body` in a child process without those of the descriptors 0 to 2 whose bits are
// set.
int in_process_without(int closed, const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (int fd = 0; fd <= 2; ++fd) {
      if (closed & (1 << fd)) ::close(fd);
    }
    ::_exit(body());
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(StandardStreams, ClosedInAnyCombination_AreNoFileOfTheProgram) {
  for (int closed = 0; closed < 8; ++closed) {
    const auto next_file = [] {
      reserve_standard_streams();
      return ::open("/dev/zero", O_RDONLY);
    };
    EXPECT_GE(in_process_without(closed, next_file), 3) << closed;
  }
}

TEST(StandardStreams, Reserved_EndInputAndRefuseOutput) {
  const auto use = [] {
    reserve_standard_streams();
    char byte = 0;
    if (::read(0, &byte, 1) != 0) return 10;
    if (::write(1, "x", 1) != -1 || errno != EBADF) return 11;
    return ::write(2, "x", 1) == -1 && errno == EBADF ? 0 : 12;
  };
  EXPECT_EQ(in_process_without(7, use), 0);
}

TEST(StandardStreams, Open_StayAsTheyAre) {
  const auto compare = [] {
    int ends[2];
    if (::pipe(ends) != 0 || ::dup2(ends[1], 1) != 1) return 20;
    reserve_standard_streams();
    char byte = 0;
    return ::write(1, "x", 1) == 1 && ::read(ends[0], &byte, 1) == 1 && byte == 'x' ? 0 : 21;
  };
  EXPECT_EQ(in_process_without(0, compare), 0);
}

}  // namespace
}  // namespace fleet

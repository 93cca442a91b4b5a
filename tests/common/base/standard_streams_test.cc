#include "base/standard_streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
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

// The exit code of a child that prints to this file or pipe: 0 if flush_standard_output() is true.
int printing_to(int output) {
  return in_process_without(0, [output] {
    ::signal(SIGPIPE, SIG_IGN);
    if (::dup2(output, 1) != 1) return 30;
    std::puts("text");
    return flush_standard_output() ? 0 : 1;
  });
}

TEST(FlushStandardOutput, FullDisk_IsALoss) {
  const int full = ::open("/dev/full", O_WRONLY);
  ASSERT_GE(full, 0);
  EXPECT_EQ(printing_to(full), 1);
  ::close(full);
}

TEST(FlushStandardOutput, ReaderHasLeft_IsNone) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_EQ(printing_to(ends[1]), 0);
  ::close(ends[0]);
  EXPECT_EQ(printing_to(ends[1]), 0);
  ::close(ends[1]);
}

// The reason of a failure before the last write is not known.
TEST(FlushStandardOutput, ReaderHadLeftEarlier_IsNone) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  const auto print_twice = [&] {
    ::signal(SIGPIPE, SIG_IGN);
    ::dup2(ends[1], 1);
    std::puts("text");
    std::fflush(stdout);
    return flush_standard_output() ? 0 : 1;
  };
  EXPECT_EQ(in_process_without(0, print_twice), 0);
  ::close(ends[1]);
}

TEST(StandardOutput, Closed_IsKnown) {
  const auto closed = [] {
    reserve_standard_streams();
    return standard_output_is_closed() ? 1 : 0;
  };
  EXPECT_EQ(in_process_without(2, closed), 1);
  EXPECT_EQ(in_process_without(0, closed), 0);
}

}  // namespace
}  // namespace fleet

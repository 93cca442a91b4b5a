#include "base/process_title.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "base/file.h"

namespace fleet {
namespace {

bool in_child(const std::function<bool()>& run) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(run() ? 0 : 1);
  int status = 0;
  return ::waitpid(child, &status, 0) == child && status == 0;
}

std::string shown() {
  const std::string line = read_file("/proc/self/cmdline");
  return line.substr(0, line.find('\0'));
}

TEST(ProcessTitle, Title_IsShownInsteadOfTheCommandLine) {
  EXPECT_TRUE(in_child([] {
    set_process_title("a title");
    return shown() == "a title";
  }));
  EXPECT_NE(shown(), "a title");
}

TEST(ProcessTitle, LongTitle_KeepsTheEnvironment) {
  EXPECT_TRUE(in_child([] {
    std::vector<std::string> before, after;
    for (char** variable = environ; *variable; ++variable) before.emplace_back(*variable);
    const std::string title(read_file("/proc/self/cmdline").size() + 20, 't');
    set_process_title(title);
    for (char** variable = environ; *variable; ++variable) after.emplace_back(*variable);
    // Where the environment has been changed, there is less room.
    return before == after && title.starts_with(shown()) && !shown().empty();
  }));
}

TEST(ProcessTitle, SecondTitle_ReplacesTheFirst) {
  EXPECT_TRUE(in_child([] {
    set_process_title("a long first title");
    set_process_title("short");
    return shown() == "short";
  }));
}

}  // namespace
}  // namespace fleet

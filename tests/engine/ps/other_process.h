// Another process of this test program, which runs one of its disabled tests.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"

namespace fleet::ps {

class TestProcess {
 public:
  // environment: additional variables.
  TestProcess(const std::string& test,
              const std::vector<std::pair<std::string, std::string>>& environment) {
    std::string program(4096, '\0');
    const ssize_t size = ::readlink("/proc/self/exe", program.data(), program.size());
    if (size <= 0) throw_errno("cannot find this program");
    program.resize(static_cast<size_t>(size));
    std::string filter = "--gtest_filter=" + test;
    std::string disabled = "--gtest_also_run_disabled_tests";
    char* arguments[] = {program.data(), filter.data(), disabled.data(), nullptr};
    for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
    const int error = ::posix_spawn(&pid_, program.c_str(), nullptr, nullptr, arguments, environ);
    for (const auto& [name, value] : environment) ::unsetenv(name.c_str());
    EXPECT_EQ(error, 0);
  }
  ~TestProcess() {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
    wait();
  }
  TestProcess(const TestProcess&) = delete;

  void send(int signal) { ::kill(pid_, signal); }
  // Its exit code; -1: a signal ended it.
  int wait() {
    int status = 0;
    if (pid_ > 0) ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
};

}  // namespace fleet::ps

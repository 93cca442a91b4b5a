// A terminal, from the side of the person.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "base/file.h"

namespace fleet {

// Keeps what a program writes to it.
class TestTerminal {
 public:
  TestTerminal() : master_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    ::grantpt(master_.get());
    ::unlockpt(master_.get());
    resize(80, 24);
  }
  const std::string& seen() const { return seen_; }
  std::string path() const { return ::ptsname(master_.get()); }
  void resize(unsigned short columns, unsigned short rows) const {
    const winsize size = {rows, columns, 0, 0};
    ::ioctl(master_.get(), TIOCSWINSZ, &size);
  }
  void type(const std::string& keys) const { ::write(master_.get(), keys.data(), keys.size()); }
  // Reads until this has come, after what was waited for before. The bound is against hanging.
  bool wait_for(const std::string& text) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (std::chrono::steady_clock::now() < end) {
      const size_t at = seen_.find(text, done_);
      if (at != std::string::npos) return done_ = at + text.size(), true;
      pollfd ready = {master_.get(), POLLIN, 0};
      char chunk[4096];
      if (::poll(&ready, 1, 100) <= 0) continue;
      const ssize_t n = ::read(master_.get(), chunk, sizeof chunk);
      if (n > 0) seen_.append(chunk, static_cast<size_t>(n));
    }
    return false;
  }

 private:
  UniqueFd master_;
  std::string seen_;
  size_t done_ = 0;
};

// Gives this process, and those that it starts, this standard input.
class StandardInput {
 public:
  explicit StandardInput(const std::string& path) : before_(::fcntl(0, F_DUPFD_CLOEXEC, 3)) {
    const UniqueFd file(::open(path.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC));
    ::dup2(file.get(), 0);
  }
  ~StandardInput() { ::dup2(before_.get(), 0); }
  StandardInput(const StandardInput&) = delete;

 private:
  const UniqueFd before_;
};

}  // namespace fleet

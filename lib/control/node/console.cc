#include "node/console.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"

namespace fleet {

int open_nonblocking(int fd) {
  struct stat status;
  const bool piped = ::fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode);
  if (!piped && ::isatty(fd) != 1) return -1;
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  return ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

bool same_destination(int fd, int other) {
  struct stat one, two;
  return ::fstat(fd, &one) == 0 && ::fstat(other, &two) == 0 && one.st_dev == two.st_dev &&
         one.st_ino == two.st_ino;
}

Console::Console(EventLoop& loop, int fd) : out_(loop) {
  struct stat status;
  terminal_ = ::isatty(fd) == 1;
  // epoll rejects files and /dev/null; those never block for long.
  const bool known = ::fstat(fd, &status) == 0;
  pollable_ = terminal_ || (known && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)));
  int own = open_nonblocking(fd);
  own_ = own >= 0;
  // Otherwise write pieces that fit, when the descriptor is writable. `out_` closes its
  // descriptor, hence the copy.
  if (own < 0) own = ::fcntl(fd, F_DUPFD_CLOEXEC, 3);
  if (own < 0) {
    refuse(errno);
    return;
  }
  try {
    out_.assign(UniqueFd(own));
  } catch (const SystemError& error) {
    refuse(error.error());
  }
}

void Console::write(std::string_view output) {
  if (output.empty()) return;
  if (broken_) {
    if (lost_ == 0) lost_ = refused_;
    return;
  }
  if (skipping_ || (drops_ && waiting() > kFull)) output = skip(output);
  if (output.empty()) return;
  if (written_ > kFull / 2) {
    waiting_.erase(0, written_);
    written_ = 0;
  }
  waiting_.append(output);
  shown_whole_ = output.back() == '\n' || output.back() == '\r';
  pump();
}

// While lines are dropped: the part of `output` that is still written.
std::string_view Console::skip(std::string_view output) {
  if (!skipping_) {
    skipping_ = true;
    // Finish the line in progress first.
    const size_t end = shown_whole_ ? 0 : std::min(output.find('\n'), output.size() - 1) + 1;
    waiting_.append(output.substr(0, end));
    shown_whole_ = shown_whole_ || output[end - 1] == '\n';
    skipped_whole_ = true;
    output.remove_prefix(end);
  }
  size_t end = output.size();
  if (waiting() < kFull / 2) {
    end = skipped_whole_ ? 0 : std::min(output.find('\n'), output.size() - 1) + 1;
  }
  const std::string_view skipped = output.substr(0, end);
  skipped_bytes_ += static_cast<int64_t>(skipped.size());
  skipped_lines_ += std::count(skipped.begin(), skipped.end(), '\n');
  if (!skipped.empty()) skipped_whole_ = skipped.back() == '\n';
  output.remove_prefix(end);
  if (!output.empty()) report_skipped();
  return output;
}

void Console::report_skipped() {
  if (!shown_whole_) waiting_ += '\n';
  waiting_ += "[fleetrun] " + std::to_string(skipped_lines_) + " lines (" +
              mebibytes(static_cast<size_t>(skipped_bytes_)) +
              ") are not shown because the terminal is too slow" +
              (log_hint_.empty() ? "" : "; see " + log_hint_) + "\n";
  shown_whole_ = true;
  skipping_ = false;
  skipped_lines_ = skipped_bytes_ = 0;
}

// The reader is gone, or the disk is full; the log files still have everything.
void Console::give_up(int error) {
  if (!is_readers_loss(error)) lost_ = error;
  broken_ = true;
  skipping_ = false;
  waiting_.clear();
  written_ = 0;
}

// It cannot be written at all: not a loss before there is output.
void Console::refuse(int error) {
  broken_ = true;
  if (!is_readers_loss(error)) refused_ = error;
}

// Nobody wants the output any longer: a pipe or terminal was closed, or the parent process closed
// the descriptor.
bool Console::is_readers_loss(int error) const {
  return error == EPIPE || error == ECONNRESET || error == EBADF || (terminal_ && error == EIO);
}

bool Console::report_loss() {
  if (lost_ != 0 && !std::exchange(loss_reported_, true)) {
    const SystemError loss(ErrorCode::kIo, "cannot be written", lost_, "standard output");
    spdlog::error("{}", loss.what());
  }
  return lost_ != 0;
}

// As much as can be written without splitting a line.
size_t Console::next_piece() const {
  const size_t most = pollable_ ? PIPE_BUF : 1 << 16;
  if (waiting() <= most) return waiting();
  const size_t end = waiting_.rfind('\n', written_ + most - 1);
  return end == std::string::npos || end < written_ ? most : end + 1 - written_;
}

bool Console::write_piece() {
  const ssize_t n = ::write(out_.get(), waiting_.data() + written_, next_piece());
  if (n < 0 && errno != EINTR && errno != EAGAIN) give_up(errno);
  if (n <= 0) return n < 0 && errno == EINTR;
  written_ += static_cast<size_t>(n);
  taken_ += n;
  return true;
}

void Console::pump() {
  if (waits_) return;
  for (;;) {
    if (waiting() == 0 && skipping_) report_skipped();
    if (waiting() == 0) break;
    pollfd state = {out_.get(), POLLOUT, 0};
    if (pollable_ && !own_ && ::poll(&state, 1, 0) != 1) break;
    if (!write_piece()) break;
  }
  if (idle()) {
    waiting_.clear();
    written_ = 0;
    if (on_drained_) on_drained_();
    return;
  }
  waits_ = true;
  out_.wait(LoopDescriptor::Event::kWritable, [this](std::error_code error) {
    waits_ = false;
    if (error) give_up(error.value());
    const bool was_full = full();
    pump();
    if (was_full && !full() && !idle() && on_drained_) on_drained_();
  });
}

}  // namespace fleet

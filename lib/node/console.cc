#include "node/console.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace fleet {

namespace asio = boost::asio;

Console::Console(asio::io_context& loop, int fd) : out_(loop) {
  struct stat status;
  // epoll takes no files and no /dev/null; those never block for long.
  const bool pollable = ::fstat(fd, &status) == 0 &&
                        (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode) || ::isatty(fd));
  pollable_ = pollable;
  // A descriptor of its own: Asio closes what it holds.
  const int own = ::fcntl(fd, F_DUPFD_CLOEXEC, 3);
  broken_ = own < 0;
  if (!broken_) {
    boost::system::error_code error;
    out_.assign(own, error);
    if (error) broken_ = true;
  }
}

void Console::write(std::string_view output) {
  if (broken_) return;
  if (written_ > kFull / 2) {
    waiting_.erase(0, written_);
    written_ = 0;
  }
  waiting_.append(output);
  pump();
}

void Console::forget() {
  waiting_.clear();
  written_ = 0;
}

bool Console::write_piece() {
  const size_t left = waiting_.size() - written_;
  const size_t size = std::min<size_t>(left, pollable_ ? PIPE_BUF : 1 << 16);
  const ssize_t n = ::write(out_.native_handle(), waiting_.data() + written_, size);
  if (n < 0 && errno != EINTR && errno != EAGAIN) {
    broken_ = true;  // the reader is gone; the log file still has everything
    forget();
  }
  if (n > 0) written_ += static_cast<size_t>(n);
  return n > 0;
}

void Console::pump() {
  if (waits_) return;
  while (!idle()) {
    pollfd state = {out_.native_handle(), POLLOUT, 0};
    if (pollable_ && ::poll(&state, 1, 0) != 1) break;
    if (!write_piece()) break;
  }
  if (idle()) {
    forget();
    if (on_room_) on_room_();
    return;
  }
  waits_ = true;
  out_.async_wait(asio::posix::stream_descriptor::wait_write,
                  [this](boost::system::error_code error) {
                    waits_ = false;
                    if (error == asio::error::operation_aborted) return;
                    if (error) {
                      broken_ = true;
                      forget();
                    }
                    const bool was_full = full();
                    pump();
                    if (was_full && !full() && on_room_) on_room_();
                  });
}

}  // namespace fleet

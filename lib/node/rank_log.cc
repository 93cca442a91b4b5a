#include "node/rank_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/log.h"

namespace fleet {

namespace asio = boost::asio;

RankLog::RankLog(asio::io_context& loop, UniqueFd pipe, const std::string& path, Console* console,
                 const std::string& prefix, bool draws_bar)
    : pipe_(loop, pipe.release()),
      file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)),
      path_(path),
      console_(console),
      draws_bar_(draws_bar) {
  if (!prefix.empty()) lines_.emplace(prefix);
  wait();
}

void RankLog::wait() {
  if (waits_ || closed_) return;
  waits_ = true;
  pipe_.async_wait(asio::posix::stream_descriptor::wait_read,
                   [this](boost::system::error_code error) {
                     waits_ = false;
                     if (error) return;
                     // One piece a turn: a rank that writes without end must not starve the loop.
                     read_once();
                     if (!console_ || !console_->full()) wait();
                   });
}

void RankLog::resume() { wait(); }

bool RankLog::read_once() {
  char buffer[1 << 16];
  const ssize_t n = ::read(pipe_.native_handle(), buffer, sizeof buffer);
  if (n > 0) {
    bytes_ += n;
    append({buffer, static_cast<size_t>(n)});
    return true;
  }
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return errno == EINTR;
  closed_ = true;
  return false;
}

void RankLog::drain() {
  // At most a few pipes full: whoever else writes to it may never stop.
  for (int i = 0; i < 64 && !closed_ && read_once(); ++i) {
  }
  if (console_ && lines_) console_->write(lines_->rest());
}

void RankLog::append(std::string_view output) {
  if (console_) console_->write(lines_ ? lines_->pass(output) : output);
  if (draws_bar_) {
    const std::string lines = filter_.pass(output);
    tail_.add(lines);
    write_file(lines);
  } else {
    tail_.add(output);
    write_file(output);
  }
}

void RankLog::write_file(std::string_view output) {
  for (size_t done = 0; done < output.size();) {
    const ssize_t n = file_ ? ::write(file_.get(), output.data() + done, output.size() - done) : -1;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      if (!complained_) spdlog::error("{}: cannot write the log: {}", path_, std::strerror(errno));
      complained_ = true;  // the job is worth more than its log
      return;
    }
    done += static_cast<size_t>(n);
  }
}

}  // namespace fleet

#include "base/standard_error.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/file.h"
#include "base/mutex.h"
#include "base/thread.h"

namespace fleet {
namespace {

constexpr size_t kMaxBuffered = 1 << 20;
constexpr int kPatienceMs = 2'000;

class StandardError {
 public:
  void write(std::string_view lines) {
    const MutexLock lock(mutex_);
    if (!kept_.empty()) return keep(lines);
    lines.remove_prefix(take(lines));
    if (!lines.empty()) keep(lines);
  }

  void flush() {
    const MutexLock lock(mutex_);
    for (size_t before = 0; !kept_.empty() && taken_ != before;) {
      before = taken_;
      room_.wait_for(mutex_, std::chrono::milliseconds(kPatienceMs),
                     [&]() FLEET_REQUIRES(mutex_) { return kept_.empty() || taken_ != before; });
    }
  }

 private:
  // Opens standard error a second time, non-blocking: the file description that others share stays
  // unchanged. Opens it again if standard error has become another file.
  int descriptor() FLEET_REQUIRES(mutex_) {
    struct stat now;
    if (::fstat(STDERR_FILENO, &now) != 0) return -1;
    if (opened_ && now.st_dev == device_ && now.st_ino == inode_) {
      return own_ ? own_.get() : STDERR_FILENO;
    }
    opened_ = true;
    device_ = now.st_dev, inode_ = now.st_ino;
    socket_ = S_ISSOCK(now.st_mode);
    own_.reset();
    if (S_ISFIFO(now.st_mode) || ::isatty(STDERR_FILENO) == 1) {
      own_ = UniqueFd(::open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    }
    return own_ ? own_.get() : STDERR_FILENO;
  }

  // Writes as much as possible without blocking. Reports all of it as written if no one can receive
  // it any longer.
  size_t take(std::string_view text) FLEET_REQUIRES(mutex_) {
    const int fd = descriptor();
    size_t done = 0;
    while (done < text.size()) {
      const std::string_view rest = text.substr(done);
      const ssize_t n = socket_ ? ::send(fd, rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL)
                                : ::write(fd, rest.data(), rest.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
      if (n < 0) return text.size();
      done += static_cast<size_t>(n);
    }
    return done;
  }

  void keep(std::string_view lines) FLEET_REQUIRES(mutex_) {
    if (kept_.size() + lines.size() > kMaxBuffered) return;
    kept_ += lines;
    if (writing_) return;
    // Block signals in the new thread: other threads wait for them.
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    // If it cannot be had, the next line tries again.
    writing_ = start_detached([this] { write_kept(); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void write_kept() {
    const MutexLock lock(mutex_);
    while (!kept_.empty()) {
      pollfd room = {descriptor(), POLLOUT, 0};
      {
        const MutexUnlock unlock(mutex_);
        ::poll(&room, 1, -1);
      }
      const size_t taken = take(kept_);
      kept_.erase(0, taken);
      taken_ += taken;
      room_.notify_all();
    }
    writing_ = false;
  }

  Mutex mutex_;
  CondVar room_;
  std::string kept_ FLEET_GUARDED_BY(mutex_);
  size_t taken_ FLEET_GUARDED_BY(mutex_) = 1;  // bytes of kept_ that were written, plus 1
  bool opened_ FLEET_GUARDED_BY(mutex_) = false;
  bool socket_ FLEET_GUARDED_BY(mutex_) = false;
  bool writing_ FLEET_GUARDED_BY(mutex_) = false;
  UniqueFd own_ FLEET_GUARDED_BY(mutex_);
  dev_t device_ FLEET_GUARDED_BY(mutex_) = 0;
  ino_t inode_ FLEET_GUARDED_BY(mutex_) = 0;
};

// Never destroyed: other threads may log until the process ends.
StandardError& standard_error() {
  static auto* const one = new StandardError;
  return *one;
}

}  // namespace

void write_standard_error(std::string_view lines) { standard_error().write(lines); }

void flush_standard_error() { standard_error().flush(); }

}  // namespace fleet

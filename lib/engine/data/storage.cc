#include "data/storage.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "base/log.h"
#include "base/number_text.h"
#include "base/terminal_text.h"

namespace fleet::data {
namespace {

constexpr double kPauses[] = {0.1, 1};  // seconds before the second and third try of one file
constexpr int kPauseCount = 2;
constexpr double kLongestDelay = 1;  // between two tries while the storage is away
constexpr double kSlice = 0.1;       // a wait may delay the end of a pipeline by this

std::string limit_text(double timeout) {
  return timeout > 0 ? "for up to " + number_text(timeout) + " s" : "without limit";
}

}  // namespace

bool may_pass(int error) {
  switch (error) {
    case EAGAIN:
    case ECONNABORTED:
    case ECONNREFUSED:
    case ECONNRESET:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case EIO:
    case ENETDOWN:
    case ENETUNREACH:
    case ENOTCONN:
    case EREMOTEIO:
    case ESHUTDOWN:
    case ESTALE:
    case ETIMEDOUT:
      return true;
    default:
      return false;
  }
}

void check_answer(int error, const std::string& path) {
  if (!may_pass(error)) return;
  throw SystemError(ErrorCode::kIo, "cannot be examined", error, path);
}

void sleep_seconds(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

void wait_for_storage(double timeout, const std::function<void()>& body, const WaitClock& clock) {
  double began = -1, delay = kSlice;
  for (;;) {
    try {
      return body();
    } catch (const SystemError& error) {
      if (!may_pass(error.error())) throw;
      const double now = clock.now();
      if (began < 0) {
        began = now;
        spdlog::warn("{}; trying again {} (data.read_timeout)", error.what(), limit_text(timeout));
      }
      if (timeout > 0 && now - began >= timeout) throw;
    }
    clock.sleep(delay);
    delay = std::min(2 * delay, kLongestDelay);
  }
}

Sample read_patiently(const Source& source, int64_t index, std::vector<uint8_t>& scratch) {
  for (const double pause : kPauses) {
    try {
      return source.read(index, scratch);
    } catch (const SystemError& error) {
      if (!may_pass(error.error())) throw;
    }
    sleep_seconds(pause);
  }
  return source.read(index, scratch);
}

void StorageState::has_read(int64_t sample) {
  last_read_.store(sample, std::memory_order_relaxed);
  if (!away_.load(std::memory_order_relaxed)) return;
  const MutexLock lock(mutex_);
  if (!away_.exchange(false)) return;
  spdlog::info("the data can be read again, after {:.1f} s", options_.clock.now() - away_since_);
}

double StorageState::away_since(double now, const std::string& why, const std::string& where) {
  const MutexLock lock(mutex_);
  if (away_.exchange(true)) return away_since_;
  away_since_ = now;
  spdlog::warn("{}: {}; other files cannot be read either: waiting {} (data.read_timeout)",
               shown_path(where), why, limit_text(options_.timeout));
  return now;
}

void StorageState::pause(double seconds) const {
  const double end = options_.clock.now() + seconds;
  for (;;) {
    const std::atomic<int>* interrupt = interrupt_;
    if (cancelled_ || (interrupt && *interrupt != 0)) throw ReadCancelled();
    const double left = end - options_.clock.now();
    if (left <= 0) return;
    options_.clock.sleep(std::min(left, kSlice));
  }
}

bool ReadRetry::again(const SystemError& error, const std::function<bool()>& others_answer) {
  if (state_.was_there() && !others_answer()) {
    wait(error.failure(), error.where());
    return true;
  }
  // The first time at once: the storage may have come back since the error.
  const int tries = tries_++;
  if (tries == 0) return true;
  if (!may_pass(error.error()) || tries > kPauseCount) return false;
  state_.pause(kPauses[tries - 1]);
  return true;
}

void ReadRetry::wait(const std::string& why, const std::string& where) {
  const double now = state_.options_.clock.now(), timeout = state_.options_.timeout;
  if (began_ < 0) began_ = state_.away_since(now, why, where);
  double delay = delay_;
  if (timeout > 0) {
    const double left = began_ + timeout - now;
    if (left <= 0) {
      throw Error(ErrorCode::kIo,
                  "the data cannot be read for " + number_text(timeout) + " s, the last: " + why,
                  where, "check their file system; data.read_timeout says how long to wait for it");
    }
    delay = std::min(delay, left);
  }
  state_.pause(delay);
  delay_ = std::min(2 * delay_, kLongestDelay);
}

}  // namespace fleet::data

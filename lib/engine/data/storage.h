// Retries reads from a file server or disk that does not answer for a while. Internal to data.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/mutex.h"
#include "base/running_clock.h"
#include "data/source.h"

namespace fleet::data {

// Whether this errno of a file server or disk may pass: ESTALE, EIO, ETIMEDOUT and their like. A
// file that does not exist (ENOENT) or may not be read (EACCES) is another matter.
bool may_pass(int error);

// Throws SystemError (kIo) if may_pass(error): for functions that would take it for a missing file.
void check_answer(int error, const std::string& path);

void sleep_seconds(double seconds);
// The time during waits, in which suspended time does not count; tests replace it.
struct WaitClock {
  Clock now = running_seconds;
  std::function<void(double seconds)> sleep = sleep_seconds;
};

// Calls body again as long as it throws a SystemError that may pass, for up to `timeout` seconds
// (0: without limit), with a line; then rethrows. For the start of a job.
void wait_for_storage(double timeout, const std::function<void()>& body,
                      const WaitClock& clock = {});

// source.read() with two more tries, within about a second, if the error may pass.
Sample read_patiently(const Source& source, int64_t index, std::vector<uint8_t>& scratch);

// Thrown by a wait that cancel() ends.
struct ReadCancelled {};

// Shared by the readers of one source: whether its storage answers. Thread-safe.
class StorageState {
 public:
  struct Options {
    double timeout = 60;    // seconds to wait for data that are away; 0: without limit
    bool was_there = true;  // the data were seen when they were opened
    WaitClock clock;
  };
  explicit StorageState(Options options) : options_(std::move(options)) {}

  // Ends waits, and those that begin while it is set.
  void cancel(bool on) { cancelled_ = on; }
  // A number that is not 0 ends waits, too; null: none.
  void set_interrupt(const std::atomic<int>* interrupt) { interrupt_ = interrupt; }

  void has_read(int64_t sample);
  int64_t last_read() const { return last_read_.load(std::memory_order_relaxed); }  // -1: none yet
  bool was_there() const { return options_.was_there || last_read() >= 0; }

 private:
  friend class ReadRetry;
  void pause(double seconds) const;
  // Since when the storage is away; now, with a line, if this is news.
  double away_since(double now, const std::string& why, const std::string& where);

  const Options options_;
  std::atomic<bool> cancelled_{false};
  std::atomic<const std::atomic<int>*> interrupt_{nullptr};
  std::atomic<int64_t> last_read_{-1};
  Mutex mutex_;
  std::atomic<bool> away_{false};                   // changes under the lock
  double away_since_ FLEET_GUARDED_BY(mutex_) = 0;  // seconds
};

// The retries of one read. For one thread.
class ReadRetry {
 public:
  explicit ReadRetry(StorageState& state) : state_(state) {}

  // Whether to read again after this error. If no other file answers either, the storage is away:
  // waits, and throws kIo after data.read_timeout. Else two pauses if the error may pass. Throws
  // ReadCancelled.
  bool again(const SystemError& error, const std::function<bool()>& others_answer);
  // Waits for storage that is away: some time at each call. kIo after data.read_timeout, naming
  // `where`. Throws ReadCancelled.
  void wait(const std::string& why, const std::string& where);

 private:
  StorageState& state_;
  int tries_ = 0;
  double began_ = -1, delay_ = 0.1;  // seconds; -1: does not wait
};

}  // namespace fleet::data

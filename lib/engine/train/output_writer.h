// Writes the files of a run on a thread, so that training never waits for a disk.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"

namespace fleet {

//   OutputWriter writer("output/lenet/run-001");
//   writer.write([=] { append_to(file, line); });
//   for (const std::string& line : writer.take_messages()) spdlog::warn("{}", line);
// Thread-safe.
class OutputWriter {
 public:
  // How long a write may take before a message says so.
  static constexpr std::chrono::seconds kPatience{10};
  // Writes that may wait while the disk does not answer.
  static constexpr size_t kLongestQueue = 100'000;

  // folder: where the files are, for messages.
  explicit OutputWriter(std::string folder, std::chrono::milliseconds patience = kPatience,
                        size_t longest_queue = kLongestQueue);
  // Finishes all writes first, however long the disk takes.
  ~OutputWriter();

  // Runs `task` after the earlier ones, on the thread. If the queue is full, the oldest waiting
  // task is dropped. A task that throws does not end the others.
  void write(std::function<void()> task);
  // Messages for the user since the last call, a line each: the first failure after a success,
  // a folder that does not answer, and the end of that.
  std::vector<std::string> take_messages();
  // Waits until all writes are done; false: timeout.
  bool wait_for(std::chrono::milliseconds time);
  // Writes that are not done.
  size_t pending();

 private:
  using Clock = std::chrono::steady_clock;
  void run();
  void run_task(const std::function<void()>& task) FLEET_EXCLUDES(mutex_);
  double seconds_of_write() const FLEET_REQUIRES(mutex_);
  void note_slow_write() FLEET_REQUIRES(mutex_);
  void note_end_of_write() FLEET_REQUIRES(mutex_);

  const std::string folder_;
  const Clock::duration patience_;
  const size_t longest_queue_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> queue_ FLEET_GUARDED_BY(mutex_);
  bool writing_ FLEET_GUARDED_BY(mutex_) = false;
  Clock::time_point begun_ FLEET_GUARDED_BY(mutex_);  // when the current write began
  bool slow_ FLEET_GUARDED_BY(mutex_) = false;        // a message has said so
  bool fails_ FLEET_GUARDED_BY(mutex_) = false;       // the last write failed
  size_t dropped_ FLEET_GUARDED_BY(mutex_) = 0;
  bool ends_ FLEET_GUARDED_BY(mutex_) = false;
  std::vector<std::string> messages_ FLEET_GUARDED_BY(mutex_);
  Thread thread_;
};

}  // namespace fleet

#include <exception>
#include <utility>

#include "base/clock.h"
#include "train/run_output.h"

namespace fleet {

OutputWriter::OutputWriter(std::string folder, std::chrono::milliseconds patience,
                           size_t longest_queue)
    : folder_(std::move(folder)), patience_(patience), longest_queue_(longest_queue) {
  thread_ = Thread("output", [this] { run(); });
}

OutputWriter::~OutputWriter() {
  const MutexLock lock(mutex_);
  ends_ = true;
  changed_.notify_all();
}  // ~Thread joins

void OutputWriter::write(std::function<void()> task) {
  const MutexLock lock(mutex_);
  if (queue_.size() >= longest_queue_) {
    queue_.pop_front();
    note_slow_write();
    if (dropped_++ == 0 && !slow_) {
      messages_.push_back("metrics come faster than " + folder_ + " takes them: the oldest of " +
                          std::to_string(longest_queue_) +
                          " waiting writes are dropped; raise train.fetch_every");
    }
  }
  queue_.push_back(std::move(task));
  changed_.notify_all();
}

void OutputWriter::run() {
  const MutexLock lock(mutex_);
  for (;;) {
    while (queue_.empty() && !ends_) changed_.wait(mutex_);
    if (queue_.empty()) return;
    const std::function<void()> task = std::move(queue_.front());
    queue_.pop_front();
    writing_ = true;
    begun_ = Clock::now();
    {
      const MutexUnlock unlock(mutex_);
      run_task(task);
    }
    note_end_of_write();
    writing_ = false;
    changed_.notify_all();
  }
}

void OutputWriter::run_task(const std::function<void()>& task) {
  std::string failure;
  try {
    task();
  } catch (const std::exception& error) {
    failure = error.what();
  }
  const MutexLock lock(mutex_);
  if (!failure.empty() && !fails_) {
    messages_.push_back(failure +
                        "; this line is lost, and so are later ones until writing works again");
  }
  fails_ = !failure.empty();
}

double OutputWriter::seconds_of_write() const {
  return std::chrono::duration<double>(Clock::now() - begun_).count();
}

void OutputWriter::note_slow_write() {
  if (!writing_ || slow_ || Clock::now() - begun_ < patience_) return;
  slow_ = true;
  messages_.push_back("writing to " + folder_ + " has not finished for " +
                      format_duration(seconds_of_write()) +
                      ": the disk or the network mount does not answer; the job does not wait, its "
                      "metrics stay in memory until then");
}

void OutputWriter::note_end_of_write() {
  if (!std::exchange(slow_, false)) return;
  std::string line = folder_ + " answers again after " + format_duration(seconds_of_write());
  if (dropped_ > 0) line += "; the oldest " + std::to_string(dropped_) + " writes were dropped";
  dropped_ = 0;
  messages_.push_back(std::move(line));
}

std::vector<std::string> OutputWriter::take_messages() {
  const MutexLock lock(mutex_);
  note_slow_write();
  return std::exchange(messages_, {});
}

bool OutputWriter::wait_for(std::chrono::milliseconds time) {
  const MutexLock lock(mutex_);
  return changed_.wait_for(mutex_, time,
                           [&]() FLEET_REQUIRES(mutex_) { return queue_.empty() && !writing_; });
}

size_t OutputWriter::pending() {
  const MutexLock lock(mutex_);
  return queue_.size() + (writing_ ? 1 : 0);
}

}  // namespace fleet

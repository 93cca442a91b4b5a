#include "text/part_workers.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/thread.h"

namespace fleet::text {

bool PartWorkers::take(size_t* part) {
  const MutexLock lock(mutex_);
  // Parts before a failed one have been handed out already: their errors are earlier.
  if (error_ || next_ >= count_) return false;
  *part = next_++;
  return true;
}

void PartWorkers::failed(size_t part) {
  const MutexLock lock(mutex_);
  if (error_ && failed_part_ < part) return;
  failed_part_ = part;
  error_ = std::current_exception();
}

void PartWorkers::work(const std::function<Work()>& make_worker) {
  size_t part = 0;
  try {
    const Work work = make_worker();
    while (take(&part)) work(part);
  } catch (...) {
    failed(part);
  }
  const MutexLock lock(mutex_);
  --working_;
  changed_.notify_all();
}

void PartWorkers::run(size_t count, int threads, const std::function<Work()>& make_worker,
                      const std::function<void()>& waiting) {
  if (count == 0) return;
  const size_t wanted = threads > 0 ? static_cast<size_t>(threads) : available_cores().size();
  PartWorkers workers(count);
  std::vector<Thread> running;
  {
    const MutexLock lock(workers.mutex_);
    running = start_threads(std::min(wanted, count), "text", [&] { workers.work(make_worker); });
    workers.working_ = static_cast<int>(running.size());
    while (workers.working_ > 0) {
      workers.changed_.wait_for(workers.mutex_, std::chrono::milliseconds(200));
      const MutexUnlock unlock(workers.mutex_);
      waiting();
    }
  }
  for (Thread& thread : running) thread.join();
  const MutexLock lock(workers.mutex_);
  if (workers.error_) std::rethrow_exception(workers.error_);
}

}  // namespace fleet::text

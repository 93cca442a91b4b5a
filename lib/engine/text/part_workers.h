// Threads that share the parts of a corpus.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>

#include "base/mutex.h"

namespace fleet::text {

// Hands the numbers 0 to count-1 to threads, in order. Each thread makes its own worker with
// `make_worker`, which takes one number at a time.
class PartWorkers {
 public:
  using Work = std::function<void(size_t part)>;
  // threads: 0: one for each core. Returns when all is done; rethrows the error of the earliest
  // part that failed, so that the same corpus always gives the same message. `waiting` is called
  // from the calling thread, several times a second.
  static void run(size_t count, int threads, const std::function<Work()>& make_worker,
                  const std::function<void()>& waiting);

 private:
  explicit PartWorkers(size_t count) : count_(count) {}
  void work(const std::function<Work()>& make_worker);
  bool take(size_t* part);
  void failed(size_t part);

  const size_t count_;
  Mutex mutex_;
  CondVar changed_;
  size_t next_ FLEET_GUARDED_BY(mutex_) = 0;
  int working_ FLEET_GUARDED_BY(mutex_) = 0;
  size_t failed_part_ FLEET_GUARDED_BY(mutex_) = SIZE_MAX;
  std::exception_ptr error_ FLEET_GUARDED_BY(mutex_);
};

}  // namespace fleet::text

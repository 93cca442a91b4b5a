// Threads that share the shards of a call, so that reads of a disk overlap.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"

namespace fleet::ps {

// Any thread; calls may overlap.
class ShardWorkers {
 public:
  // Besides the threads that call.
  explicit ShardWorkers(int threads);
  ~ShardWorkers();
  ShardWorkers(const ShardWorkers&) = delete;
  ShardWorkers& operator=(const ShardWorkers&) = delete;

  // Calls work(i) once for each i in 0..count-1, in any order, and returns when all have ended.
  // Throws the first exception of them; some i may be left out then.
  void run(size_t count, const std::function<void(size_t)>& work);

 private:
  struct Call {
    const std::function<void(size_t)>* work;
    size_t count;
    std::atomic<size_t> next{0};
    int helpers = 0;                     // threads that are in it; guarded by mutex_
    std::exception_ptr error = nullptr;  // guarded by mutex_
  };
  void help();
  void take_part(Call& call);

  Mutex mutex_;
  CondVar changed_;
  std::deque<Call*> calls_ FLEET_GUARDED_BY(mutex_);  // those with shards that no worker has taken
  bool stopping_ FLEET_GUARDED_BY(mutex_) = false;
  std::vector<Thread> threads_;
};

}  // namespace fleet::ps

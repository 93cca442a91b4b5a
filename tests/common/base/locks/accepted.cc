// Correct uses of base/mutex.h: scripts/check_locks.sh accepts every line. refused.cc has the same
// class with mistakes.
#include <chrono>

#include "base/mutex.h"

namespace fleet {

class Counter {
 public:
  void add() {
    const MutexLock lock(mutex_);
    ++value_;
  }
  void add_twice() {
    const MutexLock lock(mutex_);
    add_locked();
    {
      const MutexUnlock unlock(mutex_);
      add();
    }
    *shared_ = value_;
  }
  int wait() {
    const MutexLock lock(mutex_);
    while (value_ == 0) changed_.wait(mutex_);
    changed_.wait_for(mutex_, std::chrono::seconds(1),
                      [&]() FLEET_REQUIRES(mutex_) { return value_ > 1; });
    return value_;
  }

 private:
  void add_locked() FLEET_REQUIRES(mutex_) { ++value_; }

  Mutex mutex_;
  CondVar changed_;
  int value_ FLEET_GUARDED_BY(mutex_) = 0;
  int* const shared_ FLEET_PT_GUARDED_BY(mutex_) = new int;
};

int use() {
  Counter counter;
  counter.add();
  counter.add_twice();
  return counter.wait();
}

}  // namespace fleet

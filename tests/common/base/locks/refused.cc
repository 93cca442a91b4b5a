// Mistakes that scripts/check_locks.sh must refuse: those in the lines marked so, and no others.
#include <chrono>

#include "base/mutex.h"

namespace fleet {

class Counter {
 public:
  void add() FLEET_EXCLUDES(mutex_) {
    ++value_;  // refused
  }
  void add_twice() {
    add_locked();  // refused
    const MutexLock lock(mutex_);
    {
      const MutexUnlock unlock(mutex_);
      ++value_;  // refused
    }
    add();  // refused
  }
  void publish() {
    *shared_ = 1;  // refused
  }
  void wait() {
    changed_.wait(mutex_);  // refused
    const MutexLock lock(mutex_);
    changed_.wait_for(mutex_, std::chrono::seconds(1), [&] {
      return value_ > 1;  // refused
    });
  }
  void lock_twice() {
    const MutexLock lock(mutex_);
    const MutexLock again(mutex_);  // refused
  }
  void keep() {
    mutex_.lock();
    ++value_;
  }  // refused

 private:
  void add_locked() FLEET_REQUIRES(mutex_) { ++value_; }

  Mutex mutex_;
  CondVar changed_;
  int value_ FLEET_GUARDED_BY(mutex_) = 0;
  int* const shared_ FLEET_PT_GUARDED_BY(mutex_) = new int;
};

void use() {
  Counter counter;
  counter.add();
  counter.add_twice();
  counter.publish();
  counter.wait();
  counter.lock_twice();
  counter.keep();
}

}  // namespace fleet

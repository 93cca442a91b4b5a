// A mutex whose use the compiler checks: clang's -Wthread-safety (scripts/check_locks.sh) refuses
// access to a guarded member without its lock. Other compilers ignore the annotations.
//
//   class Queue {
//    public:
//     int pop() {
//       const MutexLock lock(mutex_);
//       while (items_.empty()) filled_.wait(mutex_);
//       return take_first();
//     }
//
//    private:
//     int take_first() FLEET_REQUIRES(mutex_);
//     Mutex mutex_;
//     CondVar filled_;
//     std::deque<int> items_ FLEET_GUARDED_BY(mutex_);
//   };
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#ifdef __clang__
#define FLEET_THREAD_ANNOTATION(...) __attribute__((__VA_ARGS__))
#else
#define FLEET_THREAD_ANNOTATION(...)
#endif

#define FLEET_CAPABILITY(kind) FLEET_THREAD_ANNOTATION(capability(kind))
#define FLEET_SCOPED_CAPABILITY FLEET_THREAD_ANNOTATION(scoped_lockable)
// On a member or a static variable: access it, or what it points to, only with the lock held.
#define FLEET_GUARDED_BY(mutex) FLEET_THREAD_ANNOTATION(guarded_by(mutex))
#define FLEET_PT_GUARDED_BY(mutex) FLEET_THREAD_ANNOTATION(pt_guarded_by(mutex))
// On a function or lambda: call it with the lock held, or not held.
#define FLEET_REQUIRES(...) FLEET_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define FLEET_EXCLUDES(...) FLEET_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
// On a function: it takes the lock, or releases it. Without an argument: the lock of *this.
#define FLEET_ACQUIRE(...) FLEET_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define FLEET_TRY_ACQUIRE(...) FLEET_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define FLEET_RELEASE(...) FLEET_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
// On a function: after the call, the analysis takes the lock as held.
#define FLEET_ASSERT_CAPABILITY(mutex) FLEET_THREAD_ANNOTATION(assert_capability(mutex))
#define FLEET_RETURN_CAPABILITY(mutex) FLEET_THREAD_ANNOTATION(lock_returned(mutex))
#define FLEET_NO_THREAD_SAFETY_ANALYSIS FLEET_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace fleet {

class FLEET_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  void lock() FLEET_ACQUIRE() { mutex_.lock(); }
  bool try_lock() FLEET_TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  void unlock() FLEET_RELEASE() { mutex_.unlock(); }
  // For a lock that the caller holds under a name that the analysis cannot recognize. It checks
  // nothing at run time: say in a comment why the lock is held.
  void assert_held() const FLEET_ASSERT_CAPABILITY(this) {}

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds the lock during its own lifetime.
class FLEET_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) FLEET_ACQUIRE(mutex) : mutex_(mutex) { mutex.lock(); }
  ~MutexLock() FLEET_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Releases a lock that the caller holds, and takes it again at the end of its own lifetime, also
// when an exception ends it.
class FLEET_SCOPED_CAPABILITY MutexUnlock {
 public:
  explicit MutexUnlock(Mutex& mutex) FLEET_RELEASE(mutex) : mutex_(mutex) { mutex.unlock(); }
  ~MutexUnlock() FLEET_RELEASE() { mutex_.lock(); }  // the end of the release: takes the lock
  MutexUnlock(const MutexUnlock&) = delete;
  MutexUnlock& operator=(const MutexUnlock&) = delete;

 private:
  Mutex& mutex_;
};

// std::condition_variable for a Mutex, at the same cost. Prefer a loop to a predicate:
// `while (!ready_) changed_.wait(mutex_);`. A predicate over guarded members is a lambda with an
// annotation: `[&]() FLEET_REQUIRES(mutex_) { return ready_; }`.
class CondVar {
 public:
  CondVar() = default;
  CondVar(const CondVar&) = delete;
  CondVar& operator=(const CondVar&) = delete;
  void notify_one() noexcept { condition_.notify_one(); }
  void notify_all() noexcept { condition_.notify_all(); }

  // All waits release the mutex while they wait. Without a predicate they may also end for no
  // reason.
  void wait(Mutex& mutex) FLEET_REQUIRES(mutex) {
    Adopted lock(mutex);
    condition_.wait(lock.native);
  }
  template <typename Predicate>
  void wait(Mutex& mutex, Predicate ready) FLEET_REQUIRES(mutex) FLEET_NO_THREAD_SAFETY_ANALYSIS {
    while (!ready()) wait(mutex);
  }

  // Without a predicate: false on timeout. With one: whether it is true.
  template <typename Clock, typename Duration>
  bool wait_until(Mutex& mutex, const std::chrono::time_point<Clock, Duration>& deadline)
      FLEET_REQUIRES(mutex) {
    Adopted lock(mutex);
    return condition_.wait_until(lock.native, deadline) == std::cv_status::no_timeout;
  }
  template <typename Clock, typename Duration, typename Predicate>
  bool wait_until(Mutex& mutex, const std::chrono::time_point<Clock, Duration>& deadline,
                  Predicate ready) FLEET_REQUIRES(mutex) FLEET_NO_THREAD_SAFETY_ANALYSIS {
    while (!ready()) {
      if (!wait_until(mutex, deadline)) return ready();
    }
    return true;
  }
  template <typename Rep, typename Period>
  bool wait_for(Mutex& mutex, const std::chrono::duration<Rep, Period>& time)
      FLEET_REQUIRES(mutex) {
    Adopted lock(mutex);
    return condition_.wait_for(lock.native, time) == std::cv_status::no_timeout;
  }
  template <typename Rep, typename Period, typename Predicate>
  bool wait_for(Mutex& mutex, const std::chrono::duration<Rep, Period>& time, Predicate ready)
      FLEET_REQUIRES(mutex) FLEET_NO_THREAD_SAFETY_ANALYSIS {
    Adopted lock(mutex);
    return condition_.wait_for(lock.native, time, std::move(ready));
  }

 private:
  // The caller's lock in the form that std::condition_variable takes.
  struct Adopted {
    explicit Adopted(Mutex& mutex) : native(mutex.mutex_, std::adopt_lock) {}
    ~Adopted() { native.release(); }
    std::unique_lock<std::mutex> native;
  };
  std::condition_variable condition_;
};

}  // namespace fleet

#include "base/mutex.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <type_traits>
#include <vector>

#include "base/thread.h"

namespace fleet {
namespace {

// No cost over the standard classes; a static Mutex needs no construction and no destruction.
static_assert(sizeof(Mutex) == sizeof(std::mutex));
static_assert(sizeof(CondVar) == sizeof(std::condition_variable));
static_assert(sizeof(MutexLock) == sizeof(std::lock_guard<std::mutex>));
static_assert(std::is_trivially_destructible_v<Mutex>);
constinit Mutex constant_initialized;

constexpr std::chrono::seconds kLong{60};
constexpr std::chrono::milliseconds kShort{20};

// Whether another thread holds the mutex, or this one does.
bool is_held(Mutex& mutex) {
  bool taken = false;
  Thread("try", [&] {
    taken = mutex.try_lock();
    if (taken) mutex.unlock();
  }).join();
  return !taken;
}

TEST(MutexLock, SeveralThreads_OneAtATime) {
  Mutex mutex;
  int count = 0;
  std::vector<Thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back("count", [&] {
      for (int j = 0; j < 10'000; ++j) {
        const MutexLock lock(mutex);
        ++count;
      }
    });
  }
  for (Thread& thread : threads) thread.join();
  EXPECT_EQ(count, 40'000);
}

TEST(MutexLock, ItsLifetime_HoldsTheLock) {
  {
    const MutexLock lock(constant_initialized);
    EXPECT_TRUE(is_held(constant_initialized));
  }
  EXPECT_FALSE(is_held(constant_initialized));
}

TEST(MutexUnlock, ItsLifetime_ReleasesTheLock) {
  Mutex mutex;
  const MutexLock lock(mutex);
  {
    const MutexUnlock unlock(mutex);
    EXPECT_FALSE(is_held(mutex));
  }
  EXPECT_TRUE(is_held(mutex));
}

TEST(MutexUnlock, Exception_TakesTheLockAgain) {
  Mutex mutex;
  const MutexLock lock(mutex);
  try {
    const MutexUnlock unlock(mutex);
    throw std::runtime_error("any");
  } catch (const std::runtime_error&) {
    EXPECT_TRUE(is_held(mutex));
  }
}

TEST(CondVar, WaitInALoop_SeesTheChange) {
  Mutex mutex;
  CondVar changed;
  bool ready = false;
  Thread thread("notify", [&] {
    const MutexLock lock(mutex);
    ready = true;
    changed.notify_all();
  });
  const MutexLock lock(mutex);
  while (!ready) changed.wait(mutex);
  EXPECT_TRUE(is_held(mutex));
}

TEST(CondVar, Predicate_EndsTheWait) {
  Mutex mutex;
  CondVar changed;
  int value = 0;
  Thread thread("notify", [&] {
    for (int i = 0; i < 3; ++i) {
      const MutexLock lock(mutex);
      ++value;
      changed.notify_one();
    }
  });
  const MutexLock lock(mutex);
  changed.wait(mutex, [&] { return value >= 1; });
  EXPECT_TRUE(changed.wait_for(mutex, kLong, [&] { return value >= 2; }));
  EXPECT_TRUE(changed.wait_until(mutex, std::chrono::steady_clock::now() + kLong,
                                 [&] { return value == 3; }));
  EXPECT_TRUE(is_held(mutex));
}

TEST(CondVar, TimeIsOver_ReturnsFalseAndHoldsTheLock) {
  Mutex mutex;
  CondVar changed;
  const auto never = [] { return false; };
  const MutexLock lock(mutex);
  const auto start = std::chrono::steady_clock::now();
  while (changed.wait_for(mutex, kShort)) {  // may end early, for no reason
  }
  while (changed.wait_until(mutex, start + 2 * kShort)) {
  }
  EXPECT_FALSE(changed.wait_for(mutex, kShort, never));
  EXPECT_FALSE(changed.wait_until(mutex, start + 4 * kShort, never));
  EXPECT_GE(std::chrono::steady_clock::now() - start, 4 * kShort);
  EXPECT_TRUE(is_held(mutex));
}

TEST(CondVar, PredicateThrows_HoldsTheLock) {
  Mutex mutex;
  CondVar changed;
  const auto fails = []() -> bool { throw std::runtime_error("any"); };
  const MutexLock lock(mutex);
  EXPECT_THROW(changed.wait(mutex, fails), std::runtime_error);
  EXPECT_THROW(changed.wait_for(mutex, kShort, fails), std::runtime_error);
  EXPECT_TRUE(is_held(mutex));
}

}  // namespace
}  // namespace fleet

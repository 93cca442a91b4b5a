#include "transport/memory_guard.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>
#include <vector>

namespace fleet {
namespace {

TEST(MemoryGuard, MoreThanItsLimit_IsReportedOnce) {
  std::promise<void> exceeded;
  MemoryGuard guard(64 << 20, [&] { exceeded.set_value(); });  // a second call would throw
  const std::vector<char> much(256 << 20, 'x');
  EXPECT_EQ(exceeded.get_future().wait_for(std::chrono::minutes(1)), std::future_status::ready);
  EXPECT_EQ(much.back(), 'x');
}

TEST(MemoryGuard, Less_IsNot) {
  bool exceeded = false;
  {
    MemoryGuard guard(int64_t{1} << 40, [&] { exceeded = true; });
    const std::vector<char> some(64 << 20, 'x');
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    EXPECT_EQ(some.back(), 'x');
  }
  EXPECT_FALSE(exceeded);
}

}  // namespace
}  // namespace fleet

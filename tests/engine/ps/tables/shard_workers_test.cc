#include "ps/tables/shard_workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace fleet::ps {
namespace {

TEST(ShardWorkers, CallsThatOverlap_HaveEachShardOnce) {
  ShardWorkers workers(3);
  std::vector<Thread> callers = start_threads(4, "caller", [&] {
    for (int call = 0; call < 50; ++call) {
      std::vector<std::atomic<int>> times(200);
      workers.run(times.size(), [&](size_t i) { ++times[i]; });
      for (const auto& one : times) ASSERT_EQ(one, 1);
    }
  });
  for (Thread& caller : callers) caller.join();
}

TEST(ShardWorkers, AShardThatThrows_EndsItsCallOnly) {
  ShardWorkers workers(3);
  EXPECT_THROW(workers.run(100,
                           [](size_t i) {
                             if (i == 40) throw std::runtime_error("the disk is full");
                           }),
               std::runtime_error);
  std::atomic<int> done{0};
  workers.run(100, [&](size_t) { ++done; });
  EXPECT_EQ(done, 100);
}

TEST(ShardWorkers, WithoutShards_ReturnsAtOnce) {
  ShardWorkers workers(1);
  workers.run(0, [](size_t) { FAIL(); });
}

}  // namespace
}  // namespace fleet::ps

#include "observe/counter.h"

#include <gmock/gmock.h>

#include <chrono>
#include <thread>
#include <vector>

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(Counters, AddedFromSeveralThreads_LoseNothing) {
  Counters counters;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      Counter& counter = counters.counter("images");
      for (int i = 0; i < 10000; ++i) counter.add();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counters.counter("images").value(), 40000);
}

TEST(Counters, Snapshot_NamesCountersAndTimers) {
  Counters counters;
  counters.counter("damaged").add(3);
  counters.timer("decode").add(0.5);
  counters.timer("decode").add(0.25);
  EXPECT_THAT(counters.snapshot(), ElementsAre(Pair("damaged", 3), Pair("decode.seconds", 0.75),
                                               Pair("decode.uses", 2)));
}

TEST(ScopedTimer, LeavesItsScope_AddsOneUse) {
  Timer timer;
  {
    ScopedTimer scope(timer);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_EQ(timer.uses(), 1);
  EXPECT_GE(timer.seconds(), 0.002);
}

}  // namespace
}  // namespace fleet

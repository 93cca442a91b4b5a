#include <gtest/gtest.h>

#include <future>

#include "launch/tools/simulate/nodes.h"
#include "launch/tools/simulate/tick_lateness.h"

namespace fleet {
namespace {

using namespace std::chrono_literals;

TEST(TickLateness, AThirdOfTheLimit_ExplainsASilence) {
  EXPECT_FALSE(explains_silence(900ms, 3s));
  EXPECT_TRUE(explains_silence(1s, 3s));
  EXPECT_FALSE(explains_silence(0ms, 3s));
}

// The thread of all tickers is busy, as on a machine that cannot run its nodes.
TEST(TickLateness, TickerThatIsHeldUp_IsMeasured) {
  const TickLateness lateness;
  std::promise<void> held_up;
  const auto begin = std::chrono::steady_clock::now();
  Ticker busy([&] {
    if (lateness.longest() < 200ms) {
      const auto end = std::chrono::steady_clock::now() + 400ms;
      while (std::chrono::steady_clock::now() < end) {
      }
      return std::chrono::steady_clock::now();
    }
    held_up.set_value();
    return Ticker::Time::max();
  });
  busy.due_by(begin);
  ASSERT_EQ(held_up.get_future().wait_for(1min), std::future_status::ready);
  EXPECT_LE(lateness.longest(), std::chrono::steady_clock::now() - begin);
}

TEST(SimulatedJob, LastNode_MayHaveFewerRanks) {
  SimulatedJob job;
  job.ranks = 20;
  EXPECT_EQ(job.nnodes(), 3);
  EXPECT_EQ(job.ranks_of(1), 8);
  EXPECT_EQ(job.ranks_of(2), 4);
  EXPECT_EQ(job.spec().config.addresses_size(), 3);
}

}  // namespace
}  // namespace fleet

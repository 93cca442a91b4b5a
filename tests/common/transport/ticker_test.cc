#include "transport/ticker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace fleet {
namespace {

using Clock = std::chrono::steady_clock;

bool comes(std::future<void> future) {
  return future.wait_for(std::chrono::minutes(1)) == std::future_status::ready;
}

TEST(Ticker, Due_FiresAtTheEarliestTime) {
  std::promise<void> fired;
  Ticker ticker([&] {
    fired.set_value();
    return Ticker::Time::max();
  });
  ticker.due_by(Clock::now() + std::chrono::hours(1));
  ticker.due_by(Clock::now());
  ASSERT_TRUE(comes(fired.get_future()));
}

TEST(Ticker, FireSaysWhen_FiresAgain) {
  std::promise<void> third;
  int times = 0;
  Ticker ticker([&] {
    if (++times == 3) third.set_value();
    return times < 3 ? Clock::now() : Ticker::Time::max();
  });
  ticker.due_by(Clock::now());
  ASSERT_TRUE(comes(third.get_future()));
}

TEST(Ticker, OneWaitsLong_OthersFire) {
  Ticker later([] { return Ticker::Time::max(); });
  later.due_by(Clock::now() + std::chrono::hours(1));
  std::promise<void> fired;
  Ticker ticker([&] {
    fired.set_value();
    return Ticker::Time::max();
  });
  ticker.due_by(Clock::now());
  ASSERT_TRUE(comes(fired.get_future()));
}

TEST(Ticker, DestroyedByItsOwnFire_IsNotTouchedAgain) {
  std::promise<void> destroyed;
  std::unique_ptr<Ticker> ticker;
  ticker = std::make_unique<Ticker>([&] {
    ticker.reset();
    destroyed.set_value();
    return Clock::now();  // must not be scheduled
  });
  ticker->due_by(Clock::now());
  ASSERT_TRUE(comes(destroyed.get_future()));
  std::promise<void> another;
  Ticker after([&] {
    another.set_value();
    return Ticker::Time::max();
  });
  after.due_by(Clock::now());
  ASSERT_TRUE(comes(another.get_future()));
}

TEST(Ticker, Stopped_WaitsForTheRunningFireAndIsQuiet) {
  std::promise<void> inside, go;
  std::future<void> may_go = go.get_future();
  std::atomic<bool> over = false;
  std::atomic<int> times = 0;
  Ticker ticker([&] {
    ++times;
    inside.set_value();
    may_go.get();
    over = true;
    return Ticker::Time::max();
  });
  ticker.due_by(Clock::now());
  ASSERT_TRUE(comes(inside.get_future()));
  go.set_value();
  ticker.stop();
  EXPECT_TRUE(over);
  ticker.due_by(Clock::now());
  std::promise<void> another;
  Ticker after([&] {
    another.set_value();
    return Ticker::Time::max();
  });
  after.due_by(Clock::now());  // behind what the stopped one would have done
  ASSERT_TRUE(comes(another.get_future()));
  EXPECT_EQ(times, 1);
}

}  // namespace
}  // namespace fleet

#include "transport/background.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <stdexcept>

#include "transport/ticker.h"

namespace fleet {
namespace {

template <typename Value>
bool comes(const std::future<Value>& future) {
  return future.wait_for(std::chrono::minutes(1)) == std::future_status::ready;
}

TEST(Background, CallThatBlocks_DoesNotHoldUpTickers) {
  std::promise<void> go, ended, fired;
  Background background;
  ASSERT_TRUE(background.run([&, may_go = go.get_future().share()] {
    may_go.wait();
    ended.set_value();
  }));
  Ticker ticker([&] {
    fired.set_value();
    return Ticker::Time::max();
  });
  ticker.due_by(std::chrono::steady_clock::now());
  EXPECT_TRUE(comes(fired.get_future()));
  EXPECT_FALSE(background.run([] { FAIL() << "one call at a time"; }));
  go.set_value();
  EXPECT_TRUE(comes(ended.get_future()));
}

TEST(Background, Stopped_WaitsForTheCallAndMakesNone) {
  std::promise<void> inside;
  std::atomic<bool> over = false;
  Background background;
  background.run([&] {
    inside.set_value();
    over = true;
  });
  ASSERT_TRUE(comes(inside.get_future()));
  background.stop();
  EXPECT_TRUE(over);
  EXPECT_FALSE(background.run([] { FAIL(); }));
}

TEST(Background, StoppedWhileItsCallWaits_NeverMakesIt) {
  std::promise<void> go, inside;
  Background busy, waiting;
  busy.run([&, may_go = go.get_future().share()] {
    inside.set_value();
    may_go.wait();
  });
  ASSERT_TRUE(comes(inside.get_future()));
  ASSERT_TRUE(waiting.run([] { FAIL(); }));
  waiting.stop();  // returns although the other call still runs
  go.set_value();
  busy.stop();
}

TEST(Background, DestroyedByItsCall_EndsWell) {
  std::promise<void> destroyed, another;
  auto background = std::make_unique<Background>();
  background->run([&] {
    background.reset();
    destroyed.set_value();
  });
  ASSERT_TRUE(comes(destroyed.get_future()));
  Background next;
  next.run([&] { another.set_value(); });
  EXPECT_TRUE(comes(another.get_future()));
}

TEST(Background, CallThatThrows_StopsNoOther) {
  std::promise<void> thrown, another;
  Background one, other;
  one.run([&] {
    thrown.set_value();
    throw std::runtime_error("thrown");
  });
  ASSERT_TRUE(comes(thrown.get_future()));
  other.run([&] { another.set_value(); });
  EXPECT_TRUE(comes(another.get_future()));
}

}  // namespace
}  // namespace fleet

#include "base/bounded_call.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <stdexcept>

namespace fleet {
namespace {

using namespace std::chrono_literals;

TEST(EndsWithin, CallThatEnds_IsDone) {
  auto done = std::make_shared<bool>(false);
  EXPECT_TRUE(ends_within(1h, [done] { *done = true; }));
  EXPECT_TRUE(*done);
}

TEST(EndsWithin, CallThatThrows_Throws) {
  EXPECT_THROW(ends_within(1h, [] { throw std::runtime_error("full"); }), std::runtime_error);
}

TEST(EndsWithin, CallThatBlocks_IsLeftBehind) {
  auto go_on = std::make_shared<std::promise<void>>();
  auto ended = std::make_shared<std::promise<void>>();
  EXPECT_FALSE(ends_within(1ms, [go_on, ended] {
    go_on->get_future().wait();
    ended->set_value();
  }));
  go_on->set_value();
  ended->get_future().wait();
}

}  // namespace
}  // namespace fleet

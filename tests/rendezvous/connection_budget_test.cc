#include "rendezvous/connection_budget.h"

#include <gtest/gtest.h>

namespace fleet {
namespace {

using namespace std::chrono_literals;

class Budget : public testing::Test {
 protected:
  // So many of `count` connections as come in.
  int admitted(const std::string& address, int count) {
    int in = 0;
    for (int i = 0; i < count; ++i) {
      in += budget_.admit(address, address + ' ' + std::to_string(next_port_++), now_);
    }
    return in;
  }
  ConnectionBudget::Time now_{1h};
  int next_port_ = 1;
  ConnectionBudget budget_{{.at_once = 10, .each_second = 2}};
};

TEST_F(Budget, StrangerWithManyConnections_GetsSoManyAndThenSoManyASecond) {
  EXPECT_EQ(admitted("10.0.0.9", 100), 10);
  now_ += 3s;
  EXPECT_EQ(admitted("10.0.0.9", 100), 6);
  EXPECT_EQ(budget_.unproved(), 16);
}

TEST_F(Budget, OtherAddresses_HaveTheirOwn) {
  EXPECT_EQ(admitted("10.0.0.9", 100), 10);
  EXPECT_EQ(admitted("10.0.0.8", 100), 10);
}

TEST_F(Budget, WhoShowsTheSecret_CostsNothing) {
  for (int i = 0; i < 1000; ++i) {
    const std::string peer = "10.0.0.1 " + std::to_string(i);
    ASSERT_TRUE(budget_.admit("10.0.0.1", peer, now_)) << i;
    budget_.proved("10.0.0.1", peer, now_);
  }
  EXPECT_EQ(budget_.unproved(), 0);
}

TEST_F(Budget, ManyCallsOverOneConnection_GiveBackWhatItCostOnce) {
  ASSERT_TRUE(budget_.admit("10.0.0.1", "a friend", now_));
  EXPECT_EQ(admitted("10.0.0.1", 100), 9);
  for (int i = 0; i < 100; ++i) budget_.proved("10.0.0.1", "a friend", now_);
  EXPECT_EQ(admitted("10.0.0.1", 100), 1);
}

TEST_F(Budget, CallOfAnUnknownConnection_GivesNothing) {
  EXPECT_EQ(admitted("10.0.0.9", 100), 10);
  budget_.proved("10.0.0.9", "somebody", now_);
  budget_.proved("10.0.0.7", "somebody", now_);
  EXPECT_EQ(admitted("10.0.0.9", 100), 0);
}

TEST_F(Budget, AddressesThatWereQuietForAWhile_AreForgotten) {
  for (int i = 0; i < 1000; ++i) admitted("address " + std::to_string(i), 5);
  EXPECT_EQ(budget_.addresses(), 1000);
  now_ += 1h;
  for (int i = 0; i < 2000; ++i) admitted("another " + std::to_string(i), 1);
  EXPECT_LE(budget_.addresses(), 2000);
  EXPECT_EQ(budget_.unproved(), 2000);
}

// Else every call would be looked at from then on.
TEST_F(Budget, OneThatCameOnce_IsForgottenByALaterCall) {
  admitted("10.0.0.9", 1);
  EXPECT_EQ(budget_.unproved(), 1);
  now_ += 1h;
  budget_.proved("10.0.0.1", "a friend", now_);
  EXPECT_EQ(budget_.unproved(), 0);
  EXPECT_EQ(budget_.addresses(), 0);
}

TEST_F(Budget, AddressThatNeverRests_IsRememberedWithinBounds) {
  for (int i = 0; i < 200'000; ++i, now_ += 500ms) ASSERT_EQ(admitted("fd00::/64", 1), 1);
  EXPECT_LE(budget_.unproved(), 1u << 16);
}

}  // namespace
}  // namespace fleet

#include <gtest/gtest.h>

#include "transport/client_budgets.h"

namespace fleet {
namespace {

using namespace std::chrono_literals;

class Budget : public testing::Test {
 protected:
  // So many of `count` connections as come in.
  int admitted(const std::string& address, int count) {
    int in = 0;
    for (int i = 0; i < count; ++i) {
      in += budget_.admit(address, address + ' ' + std::to_string(next_port_++), now_).admitted;
    }
    return in;
  }
  ConnectionBudget::Time now_{1h};
  int next_port_ = 1;
  ConnectionBudget budget_{{.burst = 10, .per_second = 2, .total = 100'000}};
};

TEST_F(Budget, StrangerWithManyConnections_GetsSoManyAndThenSoManyASecond) {
  EXPECT_EQ(admitted("10.0.0.9", 100), 10);
  now_ += 3s;
  EXPECT_EQ(admitted("10.0.0.9", 100), 6);
  EXPECT_EQ(budget_.unauthenticated(), 10);  // the oldest six had to go for them
}

TEST_F(Budget, OtherAddresses_HaveTheirOwn) {
  EXPECT_EQ(admitted("10.0.0.9", 100), 10);
  EXPECT_EQ(admitted("10.0.0.8", 100), 10);
}

TEST_F(Budget, WhoShowsTheSecret_CostsNothing) {
  for (int i = 0; i < 1000; ++i) {
    const std::string peer = "10.0.0.1 " + std::to_string(i);
    ASSERT_TRUE(budget_.admit("10.0.0.1", peer, now_).admitted) << i;
    budget_.authenticated("10.0.0.1", peer, now_);
  }
  EXPECT_EQ(budget_.unauthenticated(), 0);
}

TEST_F(Budget, ManyCallsOverOneConnection_GiveBackWhatItCostOnce) {
  ASSERT_TRUE(budget_.admit("10.0.0.1", "a friend", now_).admitted);
  EXPECT_EQ(admitted("10.0.0.1", 100), 9);
  for (int i = 0; i < 100; ++i) budget_.authenticated("10.0.0.1", "a friend", now_);
  EXPECT_EQ(admitted("10.0.0.1", 100), 1);
}

TEST_F(Budget, CallOfAnUnknownConnection_GivesNothing) {
  EXPECT_EQ(admitted("10.0.0.9", 100), 10);
  budget_.authenticated("10.0.0.9", "somebody", now_);
  budget_.authenticated("10.0.0.7", "somebody", now_);
  EXPECT_EQ(admitted("10.0.0.9", 100), 0);
}

TEST_F(Budget, AddressesThatWereQuietForAWhile_AreForgotten) {
  for (int i = 0; i < 1000; ++i) admitted("address " + std::to_string(i), 5);
  for (int i = 0; i < 1000; ++i) {
    const std::string address = "address " + std::to_string(i);
    for (int k = 1; k <= 5; ++k) {
      budget_.closed(address, address + ' ' + std::to_string(5 * i + k), false, now_);
    }
  }
  EXPECT_EQ(budget_.addresses(), 1000);
  EXPECT_EQ(budget_.unauthenticated(), 0);
  now_ += 1h;
  for (int i = 0; i < 2000; ++i) admitted("another " + std::to_string(i), 1);
  EXPECT_LE(budget_.addresses(), 2000);
  EXPECT_EQ(budget_.unauthenticated(), 2000);
}

TEST_F(Budget, ConnectionsThatDoNothingWrong_CostNothingOnceTheyAreClosed) {
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(budget_.admit("10.0.0.1", "a friend", now_).admitted);
    budget_.closed("10.0.0.1", "a friend", true, now_);
  }
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(budget_.admit("10.0.0.9", "a stranger", now_).admitted);
    budget_.closed("10.0.0.9", "a stranger", false, now_);
  }
  EXPECT_FALSE(budget_.admit("10.0.0.9", "a stranger", now_).admitted);
}

TEST(BudgetInAll, IsShared_AndTheAddressWithTheMostMakesRoom) {
  const ConnectionBudget::Time now{std::chrono::hours(1)};
  ConnectionBudget budget({.burst = 10, .per_second = 2, .total = 12});
  for (int i = 0; i < 10; ++i)
    EXPECT_TRUE(budget.admit("a", "a " + std::to_string(i), now).admitted);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(budget.admit("b", "b " + std::to_string(i), now).close, "");
  EXPECT_EQ(budget.admit("c", "c 0", now).close, "a 0");
  EXPECT_EQ(budget.unauthenticated(), 12);
}

}  // namespace
}  // namespace fleet

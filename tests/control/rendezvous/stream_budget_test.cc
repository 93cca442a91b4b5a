#include <gtest/gtest.h>

#include "rendezvous/client_budgets.h"

namespace fleet {
namespace {

using namespace std::chrono_literals;

class Streams : public testing::Test {
 protected:
  void has(const std::string& address, const std::string& peer, size_t streams, uint64_t opened = 0,
           size_t partial = 0) {
    budget_.admit(address, peer, now_);
    budget_.update(address, peer, streams, opened, partial, now_);
  }

  StreamBudget::Time now_{1h};
  StreamBudget budget_{{.per_address = 100,
                        .total = 150,
                        .connection_opens = {5, 1},
                        .address_opens = {50, 10},
                        .all_opens = {70, 10},
                        .partial_bytes = 1000},
                       now_};
};

TEST_F(Streams, AddressWithTooMany_LosesItsLargestConnection) {
  has("a", "a 1", 1);
  has("a", "a 2", 60);
  EXPECT_FALSE(budget_.excess("a"));
  has("a", "a 3", 50);
  const auto excess = budget_.excess("a");
  ASSERT_TRUE(excess);
  EXPECT_EQ(excess->peer, "a 2");
  budget_.closed("a", excess->peer, now_);
  EXPECT_FALSE(budget_.excess("a"));
  EXPECT_EQ(budget_.streams(), 51u);
}

TEST_F(Streams, TooManyInAll_CostTheAddressThatHasTheMost) {
  has("a", "a 1", 90);
  has("b", "b 1", 10);
  has("c", "c 1", 55);
  const auto excess = budget_.excess("c");
  ASSERT_TRUE(excess);
  EXPECT_EQ(excess->address, "a");
}

TEST_F(Streams, ManyCallsInAShortTime_HaveToWait) {
  has("a", "a 1", 0);
  EXPECT_EQ(budget_.may_open("a", "a 1", now_), 55u);
  has("a", "a 1", 0, 55);
  EXPECT_EQ(budget_.may_open("a", "a 1", now_), 0u);
  EXPECT_GT(budget_.wait_for("a", "a 1", now_), 50ms);
  now_ += 2s;
  EXPECT_EQ(budget_.wait_for("a", "a 1", now_), 0ms);
  EXPECT_EQ(budget_.may_open("a", "a 1", now_), 22u);
}

TEST_F(Streams, OthersThatCallNowAndThen_NeedNotWait) {
  has("a", "a 1", 0, 55);
  has("a", "a 2", 0);
  EXPECT_EQ(budget_.may_open("a", "a 2", now_), 5u);
  has("b", "b 1", 0, 25);
  has("c", "c 1", 0);
  EXPECT_EQ(budget_.may_open("c", "c 1", now_), 5u) << "those of all are used up";
}

TEST_F(Streams, IncompleteMessagesBeyondTheBound_GoOnOneAfterAnother) {
  has("a", "a 1", 1, 1, 500);
  has("b", "b 1", 1, 1, 400);
  EXPECT_TRUE(budget_.may_continue("b 1"));
  has("a", "a 1", 1, 0, 600);
  EXPECT_TRUE(budget_.may_continue("a 1"));
  EXPECT_FALSE(budget_.may_continue("b 1"));
  has("a", "a 1", 1, 0, 0);
  EXPECT_TRUE(budget_.may_continue("b 1"));
  EXPECT_EQ(budget_.partial_bytes(), 400u);
}

}  // namespace
}  // namespace fleet

#include "launch/planning/cores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(PlanCores, CoresAreSharedOutWithoutOverlap) {
  const auto plans = plan_cores({0, 2, 4, 6, 8}, 0, 2, 2, false);
  EXPECT_EQ(plans[0].threads, 2);
  EXPECT_THAT(plans[0].cores, ElementsAre(0, 2));
  EXPECT_THAT(plans[1].cores, ElementsAre(4, 6));
}

TEST(PlanCores, MoreRanksThanCores_OneThreadEachNotPinned) {
  const auto plans = plan_cores({0, 1}, 0, 3, 3, false);
  EXPECT_EQ(plans[2].threads, 1);
  EXPECT_THAT(plans[2].cores, IsEmpty());
}

TEST(PlanCores, NodesThatShareAHost_ShareItsCores) {
  const auto plans = plan_cores({0, 1, 2, 3}, 2, 2, 4, false);
  EXPECT_EQ(plans[0].threads, 1);
  EXPECT_THAT(plans[0].cores, ElementsAre(2));
  EXPECT_THAT(plans[1].cores, ElementsAre(3));
}

TEST(PlanCores, CgroupQuota_ThreadsByIt_NobodyIsPinned) {
  for (const auto& plan : plan_cores({0, 1, 2, 3, 4, 5, 6, 7}, 0, 2, 2, false, 4.5)) {
    EXPECT_EQ(plan.threads, 2);
    EXPECT_TRUE(plan.cores.empty());
  }
  EXPECT_EQ(plan_cores({0, 1, 2, 3}, 0, 2, 2, false, 0.5)[1].threads, 1);
  EXPECT_EQ(plan_cores({0, 1}, 0, 2, 2, false, 8)[1].cores.size(), 1u);
}

TEST(PlanCores, UserDecides_NothingIsSet) {
  const auto plans = plan_cores({0, 1}, 0, 2, 2, true);
  EXPECT_EQ(plans[0].threads, 0);
  EXPECT_THAT(plans[0].cores, IsEmpty());
}

}  // namespace
}  // namespace fleet

#include "daemon/gpu_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string refusal(GpuTable& table, const std::string& job, const GpuWish& wish) {
  try {
    table.take(job, wish);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

TEST(GpuTable, Jobs_DoNotOverlap) {
  GpuTable table({"0", "1", "2", "3"});
  EXPECT_THAT(table.take("a", {"1", 0, false, false}), ElementsAre("1"));
  EXPECT_THAT(table.take("b", {"", 2, false, false}), ElementsAre("0", "2"));
  EXPECT_THAT(refusal(table, "c", {"", 2, false, false}),
              ::testing::AllOf(HasSubstr("job 'a' has 1"), HasSubstr("job 'b' has 0,2"),
                               HasSubstr("--share_gpus")));
  EXPECT_THAT(refusal(table, "c", {}), HasSubstr("job 'a'"));
  EXPECT_THAT(table.take("c", {"3", 0, false, false}), ElementsAre("3"));
}

TEST(GpuTable, Sharing_TakesFreeOnesFirst) {
  GpuTable table({"0", "1", "2"});
  table.take("a", {"0", 0, false, false});
  EXPECT_THAT(table.take("b", {"", 2, true, false}), ElementsAre("1", "2"));
  EXPECT_THAT(table.take("c", {"", 0, true, false}), ElementsAre("0", "1", "2"));
  // A shared one is held like any other.
  table.give_back("b");
  EXPECT_THAT(refusal(table, "d", {"1", 0, false, false}), HasSubstr("job 'c'"));
  table.give_back("c");
  EXPECT_THAT(table.take("d", {"1", 0, false, false}), ElementsAre("1"));
}

TEST(GpuTable, EndedJob_GivesThemBack) {
  GpuTable table({"0", "1"});
  table.take("a", {});
  table.give_back("a");
  EXPECT_THAT(table.take("b", {}), ElementsAre("0", "1"));
}

TEST(GpuTable, GpusThatAreNotThere_AreRefused) {
  GpuTable table({"4", "5"});
  EXPECT_THAT(refusal(table, "a", {"0", 0, false, false}), HasSubstr("this node has 4,5"));
  EXPECT_THAT(refusal(table, "a", {"", 3, false, false}), HasSubstr("3 GPUs are requested"));
  EXPECT_THAT(table.take("b", {}), ElementsAre("4", "5"));
}

TEST(GpuTable, JobsOnTheCpu_HaveNone) {
  GpuTable none({}), some({"0"});
  EXPECT_THAT(none.take("a", {"0", 0, false, false}), IsEmpty());
  EXPECT_THAT(some.take("a", {"", 0, false, true}), IsEmpty());
  EXPECT_THAT(some.take("b", {}), ElementsAre("0"));
}

}  // namespace
}  // namespace fleet

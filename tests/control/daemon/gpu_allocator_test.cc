#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "daemon/job_table.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

GpuRequest asked(const std::string& names, int count, bool share = false, bool none = false) {
  GpuRequest request;
  request.set_names(names);
  request.set_count(count);
  request.set_share(share);
  request.set_none(none);
  return request;
}

Error refusal(GpuAllocator& gpus, const std::string& job, const GpuRequest& request) {
  return thrown_by([&] { gpus.allocate(job, request); });
}

TEST(GpuAllocator, Jobs_DoNotOverlap) {
  GpuAllocator gpus({"0", "1", "2", "3"});
  EXPECT_THAT(gpus.allocate("a", asked("1", 0)), ElementsAre("1"));
  EXPECT_THAT(gpus.allocate("b", asked("", 2)), ElementsAre("0", "2"));
  EXPECT_THAT(refusal(gpus, "c", asked("", 2)).what(), HasSubstr("job 'a' has 1"));
  EXPECT_THAT(refusal(gpus, "c", {}), IsUsageError());
  EXPECT_THAT(gpus.allocate("c", asked("3", 0)), ElementsAre("3"));
}

TEST(GpuAllocator, Sharing_TakesFreeOnesFirst) {
  GpuAllocator gpus({"0", "1", "2"});
  gpus.allocate("a", asked("0", 0));
  EXPECT_THAT(gpus.allocate("b", asked("", 2, true)), ElementsAre("1", "2"));
  EXPECT_THAT(gpus.allocate("c", asked("", 0, true)), ElementsAre("0", "1", "2"));
  // A shared one is held like any other.
  gpus.release("b");
  EXPECT_THAT(refusal(gpus, "d", asked("1", 0)), IsUsageError());
  gpus.release("c");
  EXPECT_THAT(gpus.allocate("d", asked("1", 0)), ElementsAre("1"));
}

TEST(GpuAllocator, EndedJob_GivesThemBack) {
  GpuAllocator gpus({"0", "1"});
  gpus.allocate("a", {});
  gpus.release("a");
  EXPECT_THAT(gpus.allocate("b", {}), ElementsAre("0", "1"));
}

TEST(GpuAllocator, GpusThatAreNotThere_AreRefused) {
  GpuAllocator gpus({"4", "5"});
  EXPECT_THAT(refusal(gpus, "a", asked("0", 0)).what(), HasSubstr("this node has 4,5"));
  EXPECT_THAT(refusal(gpus, "a", asked("", 3)), IsUsageError());
  EXPECT_THAT(gpus.allocate("b", {}), ElementsAre("4", "5"));
}

TEST(GpuAllocator, JobsOnTheCpu_HaveNone) {
  GpuAllocator none({}), some({"0"});
  EXPECT_THAT(none.allocate("a", asked("0", 0)), IsEmpty());
  EXPECT_THAT(some.allocate("a", asked("", 0, false, true)), IsEmpty());
  EXPECT_THAT(some.allocate("b", {}), ElementsAre("0"));
}

}  // namespace
}  // namespace fleet

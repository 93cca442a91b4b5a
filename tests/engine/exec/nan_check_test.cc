#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "exec/executor.h"
#include "tensor/host.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// x -> scale by 1 -> scale by 1e30 -> scale by 1e30, or a cast to `type`.
struct OverflowingNet {
  Program program;
  VarId x, huge, last;
  explicit OverflowingNet(const std::string& type = "float32") {
    const SectionId section = program.add_section("forward", {});
    x = program.feed("x", DType::kFloat32, {4});
    const VarId y = program.emit(section, "scale", {x}, {}, "y")[0];
    huge = program.emit(section, "scale", {y}, {{"scale", 1e30}}, "huge")[0];
    last = type == "float32" ? program.emit(section, "scale", {huge}, {{"scale", 1e30}}, "last")[0]
                             : program.emit(section, "cast", {huge}, {{"to", type}}, "last")[0];
  }
};

std::string failure_of(const OverflowingNet& net, const std::vector<float>& x) {
  HostDevice device;
  Executor executor(plan_program(net.program, {net.last}), device, nullptr);
  executor.set_checking(true);
  executor.feed(net.x, x);
  try {
    executor.run({.step = 7});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(NanCheck, Overflow_NamesTheOperationItsOutputStepAndSection) {
  EXPECT_EQ(failure_of(OverflowingNet(), {1, 2, -3, 0}),
            "step 7, section forward: scale made 'last.out' [4] float32 not finite (3 elements, "
            "the first is inf); lower learning_rate.base, or look at the data");
}

TEST(NanCheck, Sync_IsNamedAsSuch) {
  Program program;
  const SectionId section = program.add_section("average", {.training = false, .sync = true});
  const VarId x = program.feed("x", DType::kFloat32, {1});
  program.emit(section, "scale", {x}, {{"scale", 1e30}});
  HostDevice device;
  Executor executor(plan_program(program, {}), device, nullptr);
  executor.set_checking(true);
  const float huge = 1e30f;
  executor.feed(x, std::span(&huge, 1));
  try {
    executor.run({.step = 7, .sync = true});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.where(), "sync after step 7, section average");
  }
}

TEST(NanCheck, FeedThatIsNotFinite_IsNamedToo) {
  EXPECT_THAT(
      failure_of(OverflowingNet(), {0, kNan, 0, 0}),
      AllOf(HasSubstr("step 7, section forward"), HasSubstr("'y.out' [4] float32 not finite"),
            HasSubstr("input 'x' was not finite before")));
}

TEST(NanCheck, LowTypes_AreLookedAtAsSuch) {
  EXPECT_THAT(
      failure_of(OverflowingNet("float16"), {1, 0, 0, 0}),
      AllOf(HasSubstr("step 7, section forward"), HasSubstr("'last.out' [4] float16 not finite")));
  EXPECT_EQ(failure_of(OverflowingNet("bfloat16"), {1, 0, 0, 0}), "");
}

TEST(NanCheck, FiniteStep_RunsAsWithoutIt) {
  OverflowingNet net;
  HostDevice device;
  Executor executor(plan_program(net.program, {net.huge}), device, nullptr);
  executor.set_checking(true);
  const float x[] = {1e-30f, 0, -1e-30f, 1e-35f};
  executor.feed(net.x, x);
  executor.run({});
  EXPECT_EQ(executor.values<float>(net.huge)[0], 1e-30f * 1e30f);
}

}  // namespace
}  // namespace fleet

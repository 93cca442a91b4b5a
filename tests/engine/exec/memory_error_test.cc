#include "exec/memory_error.h"

#include <gmock/gmock.h>

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr size_t kMiB = size_t{1} << 20;

TEST(LargestBatch, GrowingNeed_IsTheLastThatFits) {
  int asked = 0;
  const auto bytes_at = [&](int64_t batch) {
    ++asked;
    return 100 + 7 * static_cast<size_t>(batch);
  };
  EXPECT_EQ(largest_batch(256, 100 + 7 * 192, bytes_at), 192);
  EXPECT_EQ(largest_batch(256, 100 + 7 * 193 - 1, bytes_at), 192);
  EXPECT_LE(asked, 16);
}

TEST(LargestBatch, NothingFits_IsZero) {
  EXPECT_EQ(largest_batch(256, 100, [](int64_t batch) { return 100 + size_t(batch); }), 0);
  EXPECT_EQ(largest_batch(1, 1000, [](int64_t) -> size_t { return 0; }), 0);
}

TEST(LargestBatch, EstimateTooLow_IsOneThatReallyFits) {
  const auto estimate = [](int64_t batch) { return 10 * static_cast<size_t>(batch); };
  // As cuDNN's workspace: none for the largest batches, and steps below.
  const auto bytes_of = [&](int64_t batch) {
    const size_t workspace = batch > 200 ? 0 : batch > 90 ? 300 : batch > 80 ? 200 : 150;
    return estimate(batch) + workspace;
  };
  EXPECT_EQ(largest_batch(256, 1000, estimate, bytes_of), 70);
  EXPECT_EQ(largest_batch(256, 5000, estimate, bytes_of), 256 - 1);
  EXPECT_EQ(largest_batch(256, 100, estimate, bytes_of), 0);
}

// Two scales of a feed, a parameter and a state.
struct LargeNet {
  Program program;
  VarId kept;
  explicit LargeNet(int64_t batch) {
    const SectionId section = program.add_section("forward", {});
    const VarId x = program.feed("x", DType::kFloat32, {batch, 1024});
    program.parameter("w", {1024, 1024}, {});
    program.state("m", {1024, 512}, {});
    const VarId y = program.emit(section, "scale", {x})[0];
    kept = program.emit(section, "sum_of_squares", {y})[0];
  }
};

TEST(PlanMemory, Kinds_AreAddedUpSeparately) {
  LargeNet net(256);
  const PlannedMemory memory = plan_program(net.program, {net.kept}).memory();
  EXPECT_EQ(memory.parameters, 4 * kMiB);
  EXPECT_EQ(memory.states, 2 * kMiB);
  EXPECT_EQ(memory.activations, kMiB);
  EXPECT_EQ(memory.feeds, kMiB + 64);  // and the sum that is kept
  EXPECT_EQ(memory.gradients, 0u);
}

TEST(OutOfMemory, Message_SaysWhatWasWantedPlannedAndWouldFit) {
  LargeNet net(256);
  const Plan plan = plan_program(net.program, {net.kept});
  const int64_t fits = largest_batch(256, 7 * kMiB + 64, [](int64_t batch) {
    LargeNet smaller(batch);
    return plan_program(smaller.program, {smaller.kept}).memory().total();
  });
  EXPECT_EQ(fits, 127);  // the kept sum takes 64 bytes, a sample 8 KiB
  const Error cause(ErrorCode::kNoMemory, "8.0 MiB requested, 7.0 MiB available", "cuda:0", "x");
  const Error error = out_of_memory(cause, plan.memory(), 256, fits);
  EXPECT_EQ(error.code(), ErrorCode::kNoMemory);
  EXPECT_THAT(
      error.what(),
      AllOf(HasSubstr("cuda:0: 8.0 MiB requested, 7.0 MiB available; the plan needs 8.0 MiB: "
                      "parameters 4.0 MiB, optimizer state 2.0 MiB, gradients 0.0 MiB, "
                      "activations 1.0 MiB"),
            HasSubstr("data.batch_size=127 would fit (it is 256)")));
}

TEST(OutOfMemory, NoBatchFits_SaysSo) {
  const Error error = out_of_memory(Error(ErrorCode::kNoMemory, "no"), {}, 4, 0);
  EXPECT_THAT(error.what(), HasSubstr("not even data.batch_size=1 would fit"));
}

}  // namespace
}  // namespace fleet

// The collectives of a Plan over NCCL: several communicators, groups, and a step launched as one.
#include "exec/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "exec/communicator_set.h"
#include "tests/engine/comm/nccl/fake/fake_nccl.h"
#include "tests/engine/comm/nccl/gpus.h"

namespace fleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kSums = 6;
constexpr int kElements = 1000;

// Six gradients, each of a feed of its own, summed by one of `communicators`.
struct Sums {
  Program program;
  std::vector<VarId> x, y;
  Sums(int ranks, int communicators, int inner_group_size, bool after_previous) {
    const SectionId section = program.add_section("backward", {});
    std::vector<int> all(ranks);
    std::iota(all.begin(), all.end(), 0);
    for (int i = 0; i < communicators; ++i) {
      program.add_group({.name = "all", .ranks = all, .inner_group_size = inner_group_size});
    }
    for (int i = 0; i < kSums; ++i) {
      x.push_back(program.feed("x" + std::to_string(i), DType::kFloat32, {kElements}));
      y.push_back(program.emit(section, "relu", {x[i]})[0]);
      Op op = program.make_op(
          section, "all_reduce", {y[i]}, {y[i]},
          {{"communicator", int64_t{i % communicators}}, {"after_previous", after_previous}});
      op.stream = 1 + i % communicators;
      program.ops().push_back(std::move(op));
    }
  }
};

void run_sums(int ranks, int communicators, int inner_group_size, bool after_previous, int steps) {
  run_ranks(on_gpus(std::vector<int>(ranks, 1)), [&](Rank& rank) {
    Sums sums(ranks, communicators, inner_group_size, after_previous);
    const CommunicatorSet set(sums.program.groups(), &rank.comm);
    Executor executor(
        plan_program(sums.program, sums.y, {.backend = "cuda", .device = &rank.device}),
        rank.device, set.all());
    for (int step = 0; step < steps; ++step) {
      std::vector<std::vector<float>> x;
      for (int i = 0; i < kSums; ++i) {
        x.emplace_back(kElements, static_cast<float>(rank.comm.rank() + step + i));
        executor.feed(sums.x[i], x[i]);
      }
      executor.run({.step = step});
      for (int i = 0; i < kSums; ++i) {
        const auto sum = static_cast<float>(ranks * (ranks - 1) / 2 + ranks * (step + i));
        for (float value : executor.values<float>(sums.y[i])) {
          ASSERT_EQ(value, sum) << "step " << step;
        }
      }
    }
  });
}

// The operations that the job's rank 0 ran, as "operation@communicator". It is the first one of all
// its groups; `of_others`: a group that it is not in.
std::vector<std::string> calls_of_rank_0(const std::string& of_others = "") {
  std::vector<std::string> found;
  for (const fake_nccl::Call& call : fake_nccl::calls()) {
    if (call.rank == 0 && call.communicator != of_others)
      found.push_back(call.operation + "@" + call.communicator);
  }
  return found;
}

TEST(NcclExecutor, OneCommunicator_SumsInOrderStepAfterStep) { run_sums(2, 1, 1, true, 5); }

TEST(NcclExecutor, ThreeCommunicatorsInOrder_TakeTurns) {
  fake_nccl::forget_calls();
  run_sums(2, 3, 1, true, 1);
  const std::string second = "all_reduce@world/split.0.1#0", third = "all_reduce@world/split.0.1#1";
  EXPECT_THAT(calls_of_rank_0(),
              ElementsAre("all_reduce@world", second, third, "all_reduce@world", second, third));
}

TEST(NcclExecutor, ThreeCommunicatorsFreely_SumRight) { run_sums(3, 3, 1, false, 5); }

TEST(NcclExecutor, Groups_ReduceSumAcrossAndBroadcast) {
  fake_nccl::forget_calls();
  run_sums(4, 1, 2, true, 1);
  const std::vector<std::string> calls = calls_of_rank_0("world/split.2.3#0");
  ASSERT_EQ(calls.size(), size_t{3 * kSums});
  for (int i = 0; i < kSums; ++i) {
    EXPECT_EQ(calls[3 * i], "reduce@world/split.0.1#0");
    EXPECT_EQ(calls[3 * i + 1], "all_reduce@world/split.0.2#0");
    EXPECT_EQ(calls[3 * i + 2], "broadcast@world/split.0.1#0");
  }
}

TEST(NcclExecutor, GroupsOnTwoCommunicators_SumRight) { run_sums(4, 2, 2, true, 5); }

// A recorded all_reduce runs at each launch, and only then.
TEST(NcclGraph, RecordedAllReduce_SumsAtEachLaunch) {
  run_ranks(on_gpus({1, 2}), [](Rank& rank) {
    Buffer memory = rank.comm.allocate(4 * sizeof(float));
    auto* data = static_cast<float*>(memory.data());
    const View view = {data, 4, DType::kFloat32};
    std::fill(data, data + 4, 1.f);
    const auto side = rank.make_stream("comm1");
    const auto begin = rank.device.make_event(), end = rank.device.make_event();
    const auto stream = rank.make_stream("compute");
    const auto recording = rank.device.record(*stream, [&] {
      stream->record(*begin);
      side->wait(*begin);
      rank.comm.all_reduce(view, view, ReduceOp::kSum, *side);
      side->record(*end);
      stream->wait(*end);
    });
    EXPECT_EQ(data[0], 1.f);
    for (int launch = 0; launch < 3; ++launch) {
      recording->launch(*stream);
      rank.comm.launched(*stream);
    }
    rank.finish(*stream);
    EXPECT_EQ(data[0], 8.f);
    EXPECT_EQ(data[3], 8.f);
  });
}

// NCCL is not called while a recording runs, so launched() identifies the late rank.
TEST(NcclGraph, RankThatDoesNotLaunch_TimesOutNamed) {
  GroupCase group = on_gpus({1, 1});
  group.timeout = std::chrono::milliseconds(1500);
  std::atomic<bool> done{false};
  run_ranks(group, [&](Rank& rank) {
    Buffer memory = rank.comm.allocate(sizeof(float));
    const View view = {memory.data(), 1, DType::kFloat32};
    const auto stream = rank.make_stream("compute");
    const auto recording = rank.device.record(
        *stream, [&] { rank.comm.all_reduce(view, view, ReduceOp::kSum, *stream); });
    if (rank.comm.rank() == 1) {
      while (!done) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return;
    }
    recording->launch(*stream);
    rank.comm.launched(*stream);
    try {
      rank.finish(*stream);
      ADD_FAILURE() << "nothing failed";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kTimeout);
      EXPECT_THAT(error.what(), HasSubstr("rank 1 did not arrive within 1.5 s"));
    }
    done = true;
  });
}

}  // namespace
}  // namespace fleet

// Ranks of which some have a step left and others do not.
#include "train/rank_coordinator.h"

#include <gmock/gmock.h>

#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <thread>

#include "tests/engine/train/rank_threads.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;

struct Ends {
  std::vector<std::string> messages;  // by rank; "": none
  std::vector<ErrorCode> codes;
  std::vector<int64_t> steps;  // done
};

// Each rank has so many steps, which it does together with the others (a sum over them); one that
// fails leaves.
Ends run(const std::vector<int64_t>& steps) {
  const int world = static_cast<int>(steps.size());
  Ends ends{std::vector<std::string>(world), std::vector<ErrorCode>(world),
            std::vector<int64_t>(world)};
  run_ranks_well(world, [&](RankThread& thread) {
    const int rank = thread.rank;
    RankCoordinator control(thread.communicator);
    HostStream stream("work");
    const auto step = [&] {
      float value = 1;
      const View view{&value, 1, DType::kFloat32};
      thread.communicator->all_reduce(view, view, ReduceOp::kSum, stream);
      stream.synchronize();
    };
    try {
      for (int64_t i = 0;; ++i) {
        const bool works = i < steps[rank];
        if (control.agree_on_step({.step = i, .works = works}, {}).stop != 0 || !works) return;
        try {
          step();
        } catch (const Error&) {
          control.explain_lost_peer();
          throw;
        }
        ends.steps[rank] = i + 1;
      }
    } catch (const Error& error) {
      ends.codes[rank] = error.code();
      ends.messages[rank] = error.what();
      thread.communicator->abort(error);
    }
  });
  return ends;
}

TEST(RankCoordinator, UnlimitedAction_MayTakeLongerThanTheTimeout) {
  using Actions = RankCoordinator::Actions;
  const auto code_of_rank_1 = [](Actions actions) {
    const auto ends = run_ranks(2, [&](RankThread& thread) {
      const auto communicator = make_communicator({.rank = thread.rank,
                                                   .size = thread.world,
                                                   .nodes = {},
                                                   .store = thread.store,
                                                   .group = "of this test",
                                                   .backend = "inprocess",
                                                   .timeout = std::chrono::seconds(3),
                                                   .names = {}});
      RankCoordinator control(communicator.get(), actions);
      const auto results = control.all_succeed("wait", [&] {
        if (thread.rank == 0) std::this_thread::sleep_for(std::chrono::seconds(4));
        return thread.rank + 1.0;
      });
      EXPECT_EQ(results, (std::vector<double>{1, 2}));
    });
    return ends[1].code;
  };
  // At the same time: each takes four seconds.
  auto limited = std::async(std::launch::async, code_of_rank_1, Actions::kTimeout);
  EXPECT_EQ(code_of_rank_1(Actions::kUnlimited), std::nullopt);
  EXPECT_EQ(limited.get(), ErrorCode::kTimeout);
}

TEST(RankCoordinator, UnlimitedActionThatFails_IsNamed) {
  const auto ends = run_ranks(2, [&](RankThread& thread) {
    RankCoordinator control(thread.communicator, RankCoordinator::Actions::kUnlimited);
    control.all_succeed("write", [&]() -> double {
      if (thread.rank == 0) throw Error(ErrorCode::kIo, "full", "/disk");
      return 0;
    });
  });
  EXPECT_EQ(ends[0].code, ErrorCode::kIo);
  EXPECT_EQ(ends[1].code, ErrorCode::kPeerLost);
}

TEST(RankCoordinator, AsManySteps_EndTogether) {
  const Ends ends = run({5, 5, 5});
  EXPECT_EQ(ends.messages, std::vector<std::string>(3));
  EXPECT_EQ(ends.steps, std::vector<int64_t>(3, 5));
}

// The others wait for it in a sum: without this until comm.timeout, ten minutes.
TEST(RankCoordinator, RankThatStopsEarly_NamesItself) {
  const Ends ends = run({5, 5, 3, 5});
  EXPECT_EQ(ends.codes[2], ErrorCode::kUsage);
  EXPECT_THAT(ends.messages[2], HasSubstr("rank 2 has no step 3"));
  for (const int rank : {0, 1, 3}) {
    EXPECT_EQ(ends.codes[rank], ErrorCode::kPeerLost) << ends.messages[rank];
    EXPECT_EQ(ends.steps[rank], 3);
  }
}

TEST(RankCoordinator, RankThatGoesOnAlone_IsTheOneNamed) {
  const Ends ends = run({3, 5, 3, 3});
  EXPECT_EQ(ends.codes[1], ErrorCode::kUsage) << ends.messages[1];
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_THAT(ends.messages[rank], HasSubstr("rank 1 has a step 3"));
    EXPECT_EQ(ends.codes[rank], rank == 1 ? ErrorCode::kUsage : ErrorCode::kPeerLost);
  }
}

// Rank 1 announces that it will record steps 3 and 4: all ranks know it before these steps, and
// only then.
TEST(RankCoordinator, RankThatWillRecord_IsKnownToAllBeforeThatStep) {
  std::vector<std::vector<int64_t>> traced(3);
  run_ranks_well(3, [&](RankThread& thread) {
    RankCoordinator control(thread.communicator);
    for (int64_t step = 0; step < 8; ++step) {
      const bool will_record = thread.rank == 1 && (step == 2 || step == 3);
      const auto all = control.agree_on_step({.step = step}, {.trace = will_record});
      if (all.trace) traced[static_cast<size_t>(thread.rank)].push_back(step);
    }
  });
  EXPECT_EQ(traced, std::vector(3, std::vector<int64_t>{3, 4}));
}

TEST(RankCoordinator, OneOfTwoRanks_IsNamedByBoth) {
  const Ends ends = run({3, 4});
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(ends.codes[rank], ErrorCode::kUsage) << ends.messages[rank];
  }
}

}  // namespace
}  // namespace fleet

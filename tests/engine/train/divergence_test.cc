// A rank whose parameters are silently no longer those of the others is found and named.
#include "train/divergence.h"

#include <gmock/gmock.h>

#include <cstring>
#include <functional>

#include "tensor/host.h"
#include "tests/engine/train/rank_threads.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;

Program small_program() {
  Program program;
  program.add_section("forward", {});
  program.parameter("fc.weight", {5}, {Init::kUniform, -1, 1});
  program.parameter("fc.bias", {3}, {Init::kUniform, -1, 1});
  const VarId own = program.state("fc.weight.residual", {5}, {Init::kUniform, -1, 1});
  program.var(own).per_rank = true;
  return program;
}

struct Ends {
  std::vector<std::string> messages;  // by rank; "": none
  std::vector<ErrorCode> codes;
};

// Ranks that begin alike; `change` may do something to the values of one.
Ends compare(
    int world, const std::function<void(int rank, Executor&)>& change,
    const std::function<void(DivergenceCheck&)>& check = [](DivergenceCheck& divergence) {
      divergence.compare(200);
    }) {
  Ends ends{std::vector<std::string>(world), std::vector<ErrorCode>(world)};
  run_ranks_well(world, [&](RankThread& thread) {
    const int rank = thread.rank;
    HostDevice device;
    RankCoordinator control(thread.communicator);
    Executor executor(plan_program(small_program(), {}), device, nullptr);
    executor.initialize(1);
    change(rank, executor);
    try {
      DivergenceCheck divergence(executor, device, control, {rank, world});
      check(divergence);
    } catch (const Error& error) {
      ends.codes[rank] = error.code();
      ends.messages[rank] = error.what();
    }
    control.barrier();
  });
  return ends;
}

void flip_a_bit(Executor& executor, const std::string& name) {
  const VarId id = executor.program().find(name);
  std::vector<float> values = executor.values<float>(id);
  uint32_t bits = 0;
  std::memcpy(&bits, &values.back(), sizeof bits);
  bits ^= 1;  // the lowest
  std::memcpy(&values.back(), &bits, sizeof bits);
  executor.write(id, values);
}

TEST(Divergence, EqualRanks_Continue) {
  EXPECT_EQ(compare(3, [](int, Executor&) {}).messages, std::vector<std::string>(3));
  EXPECT_EQ(compare(1, [](int, Executor&) {}).messages, std::vector<std::string>(1));
}

TEST(Divergence, OneFlippedBit_NamesTheRankAndTheParameter) {
  const Ends ends = compare(4, [](int rank, Executor& executor) {
    if (rank == 2) flip_a_bit(executor, "fc.bias");
  });
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(ends.codes[rank], rank == 2 ? ErrorCode::kInternal : ErrorCode::kPeerLost);
    EXPECT_THAT(ends.messages[rank],
                ::testing::AllOf(HasSubstr("rank 2"), HasSubstr("fc.bias (1 of 2 parameters)"),
                                 HasSubstr("after 200 steps")));
  }
}

TEST(Divergence, TwoRanks_HaveNoMinority) {
  const Ends ends = compare(2, [](int rank, Executor& executor) {
    if (rank == 1) flip_a_bit(executor, "fc.weight");
  });
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(ends.codes[rank], ErrorCode::kInternal);
    EXPECT_NE(ends.messages[rank], "");
  }
}

// Before a job ends: of two ranks, the one whose loss is not finite counts as the damaged one.
TEST(Divergence, SuspectOfTwoRanks_IsNamed) {
  for (const int damaged : {0, 1}) {
    const auto damage = [&](int rank, Executor& executor) {
      if (rank == damaged) flip_a_bit(executor, "fc.weight");
    };
    const Suspicion suspicion{"the loss is not finite", damaged};
    const Ends ends = compare(2, damage, [&](DivergenceCheck& divergence) {
      divergence.compare_before_end(7, suspicion, /*apart=*/false);
    });
    for (int rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(ends.codes[rank], rank == damaged ? ErrorCode::kInternal : ErrorCode::kPeerLost);
      EXPECT_THAT(ends.messages[rank],
                  ::testing::AllOf(HasSubstr("rank " + std::to_string(damaged)),
                                   HasSubstr("fc.weight"), HasSubstr(suspicion.what)));
    }
    const Ends apart = compare(2, damage, [&](DivergenceCheck& divergence) {
      divergence.compare_before_end(7, suspicion, /*apart=*/true);
    });
    EXPECT_EQ(apart.messages, std::vector<std::string>(2));
  }
}

// A majority counts more than a suspicion: a wrong gradient of one rank reaches all losses.
TEST(Divergence, SuspectOfSeveralRanks_IsNotTheMinority) {
  const Ends ends = compare(
      3,
      [](int rank, Executor& executor) {
        if (rank == 2) flip_a_bit(executor, "fc.bias");
      },
      [](DivergenceCheck& divergence) {
        divergence.compare_before_end(7, {"the loss of rank 1 is not finite", 1}, false);
      });
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(ends.codes[rank], rank == 2 ? ErrorCode::kInternal : ErrorCode::kPeerLost);
  }
}

TEST(Divergence, SuspectAmongEqualRanks_IsNotNamed) {
  const Ends ends = compare(
      2, [](int, Executor&) {},
      [](DivergenceCheck& divergence) {
        divergence.compare_before_end(7, {"the loss of rank 1 is not finite", 1}, false);
      });
  EXPECT_EQ(ends.messages, std::vector<std::string>(2));
}

TEST(Divergence, StatesOfEachRank_MayDiffer) {
  const Ends ends = compare(2, [](int rank, Executor& executor) {
    if (rank == 1) flip_a_bit(executor, "fc.weight.residual");
  });
  EXPECT_EQ(ends.messages, std::vector<std::string>(2));
}

}  // namespace
}  // namespace fleet

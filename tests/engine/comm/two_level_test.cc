#include "comm/two_level.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/comm/contract.h"

namespace fleet {
namespace {

using testing::HasSubstr;

void expect_sum_of_ranks(Rank& rank, Communicator& comm) {
  const int n = comm.size();
  Buffer memory = comm.allocate(5000 * sizeof(float));
  auto* data = static_cast<float*>(memory.data());
  const View view = {data, 5000, DType::kFloat32};
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 5000; ++i) data[i] = static_cast<float>(comm.rank() + i + round);
    comm.all_reduce(view, view, ReduceOp::kSum, rank.stream);
    rank.finish();
    for (int i = 0; i < 5000; ++i) {
      ASSERT_EQ(data[i], static_cast<float>(n * (n - 1) / 2 + n * (i + round)));
    }
  }
}

TEST(TwoLevel, AllReduceInGroups_IsTheSumOverAll) {
  for (const std::string backend : {"inprocess", "shm", "gloo"}) {
    for (int group_size : {2, 3}) {
      run_ranks(on_one_host(backend, 6), [&](Rank& rank) {
        const auto grouped = TwoLevelCommunicator::make(rank.comm, group_size);
        EXPECT_EQ(grouped->name(), backend + " in groups of " + std::to_string(group_size));
        expect_sum_of_ranks(rank, *grouped);
      });
    }
  }
}

TEST(TwoLevel, OutOfPlace_LeavesTheInput) {
  run_ranks(on_one_host("inprocess", 4), [](Rank& rank) {
    const auto grouped = TwoLevelCommunicator::make(rank.comm, 2);
    int32_t in = 1 << rank.comm.rank(), out = 0;
    grouped->all_reduce({&in, 1, DType::kInt32}, {&out, 1, DType::kInt32}, ReduceOp::kSum,
                        rank.stream);
    EXPECT_EQ(in, 1 << rank.comm.rank());
    EXPECT_EQ(out, 15);
  });
}

TEST(TwoLevel, ImpossibleGroups_AreRefused) {
  run_ranks(on_one_host("inprocess", 4), [](Rank& rank) {
    for (int group_size : {0, 1, 3, 4, 8}) {
      try {
        TwoLevelCommunicator::make(rank.comm, group_size);
        ADD_FAILURE() << group_size;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kUsage);
        EXPECT_THAT(error.what(), HasSubstr("4 ranks in groups of " + std::to_string(group_size)));
      }
    }
  });
}

// Two communicators of the same ranks, each with a stream of its own, as gradients use them.
TEST(TwoLevel, TwoCommunicatorsAtOnce_DoNotMix) {
  for (const std::string backend : {"inprocess", "shm", "gloo"}) {
    run_ranks(on_one_host(backend, 3), [&](Rank& rank) {
      const std::vector<int> all = {0, 1, 2};
      const std::unique_ptr<Communicator> other = rank.comm.split(all);
      Communicator* comms[] = {&rank.comm, other.get()};
      HostStream streams[] = {HostStream("one"), HostStream("two")};
      std::vector<std::vector<float>> data(20, std::vector<float>(30000));
      for (size_t i = 0; i < data.size(); ++i) {
        std::fill(data[i].begin(), data[i].end(), static_cast<float>(i + 1));
        const View view = {data[i].data(), data[i].size(), DType::kFloat32};
        comms[i % 2]->all_reduce(view, view, ReduceOp::kSum, streams[i % 2]);
      }
      for (HostStream& stream : streams) stream.synchronize();
      for (size_t i = 0; i < data.size(); ++i) {
        for (float value : data[i]) ASSERT_EQ(value, static_cast<float>(3 * (i + 1)));
      }
    });
  }
}

}  // namespace
}  // namespace fleet

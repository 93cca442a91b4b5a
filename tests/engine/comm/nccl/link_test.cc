// Failures between ranks on GPUs, and the rank that is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <cstdlib>

#include "comm/nccl/handle.h"
#include "comm/nccl/ids.h"
#include "tests/engine/comm/nccl/fake/fake_nccl.h"
#include "tests/engine/comm/nccl/gpus.h"

namespace fleet {
namespace {

using ::testing::AllOf;

using testing::HasSubstr;

Error error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::kInternal, "nothing failed");
}

CommOptions options_for(int rank, int size, Device& device, std::shared_ptr<Store> store) {
  CommOptions options;
  options.rank = rank;
  options.size = size;
  options.device = &device;
  options.store = std::move(store);
  options.timeout = std::chrono::milliseconds(1500);
  return options;
}

TEST(NcclChoice, Auto_IsNcclOnGpusAlone) {
  const auto device = one_gpu();
  CommOptions options = options_for(0, 2, *device, make_memory_store());
  options.nodes = {"127.0.0.1", "127.0.0.2"};
  EXPECT_EQ(choose_backend(options), "nccl");
  options.device = nullptr;
  EXPECT_EQ(choose_backend(options), "gloo");
}

TEST(NcclChoice, TransportOfTheOtherMemory_IsRefused) {
  const auto device = one_gpu();
  CommOptions options = options_for(0, 2, *device, make_memory_store());
  options.backend = "shm";
  Error error = error_of([&] { make_communicator(options); });
  EXPECT_EQ(error.code(), ErrorCode::kUsage);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("shm cannot move"), HasSubstr("cuda:0")));
  options.device = nullptr;
  options.backend = "nccl";
  error = error_of([&] { make_communicator(options); });
  EXPECT_EQ(error.code(), ErrorCode::kUsage);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("nccl cannot move"), HasSubstr("the host")));
}

TEST(NcclStart, RankThatDoesNotCome_IsNamed) {
  const auto store = make_memory_store();
  std::vector<Thread> ranks;
  for (int rank : {0, 2}) {
    ranks.emplace_back("rank", [=] {
      const auto device = one_gpu();
      const Error error =
          error_of([&] { make_communicator(options_for(rank, 3, *device, store)); });
      EXPECT_EQ(error.code(), ErrorCode::kTimeout);
      EXPECT_THAT(error.what(), HasSubstr("rank 1 did not arrive within 1.5 s"));
    });
  }
}

// Every rank is there, but one never begins with NCCL: the others are in ncclCommInitRank.
TEST(NcclStart, RankThatHangsBeforeNccl_IsNamed) {
  const auto store = make_memory_store();
  std::atomic<int> done{0};
  std::vector<Thread> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.emplace_back("rank", [=, &done] {
      const auto device = one_gpu();
      CommOptions options = options_for(rank, 3, *device, store);
      options.names = {0, 1, 2};
      options.nodes.assign(3, "127.0.0.1");
      if (rank == 1) {
        const nccl::Link link(options);
        while (done != 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return;
      }
      const Error error = error_of([&] { make_communicator(options); });
      ++done;
      EXPECT_EQ(error.code(), ErrorCode::kTimeout);
      EXPECT_THAT(error.what(), HasSubstr("rank 1 did not arrive within 1.5 s"));
    });
  }
}

// The first rank, which makes the id, hangs before it does.
TEST(NcclStart, MakerOfTheIdThatHangs_IsNamed) {
  const auto store = make_memory_store();
  std::atomic<int> done{0};
  std::vector<Thread> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back("rank", [=, &done] {
      const auto device = one_gpu();
      CommOptions options = options_for(rank, 2, *device, store);
      options.names = {4, 5};
      options.nodes.assign(2, "127.0.0.1");
      if (rank == 0) {
        const nccl::Link link(options);
        while (done != 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return;
      }
      const Error error = error_of([&] { make_communicator(options); });
      ++done;
      EXPECT_EQ(error.code(), ErrorCode::kTimeout);
      EXPECT_THAT(error.what(), HasSubstr("rank 4 did not arrive within 1.5 s"));
    });
  }
}

TEST(NcclStart, ManyRanks_BeginWithSeveralIds) {
  ::setenv("FLEET_NCCL_RANKS_PER_ID", "2", 1);
  EXPECT_EQ(nccl::ids_for(1), 1);
  EXPECT_EQ(nccl::ids_for(2), 1);
  EXPECT_EQ(nccl::ids_for(5), 3);
  run_ranks(on_gpus({1, 1, 1, 2, 2}), [](Rank& rank) {
    Buffer memory = rank.comm.allocate(4);
    auto* value = static_cast<int32_t*>(memory.data());
    *value = 1 << rank.comm.rank();
    const View view = {value, 1, DType::kInt32};
    rank.comm.all_reduce(view, view, ReduceOp::kSum, rank.stream);
    rank.finish();
    EXPECT_EQ(*value, 31);
  });
  EXPECT_EQ(fake_nccl::latest_ids(), 3);
  ::unsetenv("FLEET_NCCL_RANKS_PER_ID");
  EXPECT_EQ(nccl::ids_for(128), 1);
  EXPECT_EQ(nccl::ids_for(129), 2);
}

// Five ranks with three ids, which ranks 0, 1 and 3 create, and their use of the store.
struct FiveRanks : testing::Test {
  FiveRanks() { ::setenv("FLEET_NCCL_RANKS_PER_ID", "2", 1); }
  ~FiveRanks() override { ::unsetenv("FLEET_NCCL_RANKS_PER_ID"); }
  // The rank that is named if the ids do not arrive; -1 if they do.
  int exchange(int rank, std::chrono::milliseconds patience) {
    int late = -1;
    const nccl::IdWait wait{[&](const std::string& key) -> std::optional<std::string> {
                              ++gets[static_cast<size_t>(rank)];
                              try {
                                return store->get(key, patience);
                              } catch (const Error&) {
                                return std::nullopt;
                              }
                            },
                            [&](const std::vector<int>& ranks) {
                              late = ranks.at(0);
                              return Error(ErrorCode::kTimeout, "late");
                            }};
    try {
      EXPECT_EQ(nccl::exchange_ids("world", rank, 5, *store, wait).size(), 3u);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kTimeout);
    }
    return late;
  }
  const std::shared_ptr<Store> store = make_memory_store();
  std::array<std::atomic<int>, 5> gets{};
};

TEST_F(FiveRanks, Ids_ComeAsOneValue) {
  {
    std::vector<Thread> ranks;
    for (int rank = 0; rank < 5; ++rank) {
      ranks.emplace_back("rank",
                         [=, this] { EXPECT_EQ(exchange(rank, std::chrono::seconds(60)), -1); });
    }
  }
  EXPECT_EQ(gets[0], 2);  // of the two other makers
  for (size_t rank = 1; rank < 5; ++rank) EXPECT_EQ(gets[rank], 1) << rank;
}

TEST_F(FiveRanks, MakerThatDoesNotCome_IsNamedByAll) {
  std::vector<Thread> ranks;
  for (const int rank : {0, 1, 2, 4}) {
    ranks.emplace_back("rank",
                       [=, this] { EXPECT_EQ(exchange(rank, std::chrono::seconds(1)), 3); });
  }
}

TEST(NcclIds, Makers_AreTheFirstOfTheirShares) {
  for (int ranks : {1, 2, 5, 128, 129, 1000, 4097}) {
    const int ids = nccl::ids_for(ranks);
    int last = -1;
    for (int index = 0; index < ids; ++index) {
      const int maker = nccl::creator_of(index, ids, ranks);
      EXPECT_GT(maker, last);
      EXPECT_LT(maker, ranks);
      last = maker;
    }
    EXPECT_EQ(nccl::creator_of(0, ids, ranks), 0);
  }
}

// An asynchronous error of NCCL: the rank where it occurs fails with it, and the others name that
// rank.
void expect_failure(ncclResult_t failure, ErrorCode code, const std::string& words) {
  std::barrier everybody(2);
  run_ranks(on_gpus({1, 2}), [&](Rank& rank) {
    everybody.arrive_and_wait();  // has its communicator
    if (rank.comm.rank() == 1) fake_nccl::break_rank(1, failure);
    everybody.arrive_and_wait();
    const Error error = error_of([&] {
      for (;;) {  // a broken rank no longer takes part
        if (rank.comm.rank() == 0) rank.comm.barrier(rank.stream);
        rank.finish();
        std::this_thread::yield();
      }
    });
    EXPECT_EQ(error.code(), rank.comm.rank() == 1 ? code : ErrorCode::kPeerLost) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(words));
    if (code != ErrorCode::kPeerLost && rank.comm.rank() == 0) {
      EXPECT_THAT(error.what(), HasSubstr("rank 1 gave up"));
    }
  });
}

TEST(NcclAsyncError, OfTheNetwork_IsALostPeer) {
  expect_failure(ncclRemoteError, ErrorCode::kPeerLost, "remote process exited");
}

TEST(NcclAsyncError, OfThisRank_IsItsOwn) {
  expect_failure(ncclUnhandledCudaError, ErrorCode::kInternal, "an error of the fake NCCL");
}

// All of a rank's communicators share one fate.
TEST(NcclFailure, OfOneGroup_FailsTheOthersOfTheRank) {
  std::barrier everybody(2);
  run_ranks(on_gpus({1, 1}), [&](Rank& rank) {
    const std::unique_ptr<Communicator> other = rank.comm.split(std::vector<int>{0, 1});
    everybody.arrive_and_wait();
    if (rank.comm.rank() == 1) rank.comm.abort(Error(ErrorCode::kIo, "the disk is full"));
    const Error error = error_of([&] {
      other->barrier(rank.stream);
      rank.stream.synchronize();
      other->throw_if_failed();
    });
    EXPECT_THAT(error.what(), HasSubstr("the disk is full"));
  });
}

TEST(NcclMemory, IsRegisteredWithEveryCommunicatorAlsoLaterOnes) {
  run_ranks(on_gpus({1}), [&](Rank& rank) {
    const std::vector<int> all = {0};
    Buffer first = rank.comm.allocate(100);
    EXPECT_EQ(fake_nccl::registrations(), 1);
    const std::unique_ptr<Communicator> other = rank.comm.split(all);
    EXPECT_EQ(fake_nccl::registrations(), 2);
    Buffer second = other->allocate(100);
    EXPECT_EQ(fake_nccl::registrations(), 4);
    first = {};
    EXPECT_EQ(fake_nccl::registrations(), 2);
  });
  EXPECT_EQ(fake_nccl::registrations(), 0);
}

}  // namespace
}  // namespace fleet

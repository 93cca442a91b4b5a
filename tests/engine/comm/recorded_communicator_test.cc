#include "comm/recorded_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "tests/engine/comm/contract.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// All that the process's log hears of groups with a name.
struct Heard : CollectiveListener {
  explicit Heard(std::string name) : group_name(std::move(name)) {
    CollectiveLog::of_process().set_listener(this);
  }
  ~Heard() override { CollectiveLog::of_process().set_listener(nullptr); }
  void issued(const CollectiveRecord& call) override { add("issued", call); }
  void started(const CollectiveRecord& call) override { add("started", call); }
  void done(const CollectiveRecord& call) override { add("done", call); }
  void add(const std::string& state, const CollectiveRecord& call) {
    const CollectiveGroup group = CollectiveLog::of_process().group_with_id(call.group);
    if (group.name != group_name) return;
    const std::lock_guard lock(mutex);
    // Ranks are threads here, and each has added the group once.
    of_rank[group.ordinal].push_back(state + " " + std::string(name_of(call.kind)) + " #" +
                                     std::to_string(call.sequence) + " " +
                                     std::to_string(call.bytes) + " " + std::to_string(call.peer) +
                                     " " + std::string(call.purpose.view()));
    groups[group.ordinal] = group;
  }
  const std::string group_name;
  std::mutex mutex;
  std::map<int, std::vector<std::string>> of_rank;
  std::map<int, CollectiveGroup> groups;
};

// Every transport, and every kind of call.
TEST(RecordedCommunicator, EachTransport_RecordsWhatItIsAskedFor) {
  for (const std::string backend : {"inprocess", "shm", "gloo"}) {
    Heard heard("recorded over " + backend);
    run_ranks(on_one_host(backend, 2), [&](Rank& rank) {
      rank.comm.set_group_name(heard.group_name);
      Buffer memory = rank.comm.allocate(8 * sizeof(float));
      const View whole{memory.data(), 8, DType::kFloat32};
      const View half{static_cast<float*>(memory.data()) + 4 * rank.comm.rank(), 4,
                      DType::kFloat32};
      const CollectivePurpose bucket("bucket 4");
      {
        const CollectivePurposeScope scope(bucket);
        rank.comm.all_reduce(whole, whole, ReduceOp::kSum, rank.stream);
      }
      rank.comm.reduce(whole, whole, ReduceOp::kSum, 1, rank.stream);
      rank.comm.broadcast(whole, 0, rank.stream);
      rank.comm.all_gather(half, whole, rank.stream);
      rank.comm.reduce_scatter(whole, half, ReduceOp::kSum, rank.stream);
      rank.comm.barrier(rank.stream);
      if (rank.comm.rank() == 0) {
        rank.comm.send(half, 1, rank.stream);
      } else {
        rank.comm.recv(half, 0, rank.stream);
      }
      rank.finish();
    });
    ASSERT_EQ(heard.of_rank.size(), 2u) << backend;
    for (const auto& [ordinal, calls] : heard.of_rank) {
      ASSERT_EQ(calls.size(), 21u);
      EXPECT_EQ(calls[0], "issued all_reduce #1 32 -1 bucket 4");
      EXPECT_EQ(calls[1], "started all_reduce #1 32 -1 bucket 4");
      EXPECT_EQ(calls[2], "done all_reduce #1 32 -1 bucket 4");
      EXPECT_EQ(calls[3], "issued reduce #2 32 1 ");
      EXPECT_EQ(calls[8], "done broadcast #3 32 0 ");
      EXPECT_EQ(calls[11], "done all_gather #4 16 -1 ");
      EXPECT_EQ(calls[14], "done reduce_scatter #5 32 -1 ");
      EXPECT_EQ(calls[17], "done barrier #6 0 -1 ");
      EXPECT_THAT(calls[20], testing::AnyOf("done send #1 16 1 ", "done recv #1 16 0 "));
      EXPECT_THAT(heard.groups[ordinal].ranks, ElementsAre(0, 1));
    }
  }
}

TEST(RecordedCommunicator, SplitGroup_HasTheJobsRanksAndItsOwnNumbers) {
  Heard heard("a part");
  run_ranks(on_one_host("inprocess", 4), [&](Rank& rank) {
    if (rank.comm.rank() % 2 == 0) return;
    const std::vector<int> odd = {1, 3};
    const std::unique_ptr<Communicator> part = rank.comm.split(odd);
    part->set_group_name(heard.group_name);
    part->barrier(rank.stream);
    part->barrier(rank.stream);
    rank.finish();
  });
  ASSERT_EQ(heard.of_rank.size(), 2u);
  EXPECT_THAT(heard.of_rank[0], ElementsAre("issued barrier #1 0 -1 ", "started barrier #1 0 -1 ",
                                            "done barrier #1 0 -1 ", "issued barrier #2 0 -1 ",
                                            "started barrier #2 0 -1 ", "done barrier #2 0 -1 "));
  EXPECT_THAT(heard.groups[0].ranks, ElementsAre(1, 3));
}

TEST(RecordedCommunicator, CallThatFails_IsNeverDone) {
  Heard heard("failing");
  run_ranks(on_one_host("inprocess", 2), [&](Rank& rank) {
    rank.comm.set_group_name(heard.group_name);
    rank.comm.abort(Error(ErrorCode::kPeerLost, "rank 1 died"));
    const auto stream = rank.make_stream("threaded");
    rank.comm.barrier(*stream);
    EXPECT_THROW(stream->synchronize(), Error);
  });
  EXPECT_THAT(heard.of_rank[0], ElementsAre("issued barrier #1 0 -1 ", "started barrier #1 0 -1 "));
}

// A transport that does nothing, over streams of a GPU.
struct OnGpu : Communicator {
  int rank() const override { return 0; }
  int size() const override { return 2; }
  std::string name() const override { return "gpu"; }
  Buffer allocate(size_t) override { return {}; }
  std::unique_ptr<Communicator> split(std::span<const int>) override { return nullptr; }
  void issue(const CollectiveCall& call, Stream&) override {
    if (call.kind == CollectiveKind::kAllReduce) ++calls;
  }
  void abort(const Error&) override {}
  int calls = 0;
};

TEST(RecordedCommunicator, CallsInARecording_CountAtEachLaunch) {
  Heard heard("gpu");
  auto inner = std::make_unique<OnGpu>();
  const OnGpu& transport = *inner;
  RecordedCommunicator comm(std::move(inner), "gpu", {0, 1}, true);
  HostStream stream("");
  const View view{nullptr, 4, DType::kFloat32};
  comm.all_reduce(view, view, ReduceOp::kSum, stream);
  RecordedCalls recorded;
  {
    const RecordedCalls::Scope scope(&recorded);
    comm.all_reduce(view, view, ReduceOp::kSum, stream);
    comm.all_reduce(view, view, ReduceOp::kMax, stream);
  }
  EXPECT_EQ(transport.calls, 3);
  ASSERT_EQ(heard.of_rank[0].size(), 1u);
  recorded.launched();
  recorded.launched();
  EXPECT_THAT(heard.of_rank[0],
              ElementsAre("issued all_reduce #1 16 -1 ", "issued all_reduce #2 16 -1 ",
                          "issued all_reduce #3 16 -1 ", "issued all_reduce #4 16 -1 ",
                          "issued all_reduce #5 16 -1 "));
}

TEST(RecordedCommunicator, WrongPeer_IsRefusedByTheTransportAndNotRecorded) {
  Heard heard("wrong peer");
  run_ranks(on_one_host("inprocess", 2), [&](Rank& rank) {
    rank.comm.set_group_name(heard.group_name);
    EXPECT_THROW(rank.comm.send({}, 7, rank.stream), Error);
    EXPECT_THROW(rank.comm.broadcast({}, -3, rank.stream), Error);
  });
  EXPECT_THAT(heard.of_rank, IsEmpty());
}

}  // namespace
}  // namespace fleet

// The traffic counted by the transports equals the algorithms' formulas.
#include <gtest/gtest.h>

#include <mutex>
#include <numeric>

#include "comm/two_level.h"
#include "tests/engine/comm/contract.h"

namespace fleet {
namespace {

// The traffic of each rank while `body` runs on all of them.
std::vector<Traffic> traffic_of(const GroupCase& group, const std::function<void(Rank&)>& body) {
  std::vector<Traffic> all(group.size());
  run_ranks(group, [&](Rank& rank) {
    rank.comm.barrier(rank.stream);
    rank.finish();
    const Traffic before = *rank.comm.traffic();
    body(rank);
    rank.finish();
    const Traffic after = *rank.comm.traffic();
    all[rank.comm.rank()] = after - before;
  });
  return all;
}

// Bytes of an all_reduce of so many floats, in the communicator's memory or elsewhere.
std::vector<Traffic> of_all_reduce(const GroupCase& group, size_t count, bool own = false) {
  return traffic_of(group, [&](Rank& rank) {
    const size_t bytes = count * sizeof(float);
    const Buffer data = own ? rank.comm.allocate(bytes) : rank.device.allocate(bytes);
    const View view = {data.data(), count, DType::kFloat32};
    rank.comm.all_reduce(view, view, ReduceOp::kSum, rank.stream);
  });
}

void expect_each(const std::vector<Traffic>& all, int64_t bytes, int64_t between_hosts) {
  for (const Traffic& one : all) {
    EXPECT_EQ(one.sent, bytes);
    EXPECT_EQ(one.received, bytes);
    EXPECT_EQ(one.sent_between_hosts, between_hosts);
  }
}

constexpr size_t kFloats = 60 * 1024;  // shared evenly by 2 to 6 ranks, in whole blocks of shm
constexpr int64_t kBytes = kFloats * 4;

TEST(Traffic, GlooRing_SendsTwiceTheShareOfTheOthers) {
  for (const std::vector<int>& hosts :
       {std::vector<int>{1, 2}, std::vector<int>{1, 2, 3}, std::vector<int>{1, 2, 3, 4}}) {
    const auto n = static_cast<int64_t>(hosts.size());
    const int64_t bytes = 2 * (n - 1) * kBytes / n;
    expect_each(of_all_reduce(on_hosts("gloo", hosts), kFloats), bytes, bytes);
  }
}

// Each passes the sum on to the next, the root to nobody.
TEST(Traffic, GlooReduce_SendsOnceFromEachRankButTheRoot) {
  const auto all = traffic_of(on_hosts("gloo", {1, 2, 3}), [](Rank& rank) {
    std::vector<float> data(kFloats);
    const View view = {data.data(), data.size(), DType::kFloat32};
    rank.comm.reduce(view, view, ReduceOp::kSum, 1, rank.stream);
    rank.finish();
  });
  for (const int rank : {0, 1, 2}) EXPECT_EQ(all[rank].sent, rank == 1 ? 0 : kBytes);
}

TEST(Traffic, GlooOnOneHost_SendsNothingBetweenHosts) {
  expect_each(of_all_reduce(on_hosts("gloo", {1, 1}), kFloats), kBytes, 0);
}

TEST(Traffic, GlooSmall_SendsAllInEachRoundOfDoubling) {
  expect_each(of_all_reduce(on_hosts("gloo", {1, 2, 3, 4}), 1000), 2 * 4000, 2 * 4000);
}

TEST(Traffic, SharedMemory_IsLikeARing) {
  for (const char* backend : {"shm", "inprocess"}) {
    for (const int n : {1, 2, 3, 4}) {
      for (const bool own : {false, true}) {
        const int64_t bytes = 2 * (n - 1) * kBytes / n;
        expect_each(of_all_reduce(on_one_host(backend, n), kFloats, own), bytes, 0);
      }
    }
  }
}

TEST(Traffic, SharedMemorySmall_EachReadsAllOthers) {
  expect_each(of_all_reduce(on_one_host("shm", 3), 1000), 2 * 4000, 0);
}

TEST(Traffic, Hierarchical_SendsARanksShareToOtherHosts) {
  // Reduced and gathered among the 2 ranks of a host, half of it by each across the 2 hosts.
  const auto all = of_all_reduce(on_hosts("hierarchical", {1, 1, 2, 2}), kFloats);
  expect_each(all, kBytes / 2 + kBytes / 2 + kBytes / 2, kBytes / 2);
}

TEST(Traffic, HierarchicalSmall_OnlyLeadersSendToOtherHosts) {
  const auto all = of_all_reduce(on_hosts("hierarchical", {1, 1, 2, 2}), 1000);
  for (const int rank : {0, 1, 2, 3}) {
    EXPECT_EQ(all[rank].sent_between_hosts, rank % 2 == 0 ? 4000 : 0);
    EXPECT_EQ(all[rank].sent, rank % 2 == 0 ? 4000 + 4000 : 4000);
  }
}

TEST(Traffic, Grouped_CountsItsParts) {
  const auto all = traffic_of(on_one_host("shm", 4), [&](Rank& rank) {
    const auto grouped = TwoLevelCommunicator::make(rank.comm, 2);
    std::vector<float> data(1000);
    const View view = {data.data(), data.size(), DType::kFloat32};
    grouped->all_reduce(view, view, ReduceOp::kSum, rank.stream);
    rank.finish();
    // To the other leader, and to the other one of its group.
    EXPECT_EQ(grouped->traffic()->sent, rank.comm.rank() % 2 == 0 ? 4000 + 4000 : 4000);
  });
  expect_each(all, 0, 0);  // what was split off counts apart
}

TEST_P(Contract, Traffic_WhatIsSentIsReceived) {
  std::mutex mutex;
  Traffic sum;
  run([&](Rank& rank) {
    Communicator& comm = rank.comm;
    if (!comm.traffic()) return;
    std::vector<int> all(comm.size());
    std::iota(all.begin(), all.end(), 0);
    const auto other = comm.split(all);
    const int n = comm.size(), last = n - 1;
    for (const size_t count : {size_t{3}, size_t{7001}, size_t{300007}}) {
      std::vector<float> one(count), many(count * n);
      const View small = {one.data(), count, DType::kFloat32};
      const View large = {many.data(), count * n, DType::kFloat32};
      for (Communicator* through : {&comm, other.get()}) {
        through->all_reduce(large, large, ReduceOp::kSum, rank.stream);
        through->reduce(small, small, ReduceOp::kSum, last, rank.stream);
        through->broadcast(large, last, rank.stream);
        through->all_gather(small, large, rank.stream);
        through->reduce_scatter(large, small, ReduceOp::kSum, rank.stream);
        if (n > 1 && comm.rank() == 0) through->send(small, last, rank.stream);
        if (n > 1 && comm.rank() == last) through->recv(small, 0, rank.stream);
        through->barrier(rank.stream);
      }
    }
    rank.finish();
    Traffic traffic = *comm.traffic();
    traffic += *other->traffic();
    std::lock_guard lock(mutex);
    sum.sent += traffic.sent;
    sum.received += traffic.received;
    EXPECT_LE(traffic.sent_between_hosts, traffic.sent);
    EXPECT_EQ(traffic.sent > 0, n > 1);
  });
  EXPECT_EQ(sum.sent, sum.received);
}

}  // namespace
}  // namespace fleet

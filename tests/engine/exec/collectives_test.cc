// Each collective operation in a Program, over ranks of this process, against plain sums.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <ostream>

#include "exec/communicator_set.h"
#include "exec/executor.h"
#include "tests/engine/comm/ranks.h"

namespace fleet {
namespace {

using Floats = std::vector<float>;

// The values that a rank feeds: integers, so that sums are exact in any order.
Floats fed(int rank, int64_t count) {
  Floats values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>((rank + 1) * (i % 97 + 1));
  return values;
}

Floats sum_of(const std::vector<int>& ranks, int64_t count) {
  Floats sum(count);
  for (const int rank : ranks) {
    const Floats values = fed(rank, count);
    for (int64_t i = 0; i < count; ++i) sum[i] += values[i];
  }
  return sum;
}

Floats part(const Floats& all, size_t index, size_t parts) {
  const size_t count = all.size() / parts;
  return {all.begin() + index * count, all.begin() + (index + 1) * count};
}

// A rank's Program: x is fed, the collectives run on streams of their own.
struct CollectivesNet {
  CollectivesNet(int64_t rows, int64_t columns) {
    section = program.add_section("always", {});
    x = program.feed("x", DType::kFloat32, {rows, columns});
  }
  GroupId group(const std::vector<int>& ranks) {
    return program.add_group({.name = "group", .ranks = ranks});
  }
  VarId copied() { return program.emit(section, "scale", {x})[0]; }
  VarId in_place(const std::string& type, VarId var, const Attributes& attributes = {}) {
    program.append(section, type, {var}, {var}, attributes).stream = stream;
    return var;
  }
  VarId made(const std::string& type, const Attributes& attributes = {}) {
    const VarId y = program.temporary("y");
    program.append(section, type, {x}, {y}, attributes).stream = stream;
    return y;
  }
  void send(VarId var, int peer, GroupId group) {
    program
        .append(section, "send", {var}, {},
                {{"peer", int64_t{peer}}, {"communicator", int64_t{group}}})
        .stream = stream;
  }
  VarId recv(const Shape& shape, int peer, GroupId group) {
    const VarId y = program.temporary("y");
    program
        .append(section, "recv", {}, {y},
                {{"peer", int64_t{peer}},
                 {"communicator", int64_t{group}},
                 {"shape", std::vector<int64_t>(shape.begin(), shape.end())}})
        .stream = stream;
    return y;
  }
  Program program;
  SectionId section;
  VarId x;
  int stream = 1;
};

// Builds a rank's Program and returns what is read of it; kNoVar: nothing.
using Build = std::function<VarId(CollectivesNet&, int rank)>;

// The values that each rank reads after two steps.
std::vector<Floats> run_on(const std::string& backend, int ranks, int64_t rows, int64_t columns,
                           const Build& build) {
  std::vector<Floats> results(ranks);
  std::mutex mutex;
  run_ranks(on_one_host(backend, ranks), [&](Rank& rank) {
    const int self = rank.comm.rank();
    CollectivesNet net(rows, columns);
    const VarId kept = build(net, self);
    std::vector<VarId> keep;
    if (kept != kNoVar) keep.push_back(kept);
    const CommunicatorSet set(net.program.groups(), &rank.comm);
    Executor executor(plan_program(net.program, keep), rank.device, set.all());
    const Floats x = fed(self, rows * columns);
    for (int step = 0; step < 2; ++step) {
      executor.feed(net.x, x);
      executor.run({.step = step});
    }
    const Floats result = kept == kNoVar ? Floats{} : executor.values<float>(kept);
    executor.synchronize();
    const std::lock_guard lock(mutex);
    results[self] = result;
  });
  return results;
}

struct Case {
  std::string backend;
  int64_t columns;
};

void PrintTo(const Case& on, std::ostream* out) { *out << on.backend << " of " << on.columns; }

class Collectives : public testing::TestWithParam<Case> {
 protected:
  static constexpr int64_t kRows = 6;
  int64_t count() const { return kRows * GetParam().columns; }
  std::vector<Floats> run(int ranks, const Build& build) {
    return run_on(GetParam().backend, ranks, kRows, GetParam().columns, build);
  }
};

TEST_P(Collectives, AllReduce_SumsOrTakesTheLargest) {
  for (const std::string op : {"sum", "min", "max"}) {
    const auto results = run(3, [&](CollectivesNet& net, int) {
      net.group({0, 1, 2});
      return net.in_place("all_reduce", net.copied(), {{"op", op}});
    });
    const Floats expected =
        op == "sum" ? sum_of({0, 1, 2}, count()) : fed(op == "min" ? 0 : 2, count());
    for (const Floats& result : results) EXPECT_EQ(result, expected) << op;
  }
}

TEST_P(Collectives, Reduce_SumsOnItsRoot) {
  const auto results = run(3, [](CollectivesNet& net, int) {
    net.group({0, 1, 2});
    return net.in_place("reduce", net.copied(), {{"root", int64_t{2}}});
  });
  EXPECT_EQ(results[2], sum_of({0, 1, 2}, count()));
}

TEST_P(Collectives, Broadcast_ComesFromItsRoot) {
  const auto results = run(3, [](CollectivesNet& net, int) {
    net.group({0, 1, 2});
    return net.in_place("broadcast", net.copied(), {{"root", int64_t{1}}});
  });
  for (const Floats& result : results) EXPECT_EQ(result, fed(1, count()));
}

TEST_P(Collectives, FetchParameters_CopiesTheRoots) {
  const auto results = run(3, [](CollectivesNet& net, int) {
    net.group({0, 1, 2});
    return net.made("fetch_parameters", {{"root", int64_t{2}}});
  });
  for (const Floats& result : results) EXPECT_EQ(result, fed(2, count()));
}

TEST_P(Collectives, AllGather_IsInTheOrderOfTheGroup) {
  const auto results = run(3, [](CollectivesNet& net, int) {
    net.group({2, 0, 1});
    return net.made("all_gather");
  });
  Floats expected;
  for (const int rank : {2, 0, 1}) {
    const Floats values = fed(rank, count());
    expected.insert(expected.end(), values.begin(), values.end());
  }
  for (const Floats& result : results) EXPECT_EQ(result, expected);
}

TEST_P(Collectives, ReduceScatter_GivesEachItsPartOfTheSum) {
  const auto results = run(3, [](CollectivesNet& net, int) {
    net.group({2, 0, 1});
    return net.made("reduce_scatter");
  });
  const Floats sum = sum_of({0, 1, 2}, count());
  EXPECT_EQ(results[2], part(sum, 0, 3));
  EXPECT_EQ(results[0], part(sum, 1, 3));
  EXPECT_EQ(results[1], part(sum, 2, 3));
}

// Rank 0 to rank 2 and, doubled there, back; a group and a stream a direction. Rank 1 does nothing.
TEST_P(Collectives, SendAndRecv_PassTensorsOnInOrder) {
  const Shape shape = {kRows, GetParam().columns};
  const auto results = run(3, [&](CollectivesNet& net, int rank) {
    if (rank == 1) return kNoVar;
    const GroupId there = net.group({0, 2}), back = net.group({0, 2});
    if (rank == 0) {
      net.send(net.copied(), 1, there);
      net.send(net.program.emit(net.section, "scale", {net.x}, {{"scale", 3.0}})[0], 1, there);
      net.stream = 2;
      const VarId first = net.recv(shape, 1, back), second = net.recv(shape, 1, back);
      return net.program.emit(net.section, "elementwise_sub", {second, first})[0];
    }
    for (int i = 0; i < 2; ++i) {
      net.stream = 1;
      const VarId got = net.recv(shape, 0, there);
      net.stream = 2;
      net.send(net.program.emit(net.section, "scale", {got}, {{"scale", 2.0}})[0], 0, back);
    }
    return kNoVar;
  });
  Floats expected = fed(0, count());
  for (float& value : expected) value *= 6 - 2;
  EXPECT_EQ(results[0], expected);
}

// Ranks 2 and 0 by themselves, in this order; rank 1 in a group of its own.
TEST_P(Collectives, GroupOfSomeRanks_LeavesTheOthersAlone) {
  const auto results = run(3, [](CollectivesNet& net, int rank) {
    const GroupId group = rank == 1 ? net.group({1}) : net.group({2, 0});
    const Attributes attributes = {{"communicator", int64_t{group}}, {"root", int64_t{0}}};
    return net.in_place("broadcast", net.copied(), attributes);
  });
  EXPECT_EQ(results[0], fed(2, count()));
  EXPECT_EQ(results[1], fed(1, count()));
  EXPECT_EQ(results[2], fed(2, count()));
}

// Inside pairs, then across them: the sum over all four, of variables in the buckets of two groups.
TEST_P(Collectives, TwoGroupsOfTheSameVariable_SumInTwoLevels) {
  const auto results = run(4, [](CollectivesNet& net, int rank) {
    const int64_t inner = net.group(rank < 2 ? std::vector<int>{0, 1} : std::vector<int>{2, 3});
    const int64_t outer = net.group(rank % 2 ? std::vector<int>{1, 3} : std::vector<int>{0, 2});
    const VarId a = net.copied(), b = net.copied();
    Op op =
        net.program.make_op(net.section, "all_reduce", {a, b}, {a, b}, {{"communicator", inner}});
    op.stream = 1;
    net.program.ops().push_back(op);
    net.stream = 2;
    return net.in_place("all_reduce", b, {{"communicator", outer}});
  });
  for (const Floats& result : results) EXPECT_EQ(result, sum_of({0, 1, 2, 3}, count()));
}

TEST_P(Collectives, GroupOfOneRank_CopiesOrDoesNothing) {
  for (const std::string type :
       {"all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter"}) {
    const auto results = run(2, [&](CollectivesNet& net, int rank) {
      net.group({rank});
      return type == "all_gather" || type == "reduce_scatter" ? net.made(type)
                                                              : net.in_place(type, net.copied());
    });
    for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(results[rank], fed(rank, count())) << type;
  }
}

// A chain of broadcasts through two buffers: none is overwritten before it was read.
TEST_P(Collectives, BroadcastsThroughTwoBuffers_AreReadBeforeTheNext) {
  constexpr int kParts = 8;
  const auto results = run(2, [&](CollectivesNet& net, int rank) {
    net.group({0, 1});
    std::vector<VarId> parts;
    VarId sum = net.program.emit(net.section, "scale", {net.x}, {{"scale", 0.0}})[0];
    for (int i = 0; i <= kParts; ++i) {
      if (i < kParts) {
        const double factor = rank == i % 2 ? i + 1 : -1000;
        parts.push_back(net.program.emit(net.section, "scale", {net.x}, {{"scale", factor}})[0]);
        net.in_place("broadcast", parts[i], {{"root", int64_t{i % 2}}});
      }
      if (i > 0) sum = net.program.emit(net.section, "elementwise_add", {sum, parts[i - 1]})[0];
    }
    EXPECT_EQ(plan_program(net.program, {sum}).bucket_bytes,
              std::vector<size_t>{2 * ((count() * sizeof(float) + 63) / 64 * 64)});
    return sum;
  });
  Floats expected(count());
  for (int i = 0; i < kParts; ++i) {
    const Floats values = fed(i % 2, count());
    for (int64_t k = 0; k < count(); ++k) expected[k] += static_cast<float>(i + 1) * values[k];
  }
  for (const Floats& result : results) EXPECT_EQ(result, expected);
}

INSTANTIATE_TEST_SUITE_P(Transports, Collectives,
                         testing::Values(Case{"inprocess", 3}, Case{"inprocess", 20000},
                                         Case{"shm", 3}, Case{"shm", 20000}, Case{"gloo", 3}),
                         [](const auto& info) {
                           return info.param.backend + "_" + std::to_string(info.param.columns);
                         });

TEST(CommunicatorSet, GroupsOfAllRanks_UseTheJobsOwnOnce) {
  run_ranks(on_one_host("inprocess", 4), [](Rank& rank) {
    const std::vector<int> all = {0, 1, 2, 3}, turned = {3, 2, 1, 0};
    const std::vector<int> odd = {1, 3}, own = {rank.comm.rank()};
    const CommunicatorSet set({{.name = "turned", .ranks = turned},
                               {.name = "first", .ranks = all},
                               {.name = "second", .ranks = all},
                               {.name = "odd", .ranks = odd},
                               {.name = "own", .ranks = own},
                               {.name = "summed", .ranks = all, .inner_group_size = 2}},
                              &rank.comm);
    ASSERT_EQ(set.all().size(), 6u);
    EXPECT_EQ(set.all()[0]->rank(), 3 - rank.comm.rank());
    EXPECT_EQ(set.all()[1], &rank.comm);
    EXPECT_NE(set.all()[2], &rank.comm);
    EXPECT_EQ(set.all()[3] != nullptr, rank.comm.rank() % 2 == 1);
    EXPECT_EQ(set.all()[4], nullptr);
    EXPECT_EQ(set.all()[5]->name(), "inprocess in groups of 2");
  });
}

TEST(CommunicatorSet, RankThatTheJobHasNot_IsRefused) {
  EXPECT_THROW(CommunicatorSet({{.name = "two", .ranks = {0, 1}}}, nullptr), Error);
  EXPECT_EQ(CommunicatorSet({{.name = "one", .ranks = {0}}}, nullptr).all()[0], nullptr);
}

}  // namespace
}  // namespace fleet

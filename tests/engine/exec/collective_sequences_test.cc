// The collectives that ranks must agree on before they run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/thread.h"
#include "exec/plan.h"
#include "store/store.h"

namespace fleet {
namespace {

using testing::ElementsAre;
using testing::Key;
using testing::StartsWith;

// A rank's Program of collectives.
struct Net {
  explicit Net(Predicate when = {}) { section = program.add_section("always", when); }
  GroupId group(const std::vector<int>& ranks, int inner_group_size = 1) {
    return program.add_group(
        {.name = "group", .ranks = ranks, .inner_group_size = inner_group_size});
  }
  VarId made(int64_t elements, DType dtype = DType::kFloat32) {
    const VarId x =
        program.feed("x" + std::to_string(program.var_count()), DType::kFloat32, {elements});
    if (dtype == DType::kFloat32) return program.emit(section, "scale", {x})[0];
    return program.emit(section, "cast", {x}, {{"to", std::string(name_of(dtype))}})[0];
  }
  void collective(const std::string& type, const std::vector<VarId>& vars,
                  Attributes attributes = {}) {
    program.append(section, type, vars, vars, std::move(attributes));
  }
  void send(int64_t elements, int peer, GroupId group) {
    program.append(section, "send", {made(elements)}, {},
                   {{"peer", int64_t{peer}}, {"communicator", int64_t{group}}});
  }
  void recv(int64_t elements, int peer, GroupId group) {
    program.append(section, "recv", {}, {program.temporary("y")},
                   {{"peer", int64_t{peer}},
                    {"communicator", int64_t{group}},
                    {"shape", std::vector<int64_t>{elements}}});
  }
  CollectiveSequences collective_sequences(int rank) const {
    return plan_program(program, {}).collective_sequences(rank);
  }
  Program program;
  SectionId section;
};

uint64_t hash_of(const Net& net, const std::string& name, int rank = 0) {
  return net.collective_sequences(rank).at(name).hash();
}

TEST(CollectiveSequences, OfAGroup_CoversAllThatRanksMustShare) {
  const auto hash = [](const std::function<void(Net&)>& build, Predicate when = {},
                       int inner_group_size = 1) {
    Net net(when);
    net.group({0, 1}, inner_group_size);
    build(net);
    return hash_of(net, "ranks 0 1");
  };
  const auto two = [](Net& net) { net.collective("all_reduce", {net.made(8), net.made(16)}); };
  const std::vector<uint64_t> hashes = {
      hash(two),
      hash(two, {.every = 2}),
      hash(two, {}, 2),
      hash([](Net& net) {
        net.collective("all_reduce", {net.made(16), net.made(8)});
      }),
      hash([](Net& net) {
        net.collective("all_reduce", {net.made(8)});
        net.collective("all_reduce", {net.made(16)});
      }),
      hash([](Net& net) {
        net.collective("all_reduce", {net.made(16)});
        net.collective("all_reduce", {net.made(8)});
      }),
      hash([](Net& net) {
        net.collective("all_reduce", {net.made(8), net.made(16)}, {{"op", std::string("max")}});
      }),
      hash([](Net& net) {
        net.collective("all_reduce",
                       {net.made(8, DType::kBFloat16), net.made(16, DType::kBFloat16)});
      }),
      hash([](Net& net) {
        net.collective("broadcast", {net.made(8), net.made(16)});
      }),
      hash([](Net& net) {
        net.collective("broadcast", {net.made(8), net.made(16)}, {{"root", int64_t{1}}});
      })};
  for (size_t i = 0; i < hashes.size(); ++i) {
    for (size_t k = 0; k < i; ++k) EXPECT_NE(hashes[i], hashes[k]) << i << " and " << k;
  }
  EXPECT_EQ(hash(two), hashes[0]);
}

TEST(CollectiveSequences, GroupOfOneRank_AgreesWithNobody) {
  Net net;
  net.group({0});
  net.collective("all_reduce", {net.made(8)});
  EXPECT_TRUE(net.collective_sequences(0).empty());
}

TEST(CollectiveSequences, CollectiveOfAGroupThatTheRankIsNotIn_IsRefused) {
  Net net;
  net.group({0, 1});
  net.collective("all_reduce", {net.made(8)});
  EXPECT_THROW(net.collective_sequences(2), Error);
}

// Ranks 1 and 3 of a job of four, the second and first of their group.
TEST(CollectiveSequences, SendsAndReceives_MatchInOrder) {
  const auto sender = [](const std::vector<int64_t>& sizes) {
    Net net;
    const GroupId group = net.group({3, 1});
    for (const int64_t size : sizes) net.send(size, 0, group);
    return hash_of(net, "pair 1 3", 1);
  };
  const auto receiver = [](const std::vector<int64_t>& sizes) {
    Net net;
    net.group({0, 3});
    const GroupId group = net.group({3, 1});
    for (const int64_t size : sizes) net.recv(size, 1, group);
    return hash_of(net, "pair 1 3", 3);
  };
  EXPECT_EQ(sender({8, 16}), receiver({8, 16}));
  EXPECT_NE(sender({8, 16}), receiver({16, 8}));
  EXPECT_NE(sender({8, 16}), receiver({8}));
  EXPECT_NE(sender({8, 16}), sender({16, 8}));
}

// Two messages there, one back in between on the other rank: with a communicator a direction that
// is not a conflict, on a common one each would wait for the other.
TEST(CollectiveSequences, DirectionsWithACommunicatorEach_NeedNoCommonOrder) {
  for (const bool common : {false, true}) {
    Net first, second;
    for (Net* net : {&first, &second}) {
      net->group({0, 1});
      net->group({0, 1});
    }
    const GroupId there = 0, back = common ? 0 : 1;
    first.send(8, 1, there);
    first.send(8, 1, there);
    first.recv(8, 1, back);
    second.recv(8, 0, there);
    second.send(8, 0, back);
    second.recv(8, 0, there);
    EXPECT_EQ(hash_of(first, "pair 0 1", 0) == hash_of(second, "pair 0 1", 1), !common);
  }
}

// Each rank compares; what it threw, or nothing.
std::vector<std::string> compared(const std::vector<CollectiveSequences>& all) {
  const std::shared_ptr<Store> store = make_memory_store();
  std::vector<std::string> errors(all.size());
  std::vector<Thread> threads;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    threads.emplace_back("rank", [&, rank] {
      try {
        compare_collective_sequences(all[rank], static_cast<int>(rank),
                                     static_cast<int>(all.size()), *store,
                                     std::chrono::seconds(30));
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kUsage);
        errors[rank] = error.what();
      }
    });
  }
  for (Thread& thread : threads) thread.join();
  return errors;
}

// A pipeline of two stages, each of two ranks: ranks 0 and 1, 2 and 3. Groups have other numbers,
// the Programs other variables.
std::vector<CollectiveSequences> pipeline(int64_t second_stage, int64_t received) {
  std::vector<CollectiveSequences> all;
  for (int rank = 0; rank < 4; ++rank) {
    Net net;
    if (rank == 2) net.group({2});
    const GroupId stage = net.group(rank < 2 ? std::vector<int>{0, 1} : std::vector<int>{2, 3});
    const GroupId next = net.group(rank % 2 ? std::vector<int>{1, 3} : std::vector<int>{0, 2});
    for (int i = 0; i < rank; ++i) net.made(4);
    if (rank < 2) {
      net.send(32, 1, next);
    } else {
      net.recv(rank == 3 ? received : 32, 0, next);
    }
    net.collective("all_reduce",
                   {net.made(rank < 2    ? 8
                             : rank == 3 ? second_stage
                                         : 16)},
                   {{"communicator", int64_t{stage}}});
    all.push_back(net.collective_sequences(rank));
  }
  return all;
}

TEST(CompareCollectiveSequences, OtherProgramsWhoseGroupsFit_Pass) {
  const std::vector<CollectiveSequences> all = pipeline(16, 32);
  EXPECT_THAT(all[0], ElementsAre(Key("pair 0 2"), Key("ranks 0 1")));
  EXPECT_THAT(compared(all), ElementsAre("", "", "", ""));
}

TEST(CompareCollectiveSequences, GroupThatDiffers_IsNamedWithItsRankAndOperation) {
  const auto errors = compared(pipeline(17, 32));
  EXPECT_EQ(errors[0], "");
  EXPECT_EQ(errors[1], "");
  EXPECT_EQ(errors[2],
            "rank 3 has another plan than rank 2: ranks 2 3, operation 0: rank 3 has 'all_reduce "
            "on communicator 0, after_previous=false, op=\"sum\" (training) float32[17]:a+0', rank "
            "2 'all_reduce on communicator 0, after_previous=false, op=\"sum\" (training) "
            "float32[16]:a+0'; start all ranks with the same job file, overrides and version of "
            "fleetrun, on machines of one kind");
  EXPECT_THAT(errors[3], StartsWith("rank 2 has another plan than rank 3: "));
}

TEST(CompareCollectiveSequences, PairThatDiffers_IsNamed) {
  const auto errors = compared(pipeline(16, 33));
  EXPECT_EQ(errors[0], "");
  EXPECT_THAT(errors[1], StartsWith("rank 3 has another plan than rank 1"));
  EXPECT_EQ(errors[2], "");
  EXPECT_THAT(errors[3], StartsWith("rank 1 has another plan than rank 3"));
}

TEST(CompareCollectiveSequences, RankThatHasNone_FailsBoth) {
  std::vector<CollectiveSequences> all = pipeline(16, 32);
  all[1].clear();
  const auto errors = compared(all);
  EXPECT_THAT(errors[0], StartsWith("rank 1 has another plan than rank 0"));
  EXPECT_THAT(errors[1], StartsWith("rank 0 has another plan than rank 1"));
  EXPECT_EQ(errors[2], "");
}

// Places in memory mean the same on ranks whose tensors lie alike.
TEST(CollectiveSequences, OfGatheredPlaces_TellHowTheirTensorsLie) {
  const Shape shape = {2, 4, 2, 2};
  const auto hash = [&](const Layout& layout) {
    Net net;
    const GroupId group = net.group({0, 1});
    PlanOptions options;
    std::vector<VarId> tensors;
    for (const char* name : {"p", "g", "u", "v"}) {
      tensors.push_back(net.program.state(name, shape, Init()));
      options.initial_layouts[tensors.back()] = layout;
    }
    const VarId encoded = net.program.temporary("encoded");
    const VarId gathered = net.program.temporary("gathered");
    net.program.append(
        net.section, "dgc_select", {tensors[0], tensors[1], tensors[2], tensors[3], kNoVar},
        {encoded, tensors[2], tensors[3]},
        {{"counts", std::vector<int64_t>{2}}, {"weight_decays", std::vector<double>{0}}});
    net.program.append(net.section, "all_gather", {encoded}, {gathered},
                       {{"communicator", int64_t{group}}});
    return plan_program(net.program, {}, options).collective_sequences(0).at("ranks 0 1").hash();
  };
  EXPECT_EQ(hash(Layout::plain(shape)), hash(Layout::plain(shape)));
  EXPECT_NE(hash(Layout::plain(shape)), hash(Layout::channels_last(shape)));
}

}  // namespace
}  // namespace fleet

// Memory shared by variables, with several streams, sections and groups.
#include <gtest/gtest.h>

#include "exec/assignment.h"

namespace fleet {
namespace {

constexpr size_t kBytes = 4096;  // of each variable
constexpr int64_t kElements = kBytes / sizeof(float);

struct BranchingNet {
  BranchingNet() {
    x = program.feed("x", DType::kFloat32, {kElements});
    program.add_group({.name = "all", .ranks = {0, 1}});
  }
  VarId scale(SectionId section, VarId from, int stream = 0) {
    const VarId to = program.temporary("t");
    program.append(section, "scale", {from}, {to}).stream = stream;
    return to;
  }
  // In place, of one group.
  void collective(SectionId section, const std::string& type, const std::vector<VarId>& vars,
                  GroupId group = 0) {
    program.append(section, type, vars, vars, {{"communicator", int64_t{group}}}).stream = 1;
  }
  Program program;
  VarId x;
};

bool overlap(const Plan& plan, VarId a, VarId b) {
  const PlannedVar &first = plan.vars[a], &second = plan.vars[b];
  return first.region == second.region && first.group == second.group &&
         first.offset < second.offset + second.bytes && second.offset < first.offset + first.bytes;
}

// As a shard's parameters come: while one is read the next one is on its way.
Plan prefetched(int count, bool in_buckets) {
  BranchingNet net;
  const SectionId section = net.program.add_section("forward", {});
  std::vector<VarId> parts;
  for (int i = 0; i <= count; ++i) {
    if (i < count) {
      const VarId own = net.scale(section, net.x);
      parts.push_back(in_buckets ? own : net.scale(section, own, 1));
      if (in_buckets) net.collective(section, "broadcast", {own});
    }
    if (i > 0) {
      const VarId read = net.program.state("s" + std::to_string(i), {kElements}, {});
      net.program.append(section, "scale", {parts[i - 1]}, {read});
    }
  }
  return plan_program(net.program, {});
}

TEST(StreamMemory, ChainOfBroadcasts_NeedsTwoBuffers) {
  EXPECT_EQ(prefetched(2, true).bucket_bytes, std::vector<size_t>{2 * kBytes});
  EXPECT_EQ(prefetched(16, true).bucket_bytes, std::vector<size_t>{2 * kBytes});
  EXPECT_EQ(prefetched(16, true).arena_bytes, 0u);
}

TEST(StreamMemory, ChainThroughAnotherStream_NeedsTwoPiecesOfTheArena) {
  EXPECT_EQ(prefetched(16, false).arena_bytes, 2 * kBytes);
}

// The same of segments that are held back until the one before the last was read.
TEST(StreamMemory, FetchedSegments_NeedTwoPiecesOfOwnMemory) {
  for (const bool held_back : {true, false}) {
    BranchingNet net;
    const SectionId section = net.program.add_section("forward", {});
    const GroupId group =
        net.program.add_group({.name = "own", .ranks = {0, 1}, .own_memory = true});
    std::vector<VarId> results;
    for (int i = 0; i < 8; ++i) {
      const VarId parameter = net.program.parameter("p" + std::to_string(i), {kElements}, {});
      net.program.var(parameter).remote = true;
      const VarId fetched = net.program.temporary("fetched");
      net.program.var(fetched).fetched_from = parameter;
      Op& fetch = net.program.append(section, "fetch_parameters", {parameter}, {fetched},
                                     {{"communicator", int64_t{group}}});
      fetch.stream = 1;
      if (held_back && i >= 2) fetch.after = {results[i - 2]};
      results.push_back(net.program.state("s" + std::to_string(i), {kElements}, {}));
      net.program.append(section, "scale", {fetched}, {results.back()});
    }
    const Plan plan = plan_program(net.program, {});
    EXPECT_EQ(plan.arena_bytes, (held_back ? 2 : 8) * kBytes);
    EXPECT_EQ(plan.persistent_bytes, 9 * kBytes) << "the feed and the states";
    EXPECT_TRUE(plan.bucket_bytes.empty());
  }
}

// It decides the layouts of what this rank runs, and nothing else.
TEST(Elsewhere, Section_IsDroppedAndItsStatesHaveNoMemory) {
  BranchingNet net;
  const SectionId here = net.program.add_section("here", {});
  const SectionId remote = net.program.add_section("remote", {}, /*remote=*/true);
  const VarId held = net.program.state("held", {kElements}, {});
  const VarId other = net.program.state("other", {kElements}, {});
  net.program.var(other).remote = true;
  net.program.append(here, "scale", {net.x}, {held});
  net.program.append(remote, "scale", {net.scale(remote, net.x)}, {other});
  const Plan plan = plan_program(net.program, {});
  EXPECT_EQ(plan.ops.size(), 1u);
  EXPECT_FALSE(plan.vars[other].used);
  EXPECT_EQ(plan.arena_bytes, 0u);
  EXPECT_EQ(plan.persistent_bytes, 2 * kBytes);
}

// The same, but nothing of stream 0 is between: stream 1 may be far ahead of the readers.
TEST(StreamMemory, OtherStreamThatWaitsForNobody_OverwritesNothing) {
  BranchingNet net;
  const SectionId section = net.program.add_section("forward", {});
  std::vector<VarId> parts;
  for (int i = 0; i < 4; ++i) {
    parts.push_back(net.scale(section, net.x, 1));
    const VarId read = net.program.state("s" + std::to_string(i), {kElements}, {});
    net.program.append(section, "scale", {parts[i]}, {read});
  }
  EXPECT_EQ(plan_program(net.program, {}).arena_bytes, 4 * kBytes);
}

// Stream 1 reads; whether stream 0 has waited for it when it wants memory again is the question.
TEST(StreamMemory, ReaderOnAnotherStream_KeepsItsInputUntilItIsWaitedFor) {
  for (const bool waits : {false, true}) {
    BranchingNet net;
    const SectionId section = net.program.add_section("forward", {});
    const VarId first = net.scale(section, net.x);
    const VarId state = net.program.state("s", {kElements}, {});
    net.program.append(section, "scale", {first}, {state}).stream = 1;
    if (waits) net.program.append(section, "scale", {state}, {state});
    const VarId second = net.scale(section, net.x);
    const Plan plan = plan_program(net.program, {});
    EXPECT_EQ(overlap(plan, first, second), waits);
  }
}

TEST(StreamMemory, WaitOfASectionThatMayNotRun_FreesNothing) {
  for (const bool rarely : {false, true}) {
    BranchingNet net;
    const SectionId always = net.program.add_section("always", {});
    const SectionId other = net.program.add_section("other", {.every = rarely ? 2 : 1});
    const VarId first = net.scale(always, net.x);
    const VarId state = net.program.state("s", {kElements}, {});
    net.program.append(always, "scale", {first}, {state}).stream = 1;
    net.program.append(other, "scale", {state}, {state});
    const VarId second = net.scale(always, net.x);
    const Plan plan = plan_program(net.program, {});
    EXPECT_EQ(overlap(plan, first, second), !rarely);
  }
}

TEST(StreamMemory, InPlace_OnlyWhereNoOtherStreamReadsTheInput) {
  for (const bool read : {false, true}) {
    BranchingNet net;
    const SectionId section = net.program.add_section("forward", {});
    const VarId first = net.scale(section, net.x);
    const VarId state = net.program.state("s", {kElements}, {});
    if (read) net.program.append(section, "scale", {first}, {state}).stream = 1;
    const VarId second = net.program.emit(section, "relu", {first})[0];
    const Plan plan = plan_program(net.program, {});
    EXPECT_EQ(overlap(plan, first, second), !read);
  }
}

// Two writers of one variable, of which one could take over its input, which the other's section
// reads later.
TEST(StreamMemory, InPlace_NotWhereAnExclusiveWriterWouldOverwriteTheInput) {
  BranchingNet net;
  const SectionId always = net.program.add_section("always", {});
  const SectionId even = net.program.add_section("even", {.every = 2});
  const SectionId odd = net.program.add_section("odd", {.every = 2, .between = true});
  const VarId input = net.scale(always, net.x);
  const VarId output = net.program.temporary("out");
  net.program.append(even, "relu", {input}, {output});
  net.program.append(odd, "scale", {net.x}, {output});
  const VarId state = net.program.state("s", {kElements}, {});
  net.program.append(odd, "scale", {input}, {state});
  net.program.append(always, "scale", {output}, {state});
  const Plan plan = plan_program(net.program, {});
  EXPECT_FALSE(overlap(plan, input, output));
}

TEST(StreamMemory, SectionsThatNeverRunTogether_ShareMemory) {
  BranchingNet net;
  const SectionId even = net.program.add_section("even", {.every = 2});
  const SectionId odd = net.program.add_section("odd", {.every = 2, .between = true});
  const VarId a = net.scale(even, net.x), b = net.scale(odd, net.x);
  const VarId s = net.program.state("s", {kElements}, {});
  net.program.append(even, "scale", {a}, {s});
  net.program.append(odd, "scale", {b}, {s});
  EXPECT_EQ(plan_program(net.program, {}).arena_bytes, kBytes);
}

TEST(Buckets, TwoGroupsSumTheSameGradients_EachSideBySide) {
  BranchingNet net;
  const SectionId section = net.program.add_section("backward", {});
  const GroupId other = net.program.add_group({.name = "other", .ranks = {0, 2}});
  std::vector<VarId> g;
  for (int i = 0; i < 4; ++i) g.push_back(net.scale(section, net.x));
  net.collective(section, "all_reduce", {g[1], g[2]});
  net.collective(section, "all_reduce", {g[0], g[1], g[2], g[3]}, other);
  net.collective(section, "all_reduce", {g[3]});
  const Plan plan = plan_program(net.program, {});
  for (int i = 1; i < 4; ++i) {
    EXPECT_EQ(plan.vars[g[i]].offset, plan.vars[g[i - 1]].offset + kBytes);
    EXPECT_EQ(plan.vars[g[i]].group, 0);
  }
  EXPECT_EQ(plan.bucket_bytes, std::vector<size_t>{4 * kBytes});
}

TEST(Buckets, NeighboursThatContradict_AreRefused) {
  const std::vector<std::vector<std::vector<int>>> cases = {
      {{0, 1}, {0, 2}}, {{0, 1}, {2, 1}}, {{0, 1}, {1, 0}}, {{0, 0}}};
  for (const auto& lists : cases) {
    BranchingNet net;
    const SectionId section = net.program.add_section("backward", {});
    std::vector<VarId> g;
    for (int i = 0; i < 3; ++i) g.push_back(net.scale(section, net.x));
    for (const std::vector<int>& list : lists) {
      std::vector<VarId> vars;
      for (const int i : list) vars.push_back(g[i]);
      net.collective(section, "all_reduce", vars);
    }
    EXPECT_THROW(plan_program(net.program, {}), Error);
  }
}

// A variable that outlives the step has its own memory in a bucket and is counted under its kind.
TEST(Buckets, ParametersAndStates_KeepTheirMemoryAndTheirName) {
  BranchingNet net;
  const SectionId section = net.program.add_section("update", {});
  const VarId parameter = net.program.parameter("p", {kElements}, {});
  const VarId state = net.program.state("s", {kElements}, {});
  net.program.append(section, "scale", {net.x}, {parameter});
  net.program.append(section, "scale", {net.x}, {state});
  const VarId gradient = net.scale(section, net.x);
  net.collective(section, "broadcast", {parameter, state});
  net.collective(section, "all_reduce", {gradient});
  const Plan plan = plan_program(net.program, {});
  const PlannedMemory memory = plan.memory();
  EXPECT_EQ(memory.parameters, kBytes);
  EXPECT_EQ(memory.states, kBytes);
  EXPECT_EQ(memory.gradients, kBytes);
  EXPECT_EQ(memory.feeds, kBytes);
  EXPECT_FALSE(plan.vars[parameter].shared);
  EXPECT_FALSE(plan.vars[state].shared);
  EXPECT_TRUE(plan.vars[gradient].shared);
  EXPECT_EQ(plan.vars[parameter].region, Region::kBucket);
}

}  // namespace
}  // namespace fleet

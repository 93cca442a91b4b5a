// The guaranteed order of operations on several streams.
#include "exec/stream_order.h"

#include <gtest/gtest.h>

namespace fleet {
namespace {

// Operations by number, each a relu of one variable.
class Streams {
 public:
  Streams() { x = program.feed("x", DType::kFloat32, {4}); }
  VarId relu(SectionId section, VarId from, int stream) {
    const VarId to = program.temporary("t");
    program.append(section, "relu", {from}, {to}).stream = stream;
    return to;
  }
  bool before(int a, int b) {
    const Plan plan = plan_program(program, {});
    return StreamOrder(plan).before(a, b);
  }
  Program program;
  VarId x;
};

TEST(StreamOrder, OneStream_IsInTheOrderOfThePlan) {
  Streams s;
  const SectionId always = s.program.add_section("always", {});
  s.relu(always, s.x, 1);
  s.relu(always, s.x, 1);
  EXPECT_TRUE(s.before(0, 1));
  EXPECT_FALSE(s.before(1, 0));
}

TEST(StreamOrder, TwoStreams_AreInOrderOnlyWhereOneWaits) {
  Streams s;
  const SectionId always = s.program.add_section("always", {});
  const VarId a = s.relu(always, s.x, 0);  // 0
  s.relu(always, s.x, 1);                  // 1: of nothing that 0 makes
  s.relu(always, a, 1);                    // 2
  EXPECT_FALSE(s.before(0, 1));
  EXPECT_TRUE(s.before(0, 2));
}

TEST(StreamOrder, HeldBackOperation_WaitsWithoutReading) {
  Streams s;
  const SectionId always = s.program.add_section("always", {});
  const VarId a = s.relu(always, s.x, 0);  // 0
  s.relu(always, s.x, 1);                  // 1
  s.program.ops().back().after = {a};
  s.relu(always, s.x, 0);  // 2
  EXPECT_TRUE(s.before(0, 1));
  EXPECT_FALSE(s.before(1, 2));
}

TEST(StreamOrder, WaitingForALaterOperation_IsBehindTheEarlierToo) {
  Streams s;
  const SectionId always = s.program.add_section("always", {});
  s.relu(always, s.x, 1);                  // 0
  const VarId b = s.relu(always, s.x, 1);  // 1
  const VarId c = s.relu(always, b, 0);    // 2 waits for 1
  s.relu(always, c, 2);                    // 3 waits for 2
  EXPECT_TRUE(s.before(0, 2));
  EXPECT_TRUE(s.before(0, 3));
  EXPECT_TRUE(s.before(1, 3));
}

TEST(StreamOrder, OverwritingWhatAnotherStreamReads_Waits) {
  Streams s;
  const SectionId always = s.program.add_section("always", {});
  const VarId state = s.program.state("s", {4}, {});
  s.relu(always, state, 1);                          // 0 reads
  s.program.append(always, "relu", {s.x}, {state});  // 1 writes
  s.relu(always, s.x, 0);                            // 2
  EXPECT_TRUE(s.before(0, 1));
  EXPECT_TRUE(s.before(0, 2));
}

// Operation 2 is the only one that waits for 0, and does not run in each step.
TEST(StreamOrder, SectionThatMayNotRun_OrdersNothing) {
  for (const bool rarely : {false, true}) {
    Streams s;
    const SectionId always = s.program.add_section("always", {});
    const SectionId other = s.program.add_section("other", {.every = rarely ? 2 : 1});
    const VarId a = s.relu(always, s.x, 1);  // 0
    s.relu(always, s.x, 0);                  // 1
    s.relu(other, a, 0);                     // 2 waits for 0
    s.relu(always, s.x, 0);                  // 3
    s.relu(other, s.x, 0);                   // 4: where it runs, so does 2
    EXPECT_EQ(s.before(0, 3), !rarely);
    EXPECT_TRUE(s.before(0, 4));
  }
}

// Another section between, that runs whenever one of both ends does.
TEST(StreamOrder, SectionThatCoversAnEnd_Orders) {
  Streams s;
  const SectionId always = s.program.add_section("always", {});
  const SectionId second = s.program.add_section("second", {.every = 2});
  const SectionId fourth = s.program.add_section("fourth", {.every = 4});
  const VarId a = s.relu(second, s.x, 1);  // 0
  s.relu(second, a, 0);                    // 1 waits for 0
  s.relu(fourth, s.x, 0);                  // 2
  s.relu(always, s.x, 0);                  // 3
  EXPECT_TRUE(s.before(0, 2));
  EXPECT_TRUE(s.before(0, 3));
}

TEST(StreamOrder, SectionsThatNeverRunTogether_AreInAnyOrder) {
  Streams s;
  const SectionId even = s.program.add_section("even", {.every = 2});
  const SectionId odd = s.program.add_section("odd", {.every = 2, .between = true});
  s.relu(even, s.x, 1);
  s.relu(odd, s.x, 0);
  EXPECT_TRUE(s.before(0, 1));
  EXPECT_TRUE(s.before(1, 0));
}

}  // namespace
}  // namespace fleet

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/ranges.h"
#include "node/console.h"

namespace fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Collapse : ::testing::Test {
  Collapse() {
    for (const int rank : {0, 1, 2}) lines.begin(rank);
  }
  void add(int rank, const std::string& text) { lines.add(rank, text, now, {}); }
  // The lines that are ready to be shown, as "ranks:text".
  std::vector<std::string> taken() {
    std::vector<std::string> all;
    while (const auto line = lines.take(now)) {
      all.push_back(ranges_text(line->ranks) + ":" + line->text);
    }
    return all;
  }
  LineCollapse lines{100ms, 5};
  LineCollapse::Time now{1h};
};

TEST_F(Collapse, LineOfAllRanks_IsOneAtOnce) {
  add(0, "epoch 1\n");
  add(2, "epoch 1\n");
  EXPECT_THAT(taken(), IsEmpty());
  add(1, "epoch 1\n");
  EXPECT_THAT(taken(), ElementsAre("0-2:epoch 1\n"));
}

TEST_F(Collapse, LineOfSome_WaitsForTheWindow) {
  add(0, "a\n");
  EXPECT_EQ(lines.next_due(), now + 100ms);
  now += 99ms;
  add(2, "a\n");
  EXPECT_THAT(taken(), IsEmpty());
  now += 1ms;
  EXPECT_THAT(taken(), ElementsAre("0,2:a\n"));
  EXPECT_EQ(lines.next_due(), std::nullopt);
  add(1, "a\n");  // too late
  now += 100ms;
  EXPECT_THAT(taken(), ElementsAre("1:a\n"));
}

TEST_F(Collapse, OrderOfEachRank_IsKept) {
  add(0, "x\n");
  add(0, "y\n");
  add(1, "y\n");
  add(1, "x\n");  // behind its y: not the x above
  now += 1s;
  EXPECT_THAT(taken(), ElementsAre("0:x\n", "0-1:y\n", "1:x\n"));
}

TEST_F(Collapse, RepeatedLines_AreCountedOut) {
  for (int i = 0; i < 3; ++i) add(0, "again\n");
  for (int i = 0; i < 2; ++i) add(1, "again\n");
  now += 1s;
  EXPECT_THAT(taken(), ElementsAre("0-1:again\n", "0-1:again\n", "0:again\n"));
}

TEST_F(Collapse, RankThatHasEnded_IsNotWaitedFor) {
  lines.end(2);
  add(0, "a\n");
  add(1, "a\n");
  EXPECT_THAT(taken(), ElementsAre("0-1:a\n"));
}

TEST_F(Collapse, MoreThanMayWait_GoesOn) {
  for (int i = 0; i < 5; ++i) add(0, "line\n");
  EXPECT_THAT(taken(), IsEmpty());
  add(0, "line\n");
  EXPECT_EQ(taken().size(), 1u);
}

TEST_F(Collapse, AnyMixture_LosesNothingAndKeepsEachOrder) {
  std::mt19937 random(7);
  std::vector<std::vector<std::string>> written(3), shown(3);
  const auto take = [&](bool all) {
    while (const auto line = all ? lines.take_any() : lines.take(now)) {
      for (const int rank : line->ranks) shown[static_cast<size_t>(rank)].push_back(line->text);
    }
  };
  for (int i = 0; i < 20000; ++i) {
    const size_t rank = random() % 3;
    written[rank].push_back(std::string(1, static_cast<char>('a' + random() % 5)) + "\n");
    add(static_cast<int>(rank), written[rank].back());
    now += std::chrono::milliseconds(random() % 20);
    take(false);
  }
  take(true);
  EXPECT_EQ(shown, written);
}

}  // namespace
}  // namespace fleet

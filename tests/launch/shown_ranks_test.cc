#include "launch/shown_ranks.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "launch/arguments.h"

namespace fleet {
namespace {

ShownRanks shown(std::vector<std::string> arguments) {
  arguments.push_back("program");
  return read_shown_ranks(parse_arguments(arguments).settings);
}

TEST(ShownRanks, NothingChosen_LocalRankZero) {
  EXPECT_TRUE(shown({}).shows(8, 0));
  EXPECT_FALSE(shown({}).shows(1, 1));
}

TEST(ShownRanks, GlobalRanksAndRanges) {
  const ShownRanks some = shown({"--ranks=1,4-5"});
  EXPECT_FALSE(some.shows(0, 0));
  for (const int rank : {1, 4, 5}) EXPECT_TRUE(some.shows(rank, 3)) << rank;
  EXPECT_TRUE(shown({"--ranks=all"}).shows(99, 7));
}

TEST(ShownRanks, LocalRanks_AreThoseOfEveryNode) {
  const ShownRanks some = shown({"--local_ranks_filter=0,2"});
  EXPECT_TRUE(some.shows(10, 2));
  EXPECT_FALSE(some.shows(9, 1));
}

TEST(ShownRanks, NoRank_IsAnError) {
  for (const char* list : {"x", "3-1", "-1", "1,,2"}) {
    EXPECT_THROW(shown({std::string("--ranks=") + list}), Error) << list;
  }
}

}  // namespace
}  // namespace fleet

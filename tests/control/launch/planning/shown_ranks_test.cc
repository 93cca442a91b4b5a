#include <gtest/gtest.h>

#include "base/error.h"
#include "launch/planning/arguments.h"
#include "launch/planning/launch_config.h"

namespace fleet {
namespace {

ShownRanks shown(std::vector<std::string> arguments) {
  arguments.push_back("program");
  return parse_arguments(arguments).config.logs.shown;
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

TEST(ShownRanks, TeeAndRedirects_AsInTorchrun) {
  EXPECT_EQ(shown({}).streams(0, 0), 3);
  EXPECT_EQ(shown({}).streams(1, 1), 0);
  EXPECT_EQ(shown({"--tee=1"}).streams(5, 1), 3);  // what is not redirected shows as well
  EXPECT_EQ(shown({"--redirects=3"}).streams(0, 0), 0);
  EXPECT_EQ(shown({"--redirects=3", "--tee=2"}).streams(5, 1), 2);
  const ShownRanks some = shown({"--redirects", "0:3,12:1", "--tee=0:2"});
  EXPECT_EQ(some.streams(0, 0), 2);
  EXPECT_EQ(some.streams(12, 12), 2);
  EXPECT_EQ(some.streams(3, 3), 3);
  EXPECT_EQ(shown({"-t3", "--ranks=4"}).streams(4, 0), 3);
  EXPECT_EQ(shown({"-t3", "--ranks=4"}).streams(0, 0), 0);
}

TEST(ShownRanks, NoStreams_IsAnError) {
  for (const char* streams : {"4", "x", "0:4", "1,2", "0:1,3", ":1", "0:", "-1:1"}) {
    EXPECT_THROW(shown({std::string("--tee=") + streams}), Error) << streams;
  }
}

}  // namespace
}  // namespace fleet

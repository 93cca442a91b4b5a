#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "diagnosis/collective_waits.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RankCollectives& add(Stacks* all, int rank) {
  RankCollectives& one = *all->add_collectives();
  one.set_rank(rank);
  return one;
}

TEST(FlightNotes, RanksOfOurEngine_GetNone) {
  Stacks all;
  add(&all, 0).add_groups()->set_name("dp");
  EXPECT_THAT(flight_notes(all), IsEmpty());
}

TEST(FlightNotes, RanksWithTheSameReason_ShareALine) {
  Stacks all;
  for (const int rank : {4, 1, 0}) add(&all, rank).set_dump("/log/flight_recorder_");
  for (const int rank : {2, 3}) add(&all, rank).set_missing("nothing reads its pipe");
  EXPECT_THAT(flight_notes(all),
              ElementsAre("no dump of PyTorch's flight recorder from ranks 2-3: nothing reads its "
                          "pipe",
                          "dumps of PyTorch's flight recorder: /log/flight_recorder_N, ranks "
                          "0-1,4"));
}

TEST(FlightNotes, RecorderIsOff_TheNoteSaysHowToSwitchItOn) {
  Stacks all;
  add(&all, 1).set_recorder_off(true);
  EXPECT_THAT(flight_notes(all),
              ElementsAre(HasSubstr("rank 1 waits, start the job with "
                                    "TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/tmp/fr_${USER}_, ")))
      << "two users of a host must not share a pipe";
}

TEST(FlightNotes, ManyReasons_AreCut) {
  Stacks all;
  for (int rank = 0; rank < 100; ++rank) add(&all, rank).set_missing("m" + std::to_string(rank));
  EXPECT_EQ(flight_notes(all).size(), 8u);
  add(&all, 100).set_dump("/log/flight_recorder_");
  EXPECT_EQ(flight_notes(all).size(), 8u);
  EXPECT_THAT(flight_notes(all).back(), HasSubstr("/log/flight_recorder_N, rank 100"));
}

}  // namespace
}  // namespace fleet

#include <gtest/gtest.h>

#include "train/session.h"

namespace fleet {
namespace {

TEST(StageNames, Ranks_GetTheirStages) {
  EXPECT_EQ(with_stages("rank 1 left the group", 2), "stage 1 (rank 1) left the group");
  EXPECT_EQ(with_stages("rank 2 waits for rank 13", 4),
            "stage 2 (rank 2) waits for stage 1 (rank 13)");
}

TEST(StageNames, OtherTexts_StayTheSame) {
  for (const char* text : {"", "ranks 1 2", "rank ", "rank x", "rank of a matrix"}) {
    EXPECT_EQ(with_stages(text, 2), text);
  }
  EXPECT_EQ(with_stages("rank 1", 1), "rank 1");
}

}  // namespace
}  // namespace fleet

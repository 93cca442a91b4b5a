#include <gtest/gtest.h>

#include "observe/meter.h"

namespace fleet {
namespace {

TEST(TimeAccumulator, PiecesAddUp_InnerOnesCountOnce) {
  double now = 100;
  TimeAccumulator account([&] { return now; });
  {
    const TimeAccumulator::Scope piece(account);
    now += 2;
    {
      const TimeAccumulator::Scope inner(account);
      now += 3;
    }
    now += 1;
    EXPECT_EQ(account.seconds(), 0);  // it is not over
  }
  now += 10;
  EXPECT_EQ(account.seconds(), 6);
  {
    const TimeAccumulator::Scope piece(account);
    now += 1;
  }
  EXPECT_EQ(account.seconds(), 7);
}

}  // namespace
}  // namespace fleet

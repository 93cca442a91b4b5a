#include "observe/time_account.h"

#include <gtest/gtest.h>

namespace fleet {
namespace {

TEST(TimeAccount, PiecesAddUp_InnerOnesCountOnce) {
  double now = 100;
  TimeAccount account([&] { return now; });
  {
    const TimeAccount::Piece piece(account);
    now += 2;
    {
      const TimeAccount::Piece inner(account);
      now += 3;
    }
    now += 1;
    EXPECT_EQ(account.seconds(), 0);  // it is not over
  }
  now += 10;
  EXPECT_EQ(account.seconds(), 6);
  {
    const TimeAccount::Piece piece(account);
    now += 1;
  }
  EXPECT_EQ(account.seconds(), 7);
}

}  // namespace
}  // namespace fleet

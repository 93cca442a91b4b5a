#include "ps/row_sum.h"

#include <gmock/gmock.h>

#include <cmath>

namespace fleet::ps {
namespace {

using testing::ElementsAre;

const RowPart kOne = {.ids = {7, 3}, .shows = {1, 2}, .clicks = {1, 0}, .values = {1, 2, 3, 4}};
const RowPart kMore = {
    .ids = {3, 9}, .shows = {4, 1}, .clicks = {1, 1}, .values = {10, 20, 30, 40}};

TEST(RowSum, Rows_AreAddedInOrderOfOccurrence) {
  RowSum sum(2);
  EXPECT_TRUE(sum.empty());
  sum.add(kOne);
  sum.add(kMore);
  EXPECT_THAT(sum.rows().ids, ElementsAre(7, 3, 9));
  EXPECT_THAT(sum.rows().shows, ElementsAre(1, 6, 1));
  EXPECT_THAT(sum.rows().clicks, ElementsAre(1, 1, 1));
  EXPECT_THAT(sum.rows().values, ElementsAre(1, 2, 13, 24, 30, 40));
  const RowPart taken = sum.take();
  EXPECT_TRUE(sum.empty());
  RowSum again(2);
  again.add(taken);
  again.add(kMore);
  EXPECT_THAT(again.rows().ids, ElementsAre(7, 3, 9));
  EXPECT_THAT(again.rows().values, ElementsAre(1, 2, 23, 44, 60, 80));
  sum.add(kMore);
  EXPECT_THAT(sum.rows().ids, ElementsAre(3, 9));
}

// As a sum with the zeros of trainers without the row.
TEST(RowSum, Zeros_ChangeTheSignOfAZero) {
  RowSum sum(1);
  const RowPart zeros = {
      .ids = {1, 2}, .shows = {1, 1}, .clicks = {0, 0}, .values = {-0.0f, -0.0f}};
  const RowPart zero = {.ids = {1}, .shows = {1}, .clicks = {0}, .values = {-0.0f}};
  sum.add(zeros);
  sum.add(zero);
  sum.add_zeros(2);
  EXPECT_TRUE(std::signbit(sum.rows().values[0]));
  EXPECT_FALSE(std::signbit(sum.rows().values[1]));
}

TEST(RowSum, SumThatIsNotFinite_IsFound) {
  RowSum sum(1);
  const RowPart large = {.ids = {1}, .shows = {1}, .clicks = {0}, .values = {3e38f}};
  sum.add(large);
  EXPECT_TRUE(sum.finite());
  sum.add(large);
  EXPECT_FALSE(sum.finite());
}

TEST(RowSum, RowsOfAnotherSize_AreInternal) {
  RowSum sum(3);
  EXPECT_ANY_THROW(sum.add(kOne));
}

}  // namespace
}  // namespace fleet::ps

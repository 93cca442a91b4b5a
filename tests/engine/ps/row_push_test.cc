#include "ps/row_push.h"

#include <gmock/gmock.h>

namespace fleet::ps {
namespace {

using testing::ElementsAre;

TEST(RowPush, Sum_AddsById) {
  const RowPush one = {
      {{.ids = {7, 3}, .shows = {1, 2}, .clicks = {0, 1}, .values = {1, 2, 3, 4}}, {}}, {{}, {}}};
  const RowPush more = {
      {{.ids = {3, 9}, .shows = {5, 1}, .clicks = {1, 0}, .values = {10, 20, 30, 40}},
       {.ids = {1}, .shows = {1}, .clicks = {1}, .values = {8}}},
      {{}, {}}};
  const RowPush sum = sum_of({one, more});
  const RowPart& first = sum[0][0];
  EXPECT_THAT(first.ids, ElementsAre(7, 3, 9));
  EXPECT_THAT(first.shows, ElementsAre(1, 7, 1));
  EXPECT_THAT(first.clicks, ElementsAre(0, 2, 0));
  EXPECT_THAT(first.values, ElementsAre(1, 2, 13, 24, 30, 40));
  EXPECT_THAT(sum[0][1].ids, ElementsAre(1));
  EXPECT_THAT(sum[0][1].values, ElementsAre(8));
  EXPECT_TRUE(sum[1][0].ids.empty());
}

TEST(RowPush, SumOfOtherTables_IsInternal) {
  const RowPush two(1, std::vector<RowPart>(2));
  EXPECT_ANY_THROW(sum_of({two, RowPush(1, std::vector<RowPart>(1))}));
  EXPECT_ANY_THROW(sum_of({two, RowPush(2, std::vector<RowPart>(2))}));
  EXPECT_EQ(sum_of({two, two}).size(), 1u);
}

}  // namespace
}  // namespace fleet::ps

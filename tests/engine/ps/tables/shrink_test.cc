#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/ps/tables/some_table.h"
#include "tests/errors.h"

namespace fleet::ps {
namespace {

TEST(ShrinkByAge, ARow_EndsAtTheAgeAndNotBefore) {
  SparseTable table(some_settings("'dim': 1, 'shrink': {'age': 3}"));
  pulled(table, {1});
  EXPECT_EQ(table.shrink().by_age, 0);  // age 1
  pulled(table, {2});
  EXPECT_EQ(table.shrink().by_age, 0);  // 2
  EXPECT_EQ(table.counts().rows, 2);
  EXPECT_EQ(table.shrink().by_age, 1);  // 3
  EXPECT_EQ(table.counts().rows, 1);
  EXPECT_EQ(table.shrink().by_age, 1);  // the other one, which came later
  EXPECT_EQ(table.counts().rows, 0);
}

TEST(ShrinkByAge, GivenAge_ReplacesThatOfTheSettings) {
  SparseTable table(some_settings("'dim': 1, 'shrink': {'age': 9}"));
  pulled(table, {1});
  EXPECT_EQ(table.shrink(0).by_age, 0);
  EXPECT_EQ(table.shrink(3).by_age, 0);  // age 2
  EXPECT_EQ(table.shrink(3).by_age, 1);
}

TEST(ShrinkByAge, PullsAndPushes_MakeARowYoungAndLookupsDoNot) {
  SparseTable table(some_settings("'dim': 1, 'shrink': {'age': 2}"));
  pulled(table, {1, 2, 3});
  table.shrink();
  pulled(table, {1});
  table.push(std::vector<uint64_t>{2}, std::vector<float>{1});
  looked_up(table, {3});
  EXPECT_EQ(table.shrink().by_age, 1);
  EXPECT_EQ(table.counts().rows, 2);
  looked_up(table, {1, 2});
  EXPECT_EQ(table.counts().missing_lookups, 0);
}

TEST(ShrinkByAge, WaitingIds_EndToo) {
  SparseTable table(
      some_settings("'dim': 1, 'entry': {'kind': 'count', 'count': 2}, 'shrink': {'age': 2}"));
  pulled(table, {1});
  EXPECT_EQ(table.shrink().waiting, 0);
  EXPECT_EQ(table.shrink().waiting, 1);
  EXPECT_EQ(table.counts().waiting, 0);
  pulled(table, {1});
  EXPECT_EQ(table.counts().rows, 0);  // its count began again
}

TEST(ShrinkByScore, ARowBelowTheScore_EndsAndOneAtItStays) {
  // score = 0.5 * (shows - clicks) + 2 * clicks, after both were halved.
  SparseTable table(some_settings(
      "'dim': 1, 'shrink': {'by_score': true, 'decay': 0.5, 'min_score': 4, 'show_weight': 0.5, "
      "'click_weight': 2}"));
  const std::vector<uint64_t> ids = {1, 2, 3, 4};
  const std::vector<float> shows = {16, 15.75f, 16.25f, 4}, clicks = {0, 0, 0, 4};
  table.push(ids, std::vector<float>(4), {.shows = shows, .clicks = clicks});
  const ShrinkResult result = table.shrink();
  EXPECT_EQ(result.by_score, 1);  // the second: 3.9375
  looked_up(table, ids);
  EXPECT_EQ(table.counts().missing_lookups, 1);
  EXPECT_EQ(table.shrink().by_score, 3);  // 2, 2.03 and 2
}

TEST(ShrinkByTime, ARow_EndsAtTheAge) {
  double now = 1'000'000;
  SparseTable table(some_settings("'dim': 1, 'shrink': {'ttl': 60}"), {}, [&] { return now; });
  pulled(table, {1});
  now += 10;
  table.push(std::vector<uint64_t>{2}, std::vector<float>{1});
  now += 49;
  EXPECT_EQ(table.shrink().by_ttl, 0);  // 59
  now += 1;
  pulled(table, {1});                   // not an update
  EXPECT_EQ(table.shrink().by_ttl, 1);  // 60
  now += 9;
  EXPECT_EQ(table.shrink().by_ttl, 0);
  now += 2;
  EXPECT_EQ(table.shrink().by_ttl, 1);  // 61
}

TEST(Shrink, OtherRows_KeepTheirValues) {
  SparseTable table(some_settings("'dim': 5, 'shrink': {'age': 1}"));
  std::mt19937_64 random(8);
  std::vector<uint64_t> ids = first_ids(50'000);
  const std::vector<float> gradients = random_floats(ids.size() * 5, random);
  table.push(ids, gradients);
  const std::vector<float> before = pulled(table, ids);
  std::vector<uint64_t> kept;
  std::vector<float> expected;
  for (const uint64_t id : ids) {
    if (random() % 4 == 0) continue;
    kept.push_back(id);
    expected.insert(expected.end(), &before[id * 5], &before[id * 5] + 5);
  }
  // With age 1 everything ends: so a table of age 2, of which a part is used again.
  SparseTable other(some_settings("'dim': 5, 'shrink': {'age': 2}"));
  other.push(ids, gradients);
  other.shrink();
  pulled(other, kept);
  EXPECT_EQ(other.shrink().by_age, std::ssize(ids) - std::ssize(kept));
  EXPECT_EQ(looked_up(other, kept), expected);
  EXPECT_EQ(other.counts().missing_lookups, 0);
  other.push(ids, gradients);  // places of ended rows are used again
  EXPECT_EQ(other.counts().rows, std::ssize(ids));
  EXPECT_EQ(table.shrink().by_age, std::ssize(ids));
  EXPECT_EQ(table.counts().rows, 0);
}

TEST(Shrink, DuringACut_IsRefused) {
  SparseTable table(some_settings("'dim': 1, 'shrink': {'age': 1}"));
  table.begin_cut();
  EXPECT_THAT(thrown_by([&] { table.shrink(); }), IsUsageError("tables.ids"));
  EXPECT_THAT(thrown_by([&] { table.begin_cut(); }), IsUsageError("tables.ids"));
  table.end_cut();
  EXPECT_EQ(table.shrink().by_age, 0);
}

}  // namespace
}  // namespace fleet::ps

#include "train/merged_rows.h"

#include <gmock/gmock.h>

#include "tests/errors.h"

namespace fleet {
namespace {

MergedRows merged_rows_of(const std::string& table) {
  return {.table = table,
          .ids = {9, uint64_t{1} << 62},
          .shows = {1, 2},
          .clicks = {0, 1},
          .gradients = {1, 2, 3, 4, 5, 6}};
}

TEST(MergedRowsInAPart, Taken_AreThoseThatWereAdded) {
  TensorFile part;
  part.tensors["fc.weight.merged"] = {};
  add_merged_rows({merged_rows_of("a"), {.table = "empty"}, merged_rows_of("b")}, &part);
  EXPECT_EQ(part.tensors.size(), 9u);
  EXPECT_EQ(part.tensors.at("a.merged_gradients").shape, Shape({2, 3}));
  const std::vector<MergedRows> rows = take_merged_rows(&part, "rank_00000.safetensors");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].table, "a");
  EXPECT_EQ(rows[0].ids, merged_rows_of("a").ids);
  EXPECT_EQ(rows[0].shows, merged_rows_of("a").shows);
  EXPECT_EQ(rows[0].clicks, merged_rows_of("a").clicks);
  EXPECT_EQ(rows[0].gradients, merged_rows_of("a").gradients);
  EXPECT_EQ(part.tensors.size(), 1u);
}

TEST(MergedRowsInAPart, IncompleteOnes_AreDamage) {
  for (const char* missing : {"a.merged_shows", "a.merged_clicks", "a.merged_gradients"}) {
    TensorFile part;
    add_merged_rows({merged_rows_of("a")}, &part);
    part.tensors.erase(missing);
    EXPECT_THROW(take_merged_rows(&part, "part"), DamagedFile) << missing;
  }
  TensorFile part, longer;
  add_merged_rows({merged_rows_of("a")}, &part);
  MergedRows more = merged_rows_of("a");
  more.ids.push_back(4);
  more.shows.push_back(1);
  more.gradients.resize(9);
  add_merged_rows({more}, &longer);
  part.tensors["a.merged_shows"] = longer.tensors["a.merged_shows"];
  EXPECT_THROW(take_merged_rows(&part, "part"), DamagedFile);
}

}  // namespace
}  // namespace fleet

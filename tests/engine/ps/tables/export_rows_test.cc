#include "ps/tables/export_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <sstream>

#include "base/file.h"
#include "tests/engine/ps/tables/some_table.h"

namespace fleet::ps {
namespace {

using ::testing::HasSubstr;

class ExportRows : public ::testing::Test {
 protected:
  ExportRows() {
    pulled(table_, ids_);
    pulled(table_, ids_);
    pulled(table_, {99});
    rows_ = pulled(table_, ids_);
    finish_snapshot(folder_ / "a", {TableCut(table_).write(folder_ / "a")});
  }
  TestFolder folder_;
  SparseTable table_{
      some_settings("'dim': 3, 'entry': {'kind': 'count', 'count': 2}, "
                    "'initializer': {'name': 'normal'}")};
  std::vector<uint64_t> ids_ = {5, UINT64_MAX, 7};
  std::vector<float> rows_;
};

TEST_F(ExportRows, Text_ReadsBackExactly) {
  EXPECT_EQ(export_rows(Snapshot(folder_ / "a"), "ids", folder_ / "x.txt", false), 3);
  std::istringstream lines(read_file(folder_ / "x.txt"));
  size_t found = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    uint64_t id = 0;
    fields >> id;
    const auto at = static_cast<size_t>(std::find(ids_.begin(), ids_.end(), id) - ids_.begin());
    ASSERT_LT(at, ids_.size()) << line;
    for (size_t i = 0; i < 3; ++i) {
      std::string value;
      fields >> value;
      EXPECT_EQ(std::stof(value), rows_[at * 3 + i]);
    }
    ++found;
  }
  EXPECT_EQ(found, 3u);
}

TEST_F(ExportRows, Arrays_HaveTheRowsInTheOrderOfTheIds) {
  EXPECT_EQ(export_rows(Snapshot(folder_ / "a"), "ids", folder_ / "x.npy", true), 3);
  const std::string values = read_file(folder_ / "x.npy"), ids = read_file(folder_ / "x.ids.npy");
  EXPECT_THAT(values, HasSubstr("'<f4'"));
  EXPECT_THAT(values, HasSubstr("(3, 3)"));
  EXPECT_THAT(ids, HasSubstr("(3,)"));
  const size_t head = values.size() - 9 * sizeof(float),
               ids_head = ids.size() - 3 * sizeof(uint64_t);
  EXPECT_EQ(head % 64, 0u);
  EXPECT_EQ(ids_head % 64, 0u);
  for (size_t row = 0; row < 3; ++row) {
    uint64_t id;
    std::memcpy(&id, &ids[ids_head + row * sizeof id], sizeof id);
    const auto at = static_cast<size_t>(std::find(ids_.begin(), ids_.end(), id) - ids_.begin());
    ASSERT_LT(at, ids_.size());
    EXPECT_EQ(std::memcmp(&values[head + row * 12], &rows_[at * 3], 12), 0);
  }
}

TEST_F(ExportRows, OneId_IsDescribed) {
  const Snapshot snapshot(folder_ / "a");
  EXPECT_THAT(describe_id(snapshot, "ids", 5), HasSubstr("age 0"));
  EXPECT_THAT(describe_id(snapshot, "ids", 99), HasSubstr("occurrences 1"));
  EXPECT_EQ(describe_id(snapshot, "ids", 6), "");
}

}  // namespace
}  // namespace fleet::ps

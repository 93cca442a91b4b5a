#include "ps/tables/row_initializer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/engine/ps/tables/some_table.h"

namespace fleet::ps {
namespace {

using Kind = InitializerSettings::Kind;

std::vector<float> drawn(const InitializerSettings& settings, size_t rows = 5000) {
  const RowInitializer initializer(settings, 3, "ids");
  std::vector<float> values(rows * 10);
  for (size_t id = 0; id < rows; ++id) initializer.fill(id, &values[id * 10], 10);
  return values;
}
double mean_of(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}
double deviation_of(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += (value - mean_of(values)) * (value - mean_of(values));
  return std::sqrt(sum / static_cast<double>(values.size()));
}

TEST(RowInitializer, Uniform_FillsItsRange) {
  const std::vector<float> values = drawn({.kind = Kind::kUniform, .low = -2, .high = 6}, 2000);
  EXPECT_GE(*std::min_element(values.begin(), values.end()), -2);
  EXPECT_LE(*std::max_element(values.begin(), values.end()), 6);
  EXPECT_NEAR(mean_of(values), 2, 5 * 8 / std::sqrt(12.0 * 20000));
  EXPECT_NEAR(deviation_of(values), 8 / std::sqrt(12.0), 0.05);
}

TEST(RowInitializer, Normal_HasItsMomentsAndTails) {
  const std::vector<float> values = drawn({.kind = Kind::kNormal, .mean = 1, .deviation = 2}, 2000);
  EXPECT_NEAR(mean_of(values), 1, 5 * 2 / std::sqrt(20000.0));
  EXPECT_NEAR(deviation_of(values), 2, 0.06);
  const auto far = std::count_if(values.begin(), values.end(),
                                 [](float value) { return std::abs(value - 1) > 4; });
  EXPECT_NEAR(static_cast<double>(far), 0.0455 * 20000, 5 * std::sqrt(0.0455 * 20000));
}

TEST(RowInitializer, TruncatedNormal_HasNoTails) {
  const std::vector<float> values =
      drawn({.kind = Kind::kTruncatedNormal, .mean = 1, .deviation = 2}, 2000);
  for (const float value : values) ASSERT_LE(std::abs(value - 1), 4.00001f);
  // The deviation of a normal distribution that is cut at two deviations.
  EXPECT_NEAR(deviation_of(values), 2 * 0.8796, 0.05);
}

TEST(RowInitializer, Constant_IsTheValue) {
  for (const float value : drawn({.kind = Kind::kConstant, .value = 0.125}, 10)) {
    ASSERT_EQ(value, 0.125f);
  }
}

TEST(RowInitializer, SeedTableAndId_EachChangeTheRow) {
  const auto row = [](uint64_t seed, const std::string& table, uint64_t id) {
    std::vector<float> values(4);
    RowInitializer({}, seed, table).fill(id, values.data(), 4);
    return values;
  };
  EXPECT_EQ(row(1, "ids", 7), row(1, "ids", 7));
  EXPECT_NE(row(1, "ids", 7), row(2, "ids", 7));
  EXPECT_NE(row(1, "ids", 7), row(1, "adi", 7));
  EXPECT_NE(row(1, "ids", 7), row(1, "ids", 8));
}

TEST(RowInitializer, Rows_AreEqualForAllNumbersOfServersAndOrders) {
  const TableSettings settings = some_settings("'dim': 5, 'initializer': {'name': 'normal'}");
  std::vector<uint64_t> ids = first_ids(3000);
  Servers one(settings, 1);
  const std::vector<float> expected = one.pull(ids);
  for (const int count : {2, 3, 5}) {
    Servers servers(settings, count);
    std::vector<uint64_t> shuffled = ids;
    std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937_64(count));
    for (size_t at = 0; at < shuffled.size(); at += 100) {
      servers.pull({shuffled.begin() + at, shuffled.begin() + at + 100});
    }
    EXPECT_EQ(servers.pull(ids), expected) << count;
  }
}

}  // namespace
}  // namespace fleet::ps

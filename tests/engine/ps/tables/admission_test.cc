#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/engine/ps/tables/some_table.h"

namespace fleet::ps {
namespace {

constexpr char kCount3[] =
    "'dim': 2, 'entry': {'kind': 'count', 'count': 3}, 'rule': {'name': 'naive'}, "
    "'initializer': {'name': 'constant', 'value': 1}";

TEST(AdmissionByCount, TheNthOccurrence_GetsTheRow) {
  SparseTable table(some_settings(kCount3));
  EXPECT_EQ(pulled(table, {7}), (std::vector<float>{0, 0}));
  EXPECT_EQ(pulled(table, {7}), (std::vector<float>{0, 0}));
  EXPECT_EQ(table.counts().rows, 0);
  EXPECT_EQ(table.counts().waiting, 1);
  EXPECT_EQ(pulled(table, {7}), (std::vector<float>{1, 1}));
  EXPECT_EQ(table.counts().rows, 1);
  EXPECT_EQ(table.counts().waiting, 0);
}

TEST(AdmissionByCount, PushesBefore_AreIgnoredAndCounted) {
  SparseTable table(some_settings(kCount3));
  table.push(std::vector<uint64_t>{7}, std::vector<float>{1, 1});
  pulled(table, {7});
  table.push(std::vector<uint64_t>{7, 7}, std::vector<float>{1, 1, 1, 1});
  EXPECT_EQ(table.counts().ignored_pushes, 3);
  pulled(table, {7, 7});
  EXPECT_EQ(pulled(table, {7}), (std::vector<float>{1, 1}));
}

TEST(AdmissionByCount, OccurrencesOfOneBatch_CountTogether) {
  SparseTable table(some_settings(kCount3));
  EXPECT_EQ(pulled(table, {7, 8, 7, 7}), (std::vector<float>{1, 1, 0, 0, 1, 1, 1, 1}));
  SparseTable merged(some_settings(kCount3));
  std::vector<float> rows(4);
  merged.pull(std::vector<uint64_t>{7, 8}, rows, std::vector<uint32_t>{3, 2});
  EXPECT_EQ(rows, (std::vector<float>{1, 1, 0, 0}));
}

TEST(AdmissionByCount, Lookups_AreNotOccurrences) {
  SparseTable table(some_settings(kCount3));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(looked_up(table, {7}), (std::vector<float>{0, 0}));
  EXPECT_EQ(pulled(table, {7}), (std::vector<float>{0, 0}));
  EXPECT_EQ(looked_up(table, {7}), (std::vector<float>{0, 0}));
}

TEST(AdmissionByCount, LookupsOfUnadmittedIds_AreCountedApart) {
  SparseTable table(some_settings(kCount3)), open(some_settings("'dim': 2"));
  pulled(table, {7, 7, 7, 8});
  std::vector<float> rows(6);
  const std::vector<uint64_t> ids = {7, 8, 9};
  EXPECT_EQ(table.lookup(ids, rows), (MissingRows{.not_admitted = 2}));
  EXPECT_EQ(open.lookup(ids, rows), (MissingRows{.initial = 3}));
  EXPECT_EQ(table.counts().missing_lookups, 2);
}

TEST(AdmissionByProbability, TheShareOfIds_IsTheProbability) {
  for (const double p : {0.1, 0.5, 0.9}) {
    SparseTable table(some_settings(
        "'dim': 1, 'entry': {'kind': 'probability', 'probability': " + std::to_string(p) +
        "}, 'initializer': {'name': 'constant', 'value': 1}"));
    constexpr double kIds = 20'000;
    const std::vector<uint64_t> ids = first_ids(kIds);
    const std::vector<float> rows = pulled(table, ids);
    const auto admitted = static_cast<double>(std::count(rows.begin(), rows.end(), 1.0f));
    EXPECT_NEAR(admitted, p * kIds, 5 * std::sqrt(kIds * p * (1 - p)));
    EXPECT_EQ(table.counts().rows, static_cast<int64_t>(admitted));
    // Drawn once: more occurrences change nothing, and predictions have the same values.
    EXPECT_EQ(pulled(table, ids), rows);
    EXPECT_EQ(looked_up(table, ids), rows);
    table.push(ids, std::vector<float>(kIds, 1.0f));
    EXPECT_EQ(table.counts().rows, static_cast<int64_t>(admitted));
    EXPECT_EQ(table.counts().ignored_pushes, static_cast<int64_t>(kIds - admitted));
  }
}

TEST(AdmissionByProbability, TheAdmittedIds_AreEqualForAllNumbersOfServers) {
  const TableSettings settings = some_settings(
      "'dim': 1, 'entry': {'kind': 'probability', 'probability': 0.3}, "
      "'initializer': {'name': 'constant', 'value': 1}");
  const std::vector<uint64_t> ids = first_ids(2000);
  Servers one(settings, 1), three(settings, 3);
  EXPECT_EQ(one.pull(ids), three.pull(ids));
}

}  // namespace
}  // namespace fleet::ps

#include "ps/tables/sparse_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "base/thread.h"
#include "tests/engine/ps/tables/some_table.h"
#include "tests/errors.h"

namespace fleet::ps {
namespace {

constexpr char kNaiveRows[] = "'dim': 3, 'rule': {'name': 'naive', 'learning_rate': 0.5}";

TEST(SparseTable, ManyRows_AreAllFoundAgain) {
  SparseTable table(
      some_settings("'dim': 3, 'rule': {'name': 'naive', 'learning_rate': 1, "
                    "'low': -1e30, 'high': 1e30}, 'initializer': {'name': 'constant'}"));
  constexpr size_t kBatch = 5000;
  for (uint64_t from = 0; from < 200'000; from += kBatch) {
    const std::vector<uint64_t> ids = first_ids(kBatch, from);
    std::vector<float> gradients(kBatch * 3);
    for (size_t i = 0; i < gradients.size(); ++i) gradients[i] = -static_cast<float>(from * 3 + i);
    table.push(ids, gradients);
  }
  EXPECT_EQ(table.counts().rows, 200'000);
  const std::vector<float> rows = looked_up(table, first_ids(200'000));
  for (size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(rows[i], static_cast<float>(i));
}

TEST(SparseTable, Duplicates_AreAddedInOrderOfOccurrenceAndAppliedOnce) {
  std::mt19937_64 random(2);
  const std::vector<uint64_t> ids = random_ids(4000, 300, random);
  const std::vector<float> gradients = random_floats(ids.size() * 3, random);
  std::map<uint64_t, std::vector<float>> sums;
  for (size_t i = 0; i < ids.size(); ++i) {
    auto [at, created] = sums.try_emplace(ids[i], &gradients[i * 3], &gradients[i * 3] + 3);
    if (created) continue;
    for (size_t j = 0; j < 3; ++j) at->second[j] += gradients[i * 3 + j];
  }
  SparseTable merged(some_settings(kNaiveRows)), expected(some_settings(kNaiveRows));
  merged.push(ids, gradients);
  for (const auto& [id, sum] : sums) expected.push(std::vector<uint64_t>{id}, sum);
  EXPECT_EQ(pulled(merged, ids), pulled(expected, ids));
}

TEST(SparseTable, DuplicatesOfOneAdagradRow_CountAsShows) {
  SparseTable pair(some_settings("'dim': 1")), one(some_settings("'dim': 1"));
  pair.push(std::vector<uint64_t>{4, 4}, std::vector<float>{1, 3});
  const float shows = 2;
  one.push(std::vector<uint64_t>{4}, std::vector<float>{4}, {.shows = {&shows, 1}});
  EXPECT_EQ(pulled(pair, {4}), pulled(one, {4}));
}

TEST(SparseTable, PushOfAnUnknownId_CreatesItsRow) {
  SparseTable pulled_first(some_settings(kNaiveRows)), pushed(some_settings(kNaiveRows));
  pulled(pulled_first, {9});
  for (SparseTable* table : {&pulled_first, &pushed}) {
    table->push(std::vector<uint64_t>{9}, std::vector<float>{1, 2, 3});
  }
  EXPECT_EQ(pulled(pulled_first, {9}), pulled(pushed, {9}));
}

TEST(SparseTable, Lookup_CreatesNothingAndCountsTheMissing) {
  SparseTable table(some_settings(kNaiveRows));
  const std::vector<float> before = looked_up(table, {1, 2, 3});
  EXPECT_EQ(table.counts().rows, 0);
  EXPECT_EQ(table.counts().missing_lookups, 3);
  EXPECT_EQ(pulled(table, {1, 2, 3}), before);
  EXPECT_EQ(looked_up(table, {1, 2, 3}), before);
  EXPECT_EQ(table.counts().rows, 3);
  EXPECT_EQ(table.counts().missing_lookups, 3);
}

TEST(SparseTable, IdOfAnotherServer_IsRefused) {
  SparseTable table(some_settings(kNaiveRows), shards_of_server(0, 2));
  uint64_t foreign = 0;
  while (server_of(foreign, 2) == 0) ++foreign;
  EXPECT_THAT(thrown_by([&] { pulled(table, {foreign}); }), IsError(ErrorCode::kInternal));
  EXPECT_EQ(table.counts().rows, 0);
}

TEST(SparseTable, PushesOfManyThreads_AreAllApplied) {
  SparseTable table(
      some_settings("'dim': 2, 'rule': {'name': 'naive', 'learning_rate': 1, "
                    "'low': -1e9, 'high': 1e9}, 'initializer': {'name': 'constant'}"));
  constexpr int kThreads = 4, kPushes = 50;
  constexpr size_t kIds = 700;
  std::vector<Thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back("push", [&, t] {
      std::mt19937_64 random(t);
      for (int push = 0; push < kPushes; ++push) {
        std::vector<uint64_t> ids = first_ids(kIds);
        std::shuffle(ids.begin(), ids.end(), random);
        pulled(table, ids);
        table.push(ids, std::vector<float>(kIds * 2, -1.0f));
      }
    });
  }
  for (Thread& thread : threads) thread.join();
  for (const float value : pulled(table, first_ids(kIds))) {
    ASSERT_EQ(value, static_cast<float>(kThreads * kPushes));
  }
}

TEST(SparseTable, EmptyBatch_DoesNothing) {
  SparseTable table(some_settings(kNaiveRows));
  table.push({}, {});
  EXPECT_TRUE(pulled(table, {}).empty());
  EXPECT_EQ(table.counts().rows, 0);
}

TEST(SparseTable, Memory_IsCloseToThatOfTheRows) {
  SparseTable table(some_settings("'dim': 16, 'rule': {'name': 'naive'}"));
  constexpr int64_t kRows = 1'000'000;
  for (uint64_t from = 0; from < kRows; from += 50'000) pulled(table, first_ids(50'000, from));
  // A tenth of the benchmark's rows; partly used blocks weigh ten times as much.
  EXPECT_LT(static_cast<double>(table.counts().bytes), 1.37 * kRows * 64);
}

}  // namespace
}  // namespace fleet::ps

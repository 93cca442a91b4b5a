#include "ps/tables/cold_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ps/tables/snapshot.h"
#include "tests/engine/ps/tables/some_table.h"
#include "tests/errors.h"

namespace fleet::ps {
namespace {

constexpr char kSame[] =
    "'dim': 3, 'rule': {'name': 'adam'}, 'entry': {'kind': 'count', 'count': 2}, "
    "'shrink': {'age': 3, 'by_score': true, 'min_score': 0.05, 'decay': 0.5}";

TableSettings cold_settings(const std::string& path) {
  return some_settings(
      kSame + (", 'storage': {'kind': 'rocksdb', 'cached_rows': 1000, 'path': '" + path + "'}"));
}

std::vector<std::byte> saved(SparseTable& table) {
  std::vector<std::byte> all;
  table.begin_cut();
  for (int shard = table.shards().first; shard < table.shards().end; ++shard) {
    const ShardContent content = table.take_cut(shard);
    const auto* waiting = reinterpret_cast<const std::byte*>(content.waiting.data());
    all.insert(all.end(), content.records.begin(), content.records.end());
    all.insert(all.end(), waiting, waiting + content.waiting.size() * sizeof(WaitingRecord));
  }
  table.end_cut();
  return all;
}

class RocksdbTable : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cold_stores().find("rocksdb") == nullptr) GTEST_SKIP() << "built without RocksDB";
  }
  // 50 shards with room for 64 rows each, and about 300 rows each.
  static constexpr ShardRange kShards = {0, 50};
  std::vector<uint64_t> ids(size_t count, std::mt19937_64& random) {
    std::vector<uint64_t> some;
    while (some.size() < count) {
      const uint64_t id = random() % 300'000;
      if (kShards.contains(shard_of(id))) some.push_back(id);
    }
    return some;
  }
  TestFolder folder_;
};

TEST_F(RocksdbTable, ASmallCache_GivesTheSameRowsAsMemory) {
  SparseTable memory(some_settings(kSame), kShards);
  SparseTable cold(cold_settings(folder_ / "db"), kShards);
  std::mt19937_64 random(1);
  int64_t removed = 0;
  for (int step = 0; step < 25; ++step) {
    const std::vector<uint64_t> batch = ids(3000, random);
    ASSERT_EQ(pulled(memory, batch), pulled(cold, batch)) << step;
    const std::vector<float> gradients = random_floats(batch.size() * 3, random);
    memory.push(batch, gradients);
    cold.push(batch, gradients);
    if (step % 6 == 5) {
      const ShrinkResult one = memory.shrink(), other = cold.shrink();
      ASSERT_EQ(one.by_age, other.by_age);
      ASSERT_EQ(one.by_score, other.by_score);
      ASSERT_EQ(one.waiting, other.waiting);
      removed += one.by_age + one.by_score;
    }
    ASSERT_EQ(memory.counts().rows, cold.counts().rows);
  }
  ASSERT_GT(memory.counts().rows, 50 * 64 * 2);
  ASSERT_GT(removed, 100);
  const std::vector<uint64_t> batch = ids(3000, random);
  EXPECT_EQ(looked_up(memory, batch), looked_up(cold, batch));
  EXPECT_EQ(memory.counts().missing_lookups, cold.counts().missing_lookups);
  EXPECT_EQ(saved(memory), saved(cold));
}

TEST_F(RocksdbTable, ACut_DoesNotHaveLaterChanges) {
  SparseTable cold(cold_settings(folder_ / "db"), kShards);
  std::mt19937_64 random(2);
  const auto train = [&](int steps) {
    for (int step = 0; step < steps; ++step) {
      const std::vector<uint64_t> batch = ids(3000, random);
      pulled(cold, batch);
      cold.push(batch, random_floats(batch.size() * 3, random));
    }
  };
  train(10);
  const std::vector<std::byte> before = saved(cold);
  cold.begin_cut();
  train(5);
  std::vector<std::byte> cut;
  for (int shard = 0; shard < kShards.end; ++shard) {
    const ShardContent content = cold.take_cut(shard);
    const auto* waiting = reinterpret_cast<const std::byte*>(content.waiting.data());
    cut.insert(cut.end(), content.records.begin(), content.records.end());
    cut.insert(cut.end(), waiting, waiting + content.waiting.size() * sizeof(WaitingRecord));
  }
  cold.end_cut();
  EXPECT_TRUE(cut == before);
  EXPECT_FALSE(saved(cold) == before);
}

TEST_F(RocksdbTable, ASnapshotOfMemory_IsLoaded) {
  SparseTable memory(some_settings(kSame));
  std::mt19937_64 random(3);
  for (int step = 0; step < 3; ++step) {
    const std::vector<uint64_t> batch = random_ids(50'000, 200'000, random);
    pulled(memory, batch);
    memory.push(batch, random_floats(batch.size() * 3, random));
  }
  finish_snapshot(folder_ / "a", {TableCut(memory).write(folder_ / "a")});
  SparseTable cold(cold_settings(folder_ / "db"));
  load_table(Snapshot(folder_ / "a"), cold);
  EXPECT_EQ(cold.counts().rows, memory.counts().rows);
  EXPECT_TRUE(saved(memory) == saved(cold));
}

TEST_F(RocksdbTable, AFolderInUse_IsRefused) {
  SparseTable one(cold_settings(folder_ / "db"));
  EXPECT_THAT(thrown_by([&] { SparseTable two(cold_settings(folder_ / "db")); }),
              IsError(ErrorCode::kIo));
}

TEST(ColdStore, KindThatIsNotBuilt_IsRefused) {
  if (cold_stores().find("rocksdb") != nullptr) GTEST_SKIP() << "this build has it";
  EXPECT_THAT(thrown_by([] { cold_settings("x"); }),
              IsError(ErrorCode::kUnsupported, "tables.ids.storage.kind"));
}

}  // namespace
}  // namespace fleet::ps

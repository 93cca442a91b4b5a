#include "ps/tables/cold_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "ps/tables/snapshot.h"
#include "tests/engine/ps/tables/some_table.h"
#include "tests/errors.h"

namespace fleet::ps {
namespace {

constexpr char kSame[] =
    "'dim': 3, 'rule': {'name': 'adam'}, 'entry': {'kind': 'count', 'count': 2}, "
    "'shrink': {'age': 3, 'by_score': true, 'min_score': 0.05, 'decay': 0.5}";

TableSettings cold_settings(const std::string& path, int mebibytes = 2) {
  return some_settings(kSame + (", 'storage': {'kind': 'rocksdb', 'cache_memory': " +
                                std::to_string(mebibytes) + ", 'path': '" + path + "'}"));
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
  // 50 shards with room for 150 rows each, and about 230 rows each.
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

TEST_F(RocksdbTable, PathBelowAFile_IsRefused) {
  std::ofstream(folder_ / "file") << "text";
  EXPECT_THAT(thrown_by([&] { SparseTable table(cold_settings(folder_ / "file"), kShards); }),
              IsUsageError());
}

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
  ASSERT_GT(memory.counts().rows, 50 * 220);
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

TEST_F(RocksdbTable, ACutThatWasDropped_LeavesNothingToTheNext) {
  SparseTable memory(some_settings(kSame), kShards);
  SparseTable cold(cold_settings(folder_ / "db"), kShards);
  std::mt19937_64 random(4);
  const auto train = [&] {
    for (int step = 0; step < 5; ++step) {
      const std::vector<uint64_t> batch = ids(3000, random);
      const std::vector<float> gradients = random_floats(batch.size() * 3, random);
      for (SparseTable* table : {&memory, &cold}) {
        pulled(*table, batch);
        table->push(batch, gradients);
      }
    }
  };
  for (int cut = 0; cut < 3; ++cut) {
    train();
    for (SparseTable* table : {&memory, &cold}) table->begin_cut();
    train();
    for (SparseTable* table : {&memory, &cold}) table->end_cut();
  }
  EXPECT_TRUE(saved(memory) == saved(cold));
}

TEST_F(RocksdbTable, ATableLargerThanItsMemory_StaysWithinIt) {
  constexpr int64_t kMemory = 16 << 20, kRowBytes = 256;
  SparseTable cold(
      some_settings("'dim': 64, 'rule': {'name': 'naive'}, 'storage': {'kind': 'rocksdb', "
                    "'cache_memory': 16, 'path': '" +
                    folder_ / "db" + "'}"),
      kShards);
  std::mt19937_64 random(5);
  std::vector<uint64_t> all;
  for (uint64_t id = 0; std::ssize(all) < 3 * kMemory / kRowBytes; ++id) {
    if (kShards.contains(shard_of(id))) all.push_back(id);
  }
  const auto train = [&] {
    for (size_t at = 0; at < all.size(); at += 4096) {
      const std::vector<uint64_t> batch(all.begin() + at,
                                        all.begin() + std::min(all.size(), at + 4096));
      pulled(cold, batch);
      cold.push(batch, std::vector<float>(batch.size() * 64, 0.5f));
      ASSERT_LE(cold.counts().bytes, kMemory) << "after " << at << " rows";
    }
  };
  train();
  EXPECT_EQ(cold.counts().rows, std::ssize(all));
  cold.begin_cut();
  train();  // all rows change before the cut is read
  size_t records = 0;
  for (int shard = 0; shard < kShards.end; ++shard) records += cold.take_cut(shard).records.size();
  cold.end_cut();
  EXPECT_EQ(records, all.size() * record_bytes(cold.layout()));
}

TEST_F(RocksdbTable, MemoryForLessThanARowOfEachShard_IsRefused) {
  EXPECT_THAT(thrown_by([&] { SparseTable cold(cold_settings(folder_ / "db")); }),
              IsError(ErrorCode::kUsage, "tables.ids.storage.cache_memory"));
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
  SparseTable cold(cold_settings(folder_ / "db", 32));
  load_table(Snapshot(folder_ / "a"), cold);
  EXPECT_EQ(cold.counts().rows, memory.counts().rows);
  EXPECT_TRUE(saved(memory) == saved(cold));
}

TEST_F(RocksdbTable, AFolderInUse_IsRefused) {
  SparseTable one(cold_settings(folder_ / "db"), kShards);
  EXPECT_THAT(thrown_by([&] { SparseTable two(cold_settings(folder_ / "db"), kShards); }),
              IsError(ErrorCode::kIo));
}

TEST(ColdStore, KindThatIsNotBuilt_IsRefused) {
  if (cold_stores().find("rocksdb") != nullptr) GTEST_SKIP() << "this build has it";
  EXPECT_THAT(thrown_by([] { cold_settings("x"); }),
              IsError(ErrorCode::kUnsupported, "tables.ids.storage.kind"));
}

}  // namespace
}  // namespace fleet::ps

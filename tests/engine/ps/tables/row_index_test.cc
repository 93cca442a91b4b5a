#include "ps/tables/row_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <unordered_map>

#include "ps/tables/virtual_shards.h"

namespace fleet::ps {
namespace {

TEST(RowIndex, RandomInsertsAndRemovals_MatchAMap) {
  BlockArena arena(RowIndex::kBlockBytes, false);
  RowIndex index(arena);
  std::unordered_map<uint64_t, uint32_t> expected;
  std::mt19937_64 random(5);
  for (int round = 0; round < 4; ++round) {
    for (uint32_t i = 0; i < 20'000; ++i) {
      const uint64_t id = i % 50 == 0 ? UINT64_MAX - i : random() % 100'000;
      if (!expected.emplace(id, i).second) continue;
      ASSERT_EQ(index.find(id, mix_id(id)), nullptr);
      index.insert(id, mix_id(id), i);
    }
    ASSERT_EQ(index.size(), expected.size());
    const auto keep = [&](uint64_t id) { return (id + static_cast<uint64_t>(round)) % 3 != 0; };
    index.retain([&](uint64_t id, uint32_t&) { return keep(id); });
    std::erase_if(expected, [&](const auto& entry) { return !keep(entry.first); });
    ASSERT_EQ(index.size(), expected.size());
    for (const auto& [id, word] : expected) {
      const uint32_t* found = index.find(id, mix_id(id));
      ASSERT_NE(found, nullptr);
      ASSERT_EQ(*found, word);
    }
    for (uint64_t id = 0; id < 1000; ++id) {
      ASSERT_EQ(index.find(id, mix_id(id)) != nullptr, expected.contains(id));
    }
  }
}

TEST(RowIndex, Bytes_FollowTheNumberOfIds) {
  BlockArena arena(RowIndex::kBlockBytes, false);
  RowIndex index(arena);
  for (uint64_t id = 0; id < 300'000; ++id) {
    index.insert(id, mix_id(id), 1);
    if (id < 10'000 || id % 997 != 0) continue;
    const double bytes = static_cast<double>(index.buckets()) * 64 / static_cast<double>(id);
    ASSERT_LT(bytes, 15.06 * 1.04) << id;
    ASSERT_GT(bytes, 15.0) << id;  // at most 85 % full
  }
}

TEST(IndexWord, AgesAndCounts_Saturate) {
  const uint32_t word = IndexWord::with_age(IndexWord::row(77, 3), 100'000);
  EXPECT_TRUE(IndexWord::is_row(word));
  EXPECT_EQ(IndexWord::value(word), 77u);
  EXPECT_EQ(IndexWord::age(word), IndexWord::kMaxAge);
  const uint32_t waiting = IndexWord::waiting(UINT32_MAX, 100'000);
  EXPECT_FALSE(IndexWord::is_row(waiting));
  EXPECT_EQ(IndexWord::value(waiting), IndexWord::kMaxValue);
  EXPECT_NE(waiting, IndexWord::kEmpty);
}

TEST(VirtualShards, EveryNumberOfServers_HasAllShardsOnce) {
  for (int servers = 1; servers <= kVirtualShards; servers += servers < 20 ? 1 : 97) {
    int next = 0;
    for (int server = 0; server < servers; ++server) {
      const ShardRange range = shards_of_server(server, servers);
      ASSERT_EQ(range.first, next);
      for (int shard = range.first; shard < range.end; ++shard) {
        ASSERT_EQ(server_of_shard(shard, servers), server);
      }
      ASSERT_LE(std::abs(range.count() * servers - kVirtualShards), servers);
      next = range.end;
    }
    ASSERT_EQ(next, kVirtualShards);
  }
}

TEST(VirtualShards, StructuredIds_AreSpreadEvenly) {
  for (const uint64_t step : {uint64_t{1}, uint64_t{1000}, uint64_t{1} << 40}) {
    std::vector<int> counts(kVirtualShards);
    for (uint64_t i = 0; i < 200'000; ++i) ++counts[static_cast<size_t>(shard_of(i * step))];
    for (const int count : counts) ASSERT_NEAR(count, 200, 6 * std::sqrt(200.0)) << step;
  }
}

}  // namespace
}  // namespace fleet::ps

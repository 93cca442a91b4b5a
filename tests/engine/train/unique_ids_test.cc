#include "train/unique_ids.h"

#include <gmock/gmock.h>

#include <map>
#include <random>

#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;

TEST(UniqueIds, Numbers_FollowTheFirstOccurrences) {
  UniqueIds unique;
  unique.clear(4);
  EXPECT_EQ(unique.add(7), 0u);
  EXPECT_EQ(unique.add(UINT64_MAX), 1u);
  EXPECT_EQ(unique.add(7), 0u);
  EXPECT_EQ(unique.add(0), 2u);
  EXPECT_THAT(unique.ids(), ElementsAre(7, UINT64_MAX, 0));
  unique.clear(1);
  EXPECT_EQ(unique.add(0), 0u);
}

TEST(UniqueIds, Expect_KeepsTheNumbers) {
  UniqueIds unique;
  for (uint64_t id = 0; id < 1000; ++id) {
    unique.expect(1);
    EXPECT_EQ(unique.add(id * 7), id);
  }
  for (uint64_t id = 0; id < 1000; ++id) EXPECT_EQ(unique.add(id * 7), id);
}

TEST(UniqueIds, ManyIds_EqualAMap) {
  std::mt19937_64 random(3);
  UniqueIds unique;
  unique.clear(20000);
  std::map<uint64_t, uint32_t> expected;
  for (int i = 0; i < 20000; ++i) {
    const uint64_t id = (random() % 5000) << (random() % 3 * 20);  // structured, as ids often are
    const auto [entry, added] = expected.try_emplace(id, static_cast<uint32_t>(expected.size()));
    ASSERT_EQ(unique.add(id), entry->second);
  }
  EXPECT_EQ(unique.ids().size(), expected.size());
}

TEST(BatchIds, Padding_HasNoPlace) {
  const std::vector<int64_t> column = {5, -1, 9, 5, -1, int64_t{1} << 62};
  BatchIds ids;
  ids.set(std::as_bytes(std::span(column)), "items");
  EXPECT_THAT(ids.ids(), ElementsAre(5, 9, uint64_t{1} << 62));
  EXPECT_THAT(ids.places(), ElementsAre(0, -1, 1, 0, -1, 2));
  EXPECT_THAT(ids.occurrences(), ElementsAre(2, 1, 1));
}

TEST(BatchIds, OtherNegativeIds_AreRefused) {
  const std::vector<int64_t> column = {5, -2};
  EXPECT_THAT(thrown_by([&] { BatchIds().set(std::as_bytes(std::span(column)), "items"); }),
              IsUsageError(::testing::HasSubstr("items")));
}

}  // namespace
}  // namespace fleet

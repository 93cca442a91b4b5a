#include "data/random.h"

#include <gmock/gmock.h>

#include <set>

namespace fleet::data {
namespace {

using ::testing::ElementsAre;

// Known answers of Random123's kat_vectors for philox4x32-10.
TEST(Philox, KnownAnswers_Match) {
  EXPECT_THAT(philox({0, 0, 0, 0}, {0, 0}),
              ElementsAre(0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u));
  EXPECT_THAT(
      philox({0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu}, {0xffffffffu, 0xffffffffu}),
      ElementsAre(0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu));
  EXPECT_THAT(
      philox({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, {0xa4093822u, 0x299f31d0u}),
      ElementsAre(0xd16cfe09u, 0x94fdcceb, 0x5001e420u, 0x24126ea1u));
}

TEST(RandomStream, SameKeyAndStream_Repeat) {
  RandomStream a(42, "crop"), b(42, "crop"), other_stream(42, "flip"), other_key(43, "crop");
  bool differs_by_stream = false, differs_by_key = false;
  for (int i = 0; i < 20; ++i) {
    const uint32_t value = a.bits();
    EXPECT_EQ(value, b.bits());
    differs_by_stream |= value != other_stream.bits();
    differs_by_key |= value != other_key.bits();
  }
  EXPECT_TRUE(differs_by_stream);
  EXPECT_TRUE(differs_by_key);
}

TEST(RandomStream, Uniform_CoversItsRangeEvenly) {
  RandomStream random(7, "test");
  double sum = 0;
  std::set<int64_t> seen;
  for (int i = 0; i < 10000; ++i) {
    const double value = random.uniform(2, 4);
    ASSERT_GE(value, 2);
    ASSERT_LT(value, 4);
    sum += value;
    seen.insert(random.below(5));
  }
  EXPECT_NEAR(sum / 10000, 3, 0.03);
  EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3, 4));
}

TEST(SampleKey, SeedEpochSample_EachChangesIt) {
  const uint64_t key = sample_key(1, 2, 3);
  EXPECT_EQ(key, sample_key(1, 2, 3));
  EXPECT_NE(key, sample_key(2, 2, 3));
  EXPECT_NE(key, sample_key(1, 3, 3));
  EXPECT_NE(key, sample_key(1, 2, 4));
  EXPECT_NE(key, sample_key(1, 3, 2));
}

}  // namespace
}  // namespace fleet::data

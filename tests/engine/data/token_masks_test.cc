// Masks of tokens: how many, which, and what replaces them.
#include "data/token_masks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "data/random.h"

namespace fleet::data {
namespace {

constexpr uint32_t kMask = 4, kUnknown = 5;

// Ids below 10 are special; odd ones continue a word.
MaskRules rules_of(bool words, int64_t most = 77) {
  MaskRules rules{.most = most, .mask = kMask, .vocabulary = 1000, .special = {}, .continues = {}};
  for (int id = 0; id < 1000; ++id) rules.special.push_back(id < 10);
  if (!words) return rules;
  for (int id = 0; id < 1000; ++id) rules.continues.push_back(id % 2 == 1);
  return rules;
}

SentenceRow row_with(int size) {
  SentenceRow row;
  for (int i = 0; i < size; ++i) {
    const bool special = i == 0 || i == size / 2 || i == size - 1;
    row.ids.push_back(special ? 2 : i % 29 == 3 ? kUnknown : 10 + i * 7 % 990);
    row.begins.push_back(special || i % 16 == 1 ? 1 : 0);
  }
  return row;
}

TEST(TokenMasks, Budget_IsTheRateRoundedAndBounded) {
  MaskRules rules = rules_of(false, 20);
  EXPECT_EQ(masked_budget(rules, 128), 19);  // 19.2
  EXPECT_EQ(masked_budget(rules, 10), 2);    // 1.5: to the even one, as Python's round()
  EXPECT_EQ(masked_budget(rules, 3), 1);
  EXPECT_EQ(masked_budget(rules, 512), 20);
}

TEST(TokenMasks, Shares_AreThoseOfBert) {
  const MaskRules rules = rules_of(false);
  const SentenceRow row = row_with(512);
  double masks = 0, kept = 0, others = 0;
  std::vector<int> chosen(512);
  for (int64_t sample = 0; sample < 400; ++sample) {
    const uint64_t key = sample_key(3, 1, sample);
    const std::vector<int64_t> places = choose_masked(row, rules, key);
    ASSERT_EQ(places.size(), 77u);
    ASSERT_TRUE(std::ranges::is_sorted(places, std::less_equal()));
    std::vector<int64_t> ids(row.ids.begin(), row.ids.end());
    mask_tokens(places, rules, key, ids);
    for (const int64_t place : places) {
      ASSERT_FALSE(rules.special[row.ids[place]]);
      ++chosen[place];
      const bool same = ids[place] == row.ids[place], mask = ids[place] == kMask;
      (mask ? masks : same ? kept : others) += 1;
    }
    for (int64_t i = 0; i < 512; ++i) {
      ASSERT_TRUE(ids[i] == row.ids[i] || std::ranges::binary_search(places, i));
    }
  }
  const double all = 400.0 * 77;
  EXPECT_NEAR(masks / all, 0.8, 0.01);
  EXPECT_NEAR(kept / all, 0.1, 0.007);
  EXPECT_NEAR(others / all, 0.1, 0.007);
  // Every other token is chosen equally often: 400 * 77 / 490 = 63 times.
  for (int i = 0; i < 512; ++i) {
    EXPECT_NEAR(chosen[i], rules.special[row.ids[i]] ? 0 : 63, 40) << i;
  }
}

TEST(TokenMasks, WholeWords_AreMaskedTogether) {
  const MaskRules rules = rules_of(true);
  const SentenceRow row = row_with(256);
  const int64_t budget = masked_budget(rules, 256);
  double masked = 0;
  for (int64_t sample = 0; sample < 200; ++sample) {
    const std::vector<int64_t> places = choose_masked(row, rules, sample_key(3, 1, sample));
    ASSERT_LE(static_cast<int64_t>(places.size()), budget);
    masked += static_cast<double>(places.size());
    const auto is_masked = [&](int64_t at) { return std::ranges::binary_search(places, at); };
    for (int64_t i = 1; i < 256; ++i) {
      const bool whole =
          row.ids[i] % 2 == 1 && !row.begins[i] && row.ids[i] >= 10 && row.ids[i - 1] >= 10;
      ASSERT_TRUE(!whole || is_masked(i) == is_masked(i - 1)) << i;
    }
  }
  EXPECT_GT(masked / 200, static_cast<double>(budget) - 1);
}

TEST(TokenMasks, Key_DecidesThem) {
  const SentenceRow row = row_with(128);
  for (const bool words : {false, true}) {
    const MaskRules rules = rules_of(words);
    EXPECT_EQ(choose_masked(row, rules, 5), choose_masked(row, rules, 5));
    EXPECT_NE(choose_masked(row, rules, 5), choose_masked(row, rules, 6));
  }
}

TEST(TokenMasks, RowOfSpecialTokens_HasNone) {
  const SentenceRow row{.ids = {2, kUnknown, 2}, .begins = {1, 1, 1}, .ends = {3}};
  EXPECT_TRUE(choose_masked(row, rules_of(false), 1).empty());
}

}  // namespace
}  // namespace fleet::data

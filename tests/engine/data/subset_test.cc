#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "data/sampler.h"
#include "data/source.h"

namespace fleet::data {
namespace {

class Labels : public Source {
 public:
  explicit Labels(std::vector<int64_t> labels) : labels_(std::move(labels)) {}
  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  int64_t label(int64_t index) const override { return labels_[index]; }
  Sample read(int64_t, std::vector<uint8_t>&) const override { return {}; }
  std::string name(int64_t index) const override { return std::to_string(index); }

 private:
  std::vector<int64_t> labels_;
};

std::vector<int64_t> many() {
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < 1000; ++i) labels.push_back(i % 10 == 0 ? 2 : i % 3 == 0 ? 1 : 0);
  return labels;
}

TEST(Split, TakesItsPartOfEachClass) {
  const Labels source(many());
  const Split split = split_by_class(source, 0.2, 1);
  std::map<int64_t, int64_t> all, taken;
  for (int64_t i = 0; i < source.size(); ++i) all[source.label(i)] += 1;
  for (const int64_t i : split.validation) taken[source.label(i)] += 1;
  for (const auto& [label, count] : all) EXPECT_NEAR(taken[label], 0.2 * count, 0.5) << label;
  std::set<int64_t> together(split.train.begin(), split.train.end());
  together.insert(split.validation.begin(), split.validation.end());
  EXPECT_EQ(together.size(), 1000u);
  EXPECT_EQ(split.train.size() + split.validation.size(), 1000u);
  EXPECT_TRUE(std::is_sorted(split.train.begin(), split.train.end()));
}

TEST(Split, DependsOnTheSeedOnly) {
  const Labels source(many());
  EXPECT_EQ(split_by_class(source, 0.2, 7).validation, split_by_class(source, 0.2, 7).validation);
  EXPECT_NE(split_by_class(source, 0.2, 7).validation, split_by_class(source, 0.2, 8).validation);
}

TEST(Split, SmallClasses_KeepATrainingSample) {
  const Split split = split_by_class(Labels({0, 0, 1, 2, 2, 2}), 0.01, 1);
  EXPECT_EQ(split.validation.size(), 2u);  // one of each class of two or more
  EXPECT_EQ(split_by_class(Labels({0, 0}), 0.9, 1).train.size(), 1u);
  EXPECT_THROW(split_by_class(Labels({0, 1, 2}), 0.5, 1), Error);
}

TEST(Subset, NumbersItsSamplesAnew) {
  const auto part = subset_of(std::make_unique<Labels>(std::vector<int64_t>{5, 6, 7, 8}), {1, 3});
  EXPECT_EQ(part->size(), 2);
  EXPECT_EQ(part->label(1), 8);
  EXPECT_EQ(part->name(1), "3");
}

// 90 samples of one class, 10 of another.
TEST(BalancedSampling, DrawsEachClassAlikeOften) {
  auto classes = std::make_shared<std::vector<std::vector<int64_t>>>(2);
  for (int64_t i = 0; i < 4000; ++i) (*classes)[i % 10 == 0 ? 1 : 0].push_back(i);
  Sampler sampler({.samples = 4000, .batch = 100, .classes = classes});
  sampler.start_epoch(3);
  int64_t rare = 0;
  std::map<int64_t, int64_t> often;
  std::set<int64_t> draws;
  for (int64_t i = 0; i < 4000; ++i) {
    const Pick pick = sampler.at(i);
    rare += pick.sample % 10 == 0;
    often[pick.sample] += 1;
    draws.insert(pick.draw);
  }
  EXPECT_NEAR(rare, 2000, 160);  // five standard deviations
  EXPECT_EQ(draws.size(), 4000u);
  EXPECT_GT(often[0], 1);  // of 400: about five times
}

TEST(BalancedSampling, IsTheSameForAnyNumberOfRanks) {
  auto classes = std::make_shared<std::vector<std::vector<int64_t>>>(2);
  for (int64_t i = 0; i < 64; ++i) (*classes)[i < 50 ? 0 : 1].push_back(i);
  const auto batch = [&](int ranks, int64_t index) {
    std::vector<int64_t> samples;
    for (int rank = 0; rank < ranks; ++rank) {
      Sampler sampler({.samples = 64,
                       .batch = 16 / ranks,
                       .rank = rank,
                       .ranks = ranks,
                       .seed = 5,
                       .classes = classes});
      sampler.start_epoch(2);
      for (int64_t i = 0; i < 16 / ranks; ++i) samples.push_back(sampler.pick(index, i).sample);
    }
    return samples;
  };
  EXPECT_EQ(batch(1, 3), batch(4, 3));
  EXPECT_NE(batch(1, 3), batch(1, 2));
}

}  // namespace
}  // namespace fleet::data

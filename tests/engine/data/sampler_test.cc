#include "data/sampler.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/error.h"

namespace fleet::data {
namespace {

using ::testing::ElementsAre;

// The global batch: the parts of all ranks, in rank order.
std::vector<int64_t> global_batch(SamplerOptions options, int64_t global, int ranks, int64_t epoch,
                                  int64_t batch) {
  std::vector<int64_t> all;
  options.batch = global / ranks;
  options.ranks = ranks;
  for (options.rank = 0; options.rank < ranks; ++options.rank) {
    Sampler sampler(options);
    sampler.start_epoch(epoch);
    for (int64_t i = 0; i < options.batch; ++i) all.push_back(sampler.pick(batch, i).sample);
  }
  return all;
}

TEST(Sampler, AnyNumberOfRanks_SameGlobalBatches) {
  const SamplerOptions options{.samples = 103, .seed = 5};
  for (int64_t epoch : {0, 1, 7}) {
    for (int64_t batch = 0; batch < 9; ++batch) {
      const auto alone = global_batch(options, 12, 1, epoch, batch);
      for (int ranks : {2, 3, 4, 6, 12}) {
        EXPECT_EQ(alone, global_batch(options, 12, ranks, epoch, batch)) << ranks << " ranks";
      }
    }
  }
}

TEST(Sampler, Epoch_IsAPermutationThatDiffersFromOthers) {
  Sampler sampler({.samples = 1000, .batch = 1000, .seed = 3});
  const auto epoch_of = [&](int64_t epoch) {
    sampler.start_epoch(epoch);
    std::vector<int64_t> order;
    for (int64_t i = 0; i < 1000; ++i) order.push_back(sampler.pick(0, i).sample);
    return order;
  };
  auto first = epoch_of(0);
  EXPECT_NE(first, epoch_of(1));
  EXPECT_EQ(first, epoch_of(0)) << "an epoch's order must not depend on the ones before";
  std::vector<int64_t> all(1000);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_NE(first, all);
  std::sort(first.begin(), first.end());
  EXPECT_EQ(first, all);
}

TEST(Permutation, AnySize_HasEachNumberOnce) {
  for (const int64_t size : {1, 2, 3, 4, 5, 17, 1000, 65'536, 65'537}) {
    const Permutation permutation(size, 7);
    std::vector<bool> seen(static_cast<size_t>(size));
    int64_t fixed = 0;
    for (int64_t i = 0; i < size; ++i) {
      const int64_t to = permutation(i);
      ASSERT_TRUE(to >= 0 && to < size && !seen[static_cast<size_t>(to)]) << size;
      seen[static_cast<size_t>(to)] = true;
      fixed += to == i ? 1 : 0;
    }
    if (size < 1000) continue;
    EXPECT_LT(fixed, 12) << size;  // 1 is expected
  }
}

TEST(Permutation, LargeSizes_StayInRange) {
  const int64_t size = (int64_t{1} << 40) + 12'345;
  const Permutation one(size, 1), other(size, 2);
  double sum = 0;
  for (int64_t i = 0; i < 10'000; ++i) {
    ASSERT_LT(one(i), size);
    EXPECT_NE(one(i), other(i));
    sum += static_cast<double>(one(i)) / static_cast<double>(size);
  }
  EXPECT_NEAR(sum / 10'000, 0.5, 5 * 0.0029);
}

TEST(Sampler, OrderThatIsNotStored_IsAPermutationOfTheEpoch) {
  SamplerOptions options{.samples = 1000, .batch = 10, .seed = 3, .stored_order = 999};
  Sampler sampler(options);
  std::vector<std::vector<int64_t>> epochs;
  for (const int64_t epoch : {0, 1, 0}) {
    sampler.start_epoch(epoch);
    std::vector<int64_t>& order = epochs.emplace_back();
    for (int64_t i = 0; i < 1000; ++i) order.push_back(sampler.at(i).sample);
  }
  EXPECT_EQ(epochs[0], epochs[2]);
  EXPECT_NE(epochs[0], epochs[1]);
  std::sort(epochs[0].begin(), epochs[0].end());
  for (int64_t i = 0; i < 1000; ++i) EXPECT_EQ(epochs[0][static_cast<size_t>(i)], i);
}

TEST(Sampler, OtherSeed_OtherOrder) {
  Sampler a({.samples = 100, .batch = 100, .seed = 1}),
      b({.samples = 100, .batch = 100, .seed = 2});
  bool differs = false;
  for (int64_t i = 0; i < 100; ++i) differs |= a.pick(0, i).sample != b.pick(0, i).sample;
  EXPECT_TRUE(differs);
}

TEST(Sampler, PaddedTail_EachSampleCountsOnceOnAnyNumberOfRanks) {
  for (int ranks : {1, 2, 3, 5}) {
    std::map<int64_t, int> counted;
    int64_t batches = -1;
    for (int rank = 0; rank < ranks; ++rank) {
      Sampler sampler({.samples = 31, .batch = 4, .rank = rank, .ranks = ranks, .shuffle = false});
      if (batches >= 0) {
        EXPECT_EQ(sampler.batches(), batches);
      }
      batches = sampler.batches();
      for (int64_t b = 0; b < batches; ++b) {
        for (int64_t i = 0; i < 4; ++i) {
          const Pick pick = sampler.pick(b, i);
          ASSERT_GE(pick.sample, 0);
          ASSERT_LT(pick.sample, 31);
          if (pick.real) ++counted[pick.sample];
        }
      }
    }
    EXPECT_EQ(counted.size(), 31u);
    for (const auto& [sample, times] : counted) EXPECT_EQ(times, 1) << sample;
  }
}

TEST(Sampler, DroppedTail_WholeRealBatchesOnly) {
  Sampler sampler({.samples = 31, .batch = 4, .rank = 1, .ranks = 2, .tail = Tail::kDrop});
  EXPECT_EQ(sampler.batches(), 3);
  for (int64_t b = 0; b < 3; ++b) {
    for (int64_t i = 0; i < 4; ++i) EXPECT_TRUE(sampler.pick(b, i).real);
  }
}

TEST(Sampler, SetSmallerThanTheBatch_WrapsMoreThanOnce) {
  Sampler sampler({.samples = 3, .batch = 4, .rank = 1, .ranks = 2, .shuffle = false});
  EXPECT_EQ(sampler.batches(), 1);
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < 4; ++i) {
    samples.push_back(sampler.pick(0, i).sample);
    EXPECT_FALSE(sampler.pick(0, i).real);
  }
  EXPECT_THAT(samples, ElementsAre(1, 2, 0, 1));
}

TEST(Sampler, TooFewSamplesToDrop_SaysWhatToDo) {
  try {
    Sampler({.samples = 3, .batch = 4, .tail = Tail::kDrop});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_EQ(error.where(), "data.tail");
  }
  EXPECT_THROW(Sampler({.samples = 0, .batch = 4}), Error);
}

TEST(Sampler, Repeats_EachSampleComesInARowWithItsOwnDraws) {
  const auto draws_of = [](int64_t repeats, int64_t epoch) {
    Sampler sampler({.samples = 30, .batch = 30, .seed = 3, .repeats = repeats});
    sampler.start_epoch(epoch);
    std::vector<Pick> picks;
    for (int64_t i = 0; i < 30; ++i) picks.push_back(sampler.pick(0, i));
    return picks;
  };
  const auto once = draws_of(1, 4), thrice = draws_of(3, 4);
  std::set<int64_t> draws, samples;
  for (size_t i = 0; i < 30; ++i) {
    EXPECT_EQ(thrice[i].sample, once[i / 3].sample);
    EXPECT_TRUE(thrice[i].real);
    draws.insert(thrice[i].draw);
    samples.insert(thrice[i].sample);
  }
  EXPECT_EQ(draws.size(), 30u);
  EXPECT_EQ(samples.size(), 10u);
  EXPECT_EQ(thrice[0].draw, once[0].draw);
}

TEST(Sampler, BeforeFirst_IsThePreviousInTheGlobalBatch) {
  SamplerOptions options{.samples = 48, .batch = 4, .ranks = 3, .seed = 2};
  std::vector<int64_t> firsts, lasts;
  for (options.rank = 0; options.rank < 3; ++options.rank) {
    Sampler sampler(options);
    firsts.push_back(sampler.before_first(2).sample);
    lasts.push_back(sampler.pick(2, 3).sample);
  }
  EXPECT_THAT(firsts, ElementsAre(lasts[2], lasts[0], lasts[1]));
}

}  // namespace
}  // namespace fleet::data

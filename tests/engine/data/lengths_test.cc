// Batches by length: which samples they have, how long their rows are.
#include "data/lengths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "data/pipeline.h"
#include "data/random.h"
#include "data/sampler.h"
#include "tests/engine/data/helpers.h"
#include "tests/errors.h"
#include "text/token_file.h"

namespace fleet::data {
namespace {

using ::testing::ElementsAre;
using testing::settings_of;

// Three classes in no order, most samples in the first.
std::shared_ptr<const std::vector<uint8_t>> mixed_classes(int64_t samples) {
  auto classes = std::make_shared<std::vector<uint8_t>>();
  for (int64_t i = 0; i < samples; ++i) {
    const uint64_t draw = mix(static_cast<uint64_t>(i)) % 10;
    classes->push_back(draw < 6 ? 0 : draw < 9 ? 1 : 2);
  }
  return classes;
}

using GlobalBatch = std::pair<int, std::vector<int64_t>>;  // length class, samples

std::vector<GlobalBatch> epoch_of(SamplerOptions options, int64_t global, int ranks,
                                  int64_t epoch) {
  std::vector<GlobalBatch> all;
  options.batch = global / ranks;
  options.ranks = ranks;
  for (options.rank = 0; options.rank < ranks; ++options.rank) {
    Sampler sampler(options);
    sampler.start_epoch(epoch);
    all.resize(static_cast<size_t>(sampler.batches()));
    for (int64_t b = 0; b < sampler.batches(); ++b) {
      auto& [length, samples] = all[static_cast<size_t>(b)];
      if (options.rank > 0) {
        EXPECT_EQ(sampler.length_class(b), length);
      }
      length = sampler.length_class(b);
      for (int64_t i = 0; i < options.batch; ++i) samples.push_back(sampler.pick(b, i).sample);
    }
  }
  return all;
}

TEST(LengthSampler, AnyNumberOfRanks_SameBatchesOfSameLengths) {
  const SamplerOptions options{.samples = 1003, .seed = 5, .lengths = mixed_classes(1003)};
  for (const int64_t epoch : {0, 3}) {
    const auto alone = epoch_of(options, 12, 1, epoch);
    EXPECT_EQ(alone, epoch_of(options, 12, 3, epoch));
    EXPECT_EQ(alone, epoch_of(options, 12, 12, epoch));
  }
  EXPECT_NE(epoch_of(options, 12, 1, 0), epoch_of(options, 12, 1, 1));
}

TEST(LengthSampler, Epoch_HasEachSampleOnceAndFewMixedBatches) {
  constexpr int64_t kSamples = 8000, kBatch = 8;
  const auto classes = mixed_classes(kSamples);
  std::set<int64_t> seen;
  std::map<int, int> batches;  // by length class
  int mixed = 0, changes = 0, last = -1;
  for (const auto& [length, samples] :
       epoch_of({.samples = kSamples, .seed = 1, .lengths = classes}, kBatch, 2, 2)) {
    std::set<int> inside;
    for (const int64_t sample : samples) {
      EXPECT_TRUE(seen.insert(sample).second);
      inside.insert((*classes)[static_cast<size_t>(sample)]);
    }
    EXPECT_EQ(length, *inside.rbegin());
    mixed += inside.size() > 1 ? 1 : 0;
    changes += length != last ? 1 : 0;
    last = length;
    ++batches[length];
  }
  EXPECT_EQ(seen.size(), kSamples);
  const int windows = (kSamples / kBatch + kLengthWindow - 1) / kLengthWindow;
  EXPECT_LE(mixed, 2 * windows);  // where one class ends and the next begins
  EXPECT_EQ(batches.size(), 3U);
  EXPECT_GT(changes, 100);  // lengths come in a random order
}

TEST(LengthSampler, DroppedTail_IsNotAlwaysTheLongest) {
  const auto classes = mixed_classes(107);
  std::set<int> dropped;
  for (int64_t epoch = 0; epoch < 8; ++epoch) {
    std::set<int64_t> seen;
    for (const auto& batch :
         epoch_of({.samples = 107, .tail = Tail::kDrop, .lengths = classes}, 8, 1, epoch)) {
      seen.insert(batch.second.begin(), batch.second.end());
    }
    EXPECT_EQ(seen.size(), 104U);
    for (int64_t i = 0; i < 107; ++i) {
      if (!seen.contains(i)) dropped.insert((*classes)[static_cast<size_t>(i)]);
    }
  }
  EXPECT_TRUE(dropped.contains(0));
}

TEST(LengthSampler, WithoutShuffling_LengthsAscend) {
  int last = 0;
  for (const auto& batch :
       epoch_of({.samples = 203, .shuffle = false, .lengths = mixed_classes(203)}, 10, 2, 0)) {
    EXPECT_GE(batch.first, last);
    last = batch.first;
  }
  EXPECT_EQ(last, 2);
}

template <typename T>
std::vector<T> values(const Batch& batch, const std::string& name) {
  const std::span<const std::byte> data = batch.column(name);
  std::vector<T> all(data.size() / sizeof(T));
  std::memcpy(all.data(), data.data(), data.size());
  return all;
}

class LengthPipeline : public ::testing::Test {
 protected:
  // Documents of 2 to 31 tokens, one a row.
  void SetUp() override {
    text::TokenWriter writer(folder_ / "a.bin", text::TokenFormat::kNanoGpt,
                             text::TokenWidth::kUint16);
    for (uint32_t i = 0; i < 90; ++i) {
      std::vector<uint32_t> document(1 + i * 7 % 31, 10 + i);
      document.push_back(9);
      writer.add(document);
    }
    writer.finish();
  }

  Settings settings(const std::string& more, int batch = 4) const {
    return settings_of("tokens", R"({"train": {"file": ")" + (folder_ / "a.bin") +
                                     R"("}, "end_of_text": "9", "sequence_length": 32,
                                     "packing": "none", "batch_size": )" +
                                     std::to_string(batch) + ", " + more + "}");
  }
  std::unique_ptr<InputPipeline> open(const std::string& more, int rank = 0, int ranks = 1,
                                      int batch = 4) const {
    return make_pipeline(settings(more, batch), true, {.rank = rank, .ranks = ranks, .seed = 3});
  }

  testing::TempFolder folder_;
};

TEST_F(LengthPipeline, Rows_AreThePaddedOnesCutBehindTheirTokens) {
  const auto by_length = open(R"("lengths": [8, 16, 32])");
  const auto padded = open(R"("shuffle": false)");
  std::map<int64_t, std::vector<int64_t>> rows;  // by sample: documents and labels
  padded->start_epoch(0);
  while (const Batch* batch = padded->next()) {
    const auto ids = values<int64_t>(*batch, "input_ids");
    for (int64_t i = 0; i < batch->size; ++i) {
      rows[batch->samples[i]] = {ids.begin() + i * 32, ids.begin() + (i + 1) * 32};
    }
  }
  std::set<int64_t> lengths;
  by_length->start_epoch(0);
  while (const Batch* batch = by_length->next()) {
    const int64_t length = batch->length;
    lengths.insert(length);
    const auto ids = values<int64_t>(*batch, "input_ids");
    ASSERT_EQ(ids.size(), static_cast<size_t>(4 * length));
    ASSERT_EQ(values<float>(*batch, "loss_weight").size(), ids.size());
    int64_t longest = 0;
    for (int64_t i = 0; i < batch->size; ++i) {
      std::vector<int64_t> row(ids.begin() + i * length, ids.begin() + (i + 1) * length);
      row.resize(32, 9);  // the padding token
      EXPECT_EQ(row, rows.at(batch->samples[i]));
      longest = std::max(longest, by_length->source().length(batch->samples[i]));
    }
    EXPECT_LE(longest, length);
    EXPECT_GT(longest, length == 8 ? 0 : length / 2);
  }
  EXPECT_THAT(lengths, ElementsAre(8, 16, 32));
}

TEST_F(LengthPipeline, TwoRanks_HaveOneLengthAndOneDenominator) {
  const auto alone = open(R"("lengths": [8, 16, 32])", 0, 1, 8);
  const auto first = open(R"("lengths": [8, 16, 32])", 0, 2);
  const auto second = open(R"("lengths": [8, 16, 32])", 1, 2);
  for (InputPipeline* one : {alone.get(), first.get(), second.get()}) one->start_epoch(1);
  while (const Batch* batch = alone->next()) {
    const Batch *a = first->next(), *b = second->next();
    EXPECT_EQ(a->length, batch->length);
    EXPECT_EQ(b->length, batch->length);
    EXPECT_FLOAT_EQ(a->denominator, batch->denominator / 2);
    std::vector<int64_t> samples(a->samples.begin(), a->samples.end());
    samples.insert(samples.end(), b->samples.begin(), b->samples.end());
    EXPECT_EQ(samples, std::vector<int64_t>(batch->samples.begin(), batch->samples.end()));
  }
}

TEST_F(LengthPipeline, StartWithinAnEpoch_SameBatchesAndStandIns) {
  const auto whole = open(R"("lengths": [8, 16, 32])"), rest = open(R"("lengths": [8, 16, 32])");
  whole->start_epoch(2);
  rest->start_epoch(2, 5);
  for (int i = 0; i < 5; ++i) whole->next();
  for (int i = 5; i < 20; ++i) {
    const Batch *a = whole->next(), *b = rest->next();
    EXPECT_EQ(a->length, b->length);
    EXPECT_EQ(values<int64_t>(*a, "labels"), values<int64_t>(*b, "labels"));
  }
  // A rank whose data failed runs the Plan that the others run.
  const Batch* stand_in = rest->placeholder_batch();
  const Batch* real = whole->next();
  EXPECT_EQ(stand_in->index, real->index);
  EXPECT_EQ(stand_in->length, real->length);
  EXPECT_EQ(stand_in->column("labels").size(), real->column("labels").size());
}

TEST_F(LengthPipeline, ListsThatCannotWork_AreRefusedByTheirKey) {
  for (const char* lengths : {"[8, 16]", "[16, 8, 32]", "[8, 8, 32]", "[0, 32]", "[8, 64]",
                              "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,32]"}) {
    EXPECT_THAT(thrown_by([&] { open(std::string(R"("lengths": )") + lengths); }),
                IsError(ErrorCode::kUsage, "data.lengths"))
        << lengths;
  }
  const Settings images = settings_of("synthetic", R"({"lengths": [8, 32]})");
  EXPECT_THAT(thrown_by([&] { make_pipeline(images, true, {}); }),
              IsError(ErrorCode::kUsage, "data.lengths"));
}

}  // namespace
}  // namespace fleet::data

// The class weights of training batches: those of an update divide by the labels of all its
// batches, on all ranks.
#include <gtest/gtest.h>

#include <algorithm>

#include "data/pipeline.h"
#include "tests/engine/data/helpers.h"

namespace fleet::data {
namespace {

const std::vector<float> kWeights = {1, 0.25, 3, 8};
constexpr int64_t kBatches = 5;  // of 4 samples, in an epoch of 18

struct Step {
  std::vector<int64_t> labels;  // of all ranks
  std::vector<float> weights;
};

std::unique_ptr<InputPipeline> pipeline(int ranks, int rank, int64_t merged,
                                        const std::string& more = "") {
  const std::string json = R"({"image": {"channels": 1, "height": 2, "width": 3}, "batch_size": )" +
                           std::to_string(4 / ranks) + R"(, "train": {"samples": 18})" + more + "}";
  auto made = make_pipeline(testing::settings_of("synthetic", json), true,
                            {.rank = rank, .ranks = ranks, .seed = 5, .classes = 4});
  made->set_class_weights(kWeights);
  made->set_merged_steps(merged);
  return made;
}

// All steps of `epochs` epochs, from the start of epoch `epoch` at batch `first` on.
std::vector<Step> steps_of(int ranks, int64_t merged, int64_t epochs, int64_t epoch = 0,
                           int64_t first = 0, const std::string& more = "") {
  std::vector<Step> steps;
  for (int rank = 0; rank < ranks; ++rank) {
    auto part = pipeline(ranks, rank, merged, more);
    size_t step = 0;
    for (int64_t e = epoch; e < epochs; ++e) {
      part->start_epoch(e, e == epoch ? first : 0);
      for (const Batch* batch = part->next(); batch; batch = part->next(), ++step) {
        steps.resize(std::max(steps.size(), step + 1));
        steps[step].labels.insert(steps[step].labels.end(), batch->labels.begin(),
                                  batch->labels.end());
        const std::vector<float> weights(batch->class_weights.begin(), batch->class_weights.end());
        if (rank > 0) {
          EXPECT_EQ(weights, steps[step].weights);
        }
        steps[step].weights = weights;
      }
    }
  }
  return steps;
}

// Sums over the steps of an update are those of one large batch, across the end of an epoch too.
void expect_update(const std::vector<Step>& steps, size_t begin, size_t end) {
  double sum = 0, samples = 0;
  for (size_t i = begin; i < end; ++i) {
    for (const int64_t label : steps[i].labels) sum += kWeights[label];
    samples += static_cast<double>(steps[i].labels.size());
  }
  for (size_t i = begin; i < end; ++i) {
    for (size_t c = 0; c < kWeights.size(); ++c) {
      EXPECT_FLOAT_EQ(steps[i].weights[c], static_cast<float>(kWeights[c] * samples / sum))
          << "step " << i << " of the update " << begin << " to " << end;
    }
  }
}

TEST(ClassWeightsOfBatches, DivideByTheLabelsOfAWholeUpdate) {
  for (const int ranks : {1, 2, 4}) {
    for (const int64_t merged : {1, 2, 3, 4, 7, 15}) {
      for (const char* more : {"", R"(, "async": false)", R"(, "shuffle": false)"}) {
        SCOPED_TRACE(std::to_string(merged) + " of " + std::to_string(ranks) + " ranks " + more);
        const auto steps = steps_of(ranks, merged, 3, 0, 0, more);
        ASSERT_EQ(steps.size(), 3u * kBatches);
        for (size_t i = 0; i + merged <= steps.size(); i += merged) {
          expect_update(steps, i, i + merged);
        }
      }
    }
  }
}

// In the middle of an update, and of an update that began in the epoch before.
TEST(ClassWeightsOfBatches, ResumedRun_HasTheSameBits) {
  for (const int64_t merged : {3, 4, 7}) {
    const auto whole = steps_of(1, merged, 3);
    for (const int64_t epoch : {0, 1, 2}) {
      for (int64_t first = 0; first < kBatches; ++first) {
        const auto rest = steps_of(1, merged, 3, epoch, first);
        for (size_t i = 0; i < rest.size(); ++i) {
          EXPECT_EQ(rest[i].weights, whole[epoch * kBatches + first + i].weights)
              << merged << " from " << epoch << ", " << first << ", step " << i;
        }
      }
    }
  }
}

// A program's own loop may leave an epoch early: updates go by its steps.
TEST(ClassWeightsOfBatches, StepOfABatch_DecidesTheUpdate) {
  auto part = pipeline(1, 0, 2);
  std::vector<Step> steps;
  for (const auto& [first, step] : {std::pair(1, 0), std::pair(1, 3)}) {
    part->start_epoch(0, first, step);
    for (const Batch* batch = part->next(); batch; batch = part->next()) {
      steps.push_back({{batch->labels.begin(), batch->labels.end()},
                       {batch->class_weights.begin(), batch->class_weights.end()}});
    }
  }
  ASSERT_EQ(steps.size(), 2u * (kBatches - 1));
  expect_update(steps, 0, 2);  // batches 1 and 2
  expect_update(steps, 5, 7);  // batches 2 and 3: batch 1 is the second of its update
}

}  // namespace
}  // namespace fleet::data

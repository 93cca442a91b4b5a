// Generated clicks: distribution, determinism, and the best possible AUC.
#include "data/click_truth.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numeric>

#include "tests/engine/data/clicks.h"
#include "tests/errors.h"

namespace fleet::data {
namespace {

using testing::click_of;
using testing::open_data;

struct Drawn {
  std::vector<double> probabilities, labels;
};

Drawn draw(const ClickTruth& truth, int64_t count, int64_t part = 0) {
  Drawn drawn;
  for (int64_t i = 0; i < count; ++i) {
    float label = -1;
    drawn.probabilities.push_back(truth.fill(part, i, {.label = &label}));
    drawn.labels.push_back(double{label});
  }
  return drawn;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The AUC of scores by the definition, over all pairs.
double auc_of_pairs(const std::vector<double>& scores, const std::vector<double>& labels) {
  double right = 0, pairs = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    for (size_t j = 0; j < scores.size(); ++j) {
      if (labels[i] != 1 || labels[j] != 0) continue;
      pairs += 1;
      right += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
    }
  }
  return right / pairs;
}

// z ~ N(mean, deviation^2), at the middles of equal parts of the distribution.
std::vector<double> normal_probabilities(double mean, double deviation) {
  std::vector<double> probabilities;
  constexpr int kSteps = 40'000;
  double z = -8, below = 0.5 * std::erfc(8 / std::sqrt(2.0));
  for (int i = 0; i < kSteps; ++i) {
    const double wanted = (i + 0.5) / kSteps;
    while (below < wanted) {
      z += 1e-4;
      below = 0.5 * std::erfc(-z / std::sqrt(2.0));
    }
    probabilities.push_back(1 / (1 + std::exp(-(mean + deviation * z))));
  }
  return probabilities;
}

TEST(BestPossibleAuc, NormalLogOdds_GivesTheKnownFigures) {
  // Computed by numerical integration with SciPy.
  struct Case {
    double mean, deviation, auc, log_loss;
  };
  for (const Case& one : {Case{-1.315, 1, .7429, .4887}, Case{-1.531, 1.5, .8181, .4298}}) {
    const std::vector<double> p = normal_probabilities(one.mean, one.deviation);
    EXPECT_NEAR(mean(p), 0.25, 2e-4);
    EXPECT_NEAR(best_possible_auc(p), one.auc, 2e-4);
    EXPECT_NEAR(best_possible_log_loss(p), one.log_loss, 2e-4);
  }
}

TEST(BestPossibleAuc, FewRows_CountsPairsOfDifferentRows) {
  EXPECT_DOUBLE_EQ(best_possible_auc(std::vector<double>{0, 1}), 1);
  EXPECT_DOUBLE_EQ(best_possible_auc(std::vector<double>{0.3, 0.3, 0.3}), 0.5);
  EXPECT_DOUBLE_EQ(best_possible_auc(std::vector<double>{0.5}), 0.5);
  // P(only b clicks) / P(one of two clicks) = .8 * .8 / (.8 * .8 + .2 * .2).
  EXPECT_DOUBLE_EQ(best_possible_auc(std::vector<double>{0.8, 0.2}), 0.64 / 0.68);
}

TEST(BestPossibleAuc, DrawnLabels_HaveItWithinTheStandardError) {
  const ClickTruth truth({.deviation = 1.5});
  const Drawn drawn = draw(truth, 4000);
  EXPECT_NEAR(auc_of_pairs(drawn.probabilities, drawn.labels),
              best_possible_auc(drawn.probabilities), 4 * 0.009);
}

TEST(ClickTruth, ManySlots_ReachesTheFiguresOfANormalDistribution) {
  for (const bool interaction : {false, true}) {
    const ClickTruth truth({.slots = 26, .dense = 13, .interaction = interaction});
    const Drawn drawn = draw(truth, 100'000);
    EXPECT_NEAR(truth.bias(), -1.315, interaction ? 0.15 : 0.05);
    EXPECT_NEAR(mean(drawn.probabilities), 0.25, 0.005);
    EXPECT_NEAR(mean(drawn.labels), 0.25, 4 * 0.0014);
    EXPECT_NEAR(best_possible_auc(drawn.probabilities), .7429, interaction ? 0.02 : 0.006);
  }
}

TEST(ClickTruth, ClickRate_IsTheWantedOne) {
  const ClickTruth truth({.slots = 26, .deviation = 1.5, .rate = 0.05});
  const Drawn drawn = draw(truth, 100'000);
  EXPECT_NEAR(mean(drawn.labels), 0.05, 4 * 0.0007);
  EXPECT_NEAR(best_possible_auc(drawn.probabilities), .8382, 0.01);
}

TEST(ClickTruth, Ids_FollowZipf) {
  const ClickTruth truth({.slots = 2, .slot_ids = 50, .exponent = 1});
  std::vector<double> counts(100);
  constexpr int kRows = 50'000;
  for (int i = 0; i < kRows; ++i) {
    std::vector<int64_t> ids(2);
    truth.fill(0, i, {.ids = ids.data()});
    ASSERT_TRUE(ids[0] >= 0 && ids[0] < 50 && ids[1] >= 50 && ids[1] < 100);
    counts[static_cast<size_t>(ids[0])] += 1;
    counts[static_cast<size_t>(ids[1])] += 1;
  }
  double sum = 0;
  for (int i = 1; i <= 50; ++i) sum += 1.0 / i;
  for (const size_t id : {0, 1, 9, 49, 50, 59}) {
    const double wanted = kRows / sum / static_cast<double>(id % 50 + 1);
    EXPECT_NEAR(counts[id], wanted, 5 * std::sqrt(wanted)) << id;
  }
}

TEST(ClickTruth, LabelsFollowProbabilities) {
  const Drawn drawn = draw(ClickTruth({.deviation = 2}), 50'000);
  std::vector<double> sums(5), labels(5), counts(5);
  for (size_t i = 0; i < drawn.labels.size(); ++i) {
    const auto bin = static_cast<size_t>(drawn.probabilities[i] * 5);
    sums[bin] += drawn.probabilities[i];
    labels[bin] += drawn.labels[i];
    counts[bin] += 1;
  }
  for (size_t bin = 0; bin < 5; ++bin) {
    EXPECT_NEAR(labels[bin], sums[bin], 5 * std::sqrt(counts[bin]) / 2) << bin;
  }
}

TEST(SyntheticClicks, Samples_DependOnSeedSplitAndNumberAlone) {
  const std::string keys = R"({"slot_count": 3, "slot_length": 4, "dense": 2, "interaction": true)";
  const auto one = open_data("synthetic_clicks", keys + "}");
  const auto same = open_data("synthetic_clicks", keys + R"(, "train": {"samples": 7}})");
  const auto other = open_data("synthetic_clicks", keys + R"(, "seed": 2})");
  const auto test = open_data("synthetic_clicks", keys + "}", false);
  EXPECT_EQ(one->size(), 1'000'000);
  EXPECT_EQ(same->size(), 7);
  const testing::Click click = click_of(*one, 6);
  EXPECT_EQ(click, click_of(*same, 6));
  EXPECT_NE(click, click_of(*one, 5));
  EXPECT_NE(click, click_of(*other, 6));
  EXPECT_NE(click, click_of(*test, 6));
  EXPECT_TRUE(click.label == 0 || click.label == 1);
}

TEST(SyntheticClicks, SlotLength_PadsBehindTheIds) {
  const auto source = open_data("synthetic_clicks", R"({"slot_count": 2, "slot_length": 3})");
  std::vector<int> lengths(4);
  for (int64_t i = 0; i < 300; ++i) {
    const testing::Click click = click_of(*source, i);
    ASSERT_EQ(click.ids.size(), 6u);
    for (size_t slot = 0; slot < 2; ++slot) {
      size_t length = 0;
      while (length < 3 && click.ids[slot * 3 + length] >= 0) ++length;
      for (size_t k = length; k < 3; ++k) EXPECT_EQ(click.ids[slot * 3 + k], -1);
      lengths[length] += 1;
    }
  }
  EXPECT_EQ(lengths[0], 0);
  for (const int length : {1, 2, 3}) EXPECT_GT(lengths[static_cast<size_t>(length)], 100);
}

TEST(SyntheticClicks, Columns_AreThoseOfTheSource) {
  const Settings data = testing::settings_of("synthetic_clicks",
                                             R"({"slot_count": 5, "slot_length": 2, "dense": 3})");
  const std::vector<Column> columns = declared_columns(data, {});
  ASSERT_EQ(columns.size(), 3u);
  EXPECT_EQ(columns[0].name, "label");
  EXPECT_EQ(columns[0].dtype, DType::kFloat32);
  EXPECT_EQ(columns[0].shape, Shape({1}));
  EXPECT_EQ(columns[1].shape, Shape({3}));
  EXPECT_EQ(columns[2].name, "ids");
  EXPECT_EQ(columns[2].shape, Shape({5, 2}));
}

TEST(SyntheticClicks, IdSpaceOf0_GivesHashes) {
  const auto source = open_data("synthetic_clicks", R"({"ids": 0})");
  for (const int64_t id : click_of(*source, 0).ids) EXPECT_GT(id, 1'000'000'000);
}

TEST(SyntheticClicks, MoreIdsThanTheSpace_IsRefused) {
  const auto open = [](const std::string& keys) { open_data("synthetic_clicks", keys); };
  EXPECT_THAT(thrown_by([&] { open(R"({"slot_count": 26, "slot_ids": 100000})"); }),
              IsUsageError("data.ids"));
  EXPECT_THAT(thrown_by([&] { open(R"({"slot_count": 26, "slot_ids": 100000000, "ids": 0})"); }),
              IsUsageError("data.slot_ids"));
}

TEST(SyntheticClicks, Batches_HaveALabelOfFloats) {
  const Settings data =
      testing::settings_of("synthetic_clicks", R"({"batch_size": 4, "threads": 2})");
  const auto pipeline = make_pipeline(data, true, {.seed = 3});
  pipeline->start_epoch(0);
  const Batch* batch = pipeline->next();
  ASSERT_NE(batch, nullptr);
  EXPECT_TRUE(batch->labels.empty());
  ASSERT_EQ(batch->column("label").size(), 4 * sizeof(float));
  EXPECT_EQ(batch->column("ids").size(), 4 * 8 * sizeof(int64_t));
  for (int64_t i = 0; i < 4; ++i) {
    const float label = reinterpret_cast<const float*>(batch->column("label").data())[i];
    EXPECT_EQ(label, click_of(pipeline->source(), batch->samples[i]).label);
  }
}

}  // namespace
}  // namespace fleet::data

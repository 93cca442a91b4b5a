#include "models/score_curves.h"

#include <gmock/gmock.h>

#include <cmath>

#include "models/label_metrics.h"
#include "tests/engine/models/thread_ranks.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;

using Scores = std::vector<std::pair<float, bool>>;

// One rank alone.
ScoreCurve curve_of(const Scores& scores) {
  ScoreTable table(1);
  for (const auto& [score, positive] : scores) {
    table.add_sample()[0] = score;
    if (positive) table.add_positive(0);
  }
  ScoreCurve found;
  ThreadRanks::run(1, [&](RankExchange& ranks, int) {
    table.for_each_class(ranks, [&](int64_t, const ScoreCurve& curve) { found = curve; });
  });
  return found;
}

// sklearn.metrics.average_precision_score([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]), roc_auc_score()
TEST(ScoreCurve, ExampleOfScikitLearn_IsEqual) {
  const ScoreCurve curve = curve_of({{0.1F, false}, {0.4F, false}, {0.35F, true}, {0.8F, true}});
  EXPECT_NEAR(average_precision(curve), 5.0 / 6, 1e-12);
  EXPECT_DOUBLE_EQ(area_under_roc(curve), 0.75);
  EXPECT_EQ(curve.positives, 2);
  EXPECT_EQ(curve.negatives, 2);
}

// Ties count together: (1 + 0) / 2 at the only threshold, as scikit-learn says.
TEST(ScoreCurve, EqualScores_CountTogether) {
  for (const Scores& scores : {Scores{{1, true}, {1, false}}, Scores{{1, false}, {1, true}}}) {
    EXPECT_DOUBLE_EQ(average_precision(curve_of(scores)), 0.5);
    EXPECT_DOUBLE_EQ(area_under_roc(curve_of(scores)), 0.5);
  }
}

TEST(ScoreCurve, OneKindOnly_IsNotANumber) {
  EXPECT_TRUE(std::isnan(average_precision(curve_of({{1, false}}))));
  EXPECT_TRUE(std::isnan(area_under_roc(curve_of({{1, false}}))));
  EXPECT_TRUE(std::isnan(area_under_roc(curve_of({{1, true}}))));
  EXPECT_EQ(average_precision(curve_of({{1, true}})), 1);
}

// More samples than a block holds, and more positive ones than ranks exchange at once.
TEST(ScoreTable, ManySamples_AreCountedOnce) {
  constexpr int64_t kClasses = 3, kSamples = 700'000;
  for (const int world : {1, 2}) {
    std::vector<double> areas(kClasses), positives(kClasses);
    ThreadRanks::run(world, [&](RankExchange& ranks, int rank) {
      ScoreTable table(kClasses);
      for (int64_t n = rank; n < kSamples; n += world) {
        const auto scores = table.add_sample();
        for (int64_t c = 0; c < kClasses; ++c) {
          scores[c] = static_cast<float>(n % (1000 + c)) + (n % 2 == 0 ? 10.0F : 0.0F);
        }
        for (int64_t c = 0; c < kClasses; ++c) {
          if (n % 2 == 0) table.add_positive(c);
        }
      }
      table.for_each_class(ranks, [&](int64_t c, const ScoreCurve& curve) {
        if (rank != 0) return;
        areas[c] = area_under_roc(curve);
        positives[c] = curve.positives;
        EXPECT_EQ(curve.positives + curve.negatives, kSamples);
      });
    });
    EXPECT_THAT(positives, ElementsAre(350'000, 350'000, 350'000));
    // 500 even numbers below 1000 that are 10 higher than the odd ones.
    double pairs = 0;
    for (int even = 0; even < 1000; even += 2) {
      for (int odd = 1; odd < 1000; odd += 2) pairs += even + 10 > odd ? 1 : 0;
    }
    EXPECT_DOUBLE_EQ(areas[0], pairs / 250'000);
  }
}

EvaluationCollector::Rows rows_of(const std::vector<float>& logits,
                                  const std::vector<float>& targets,
                                  const std::vector<float>& weights) {
  return {.size = static_cast<int64_t>(weights.size()),
          .output = [&](const std::string&) { return std::span<const float>(logits); },
          .column =
              [&](const std::string& name) {
                return std::as_bytes(std::span(name == "weight" ? weights : targets));
              }};
}

// A logit that is not a number is the lowest score; a sample that pads does not count.
TEST(LabelMetrics, ScoreThatIsNotANumber_IsTheLowest) {
  LabelMetrics collector(1, {"mAP"}, false);
  const std::vector<float> logits = {NAN, -5, 9}, targets = {1, 0, 0}, weights = {1, 1, 0};
  collector.add(rows_of(logits, targets, weights));
  ThreadRanks::run(1, [&](RankExchange& ranks, int) { collector.finish(ranks); });
  EXPECT_DOUBLE_EQ(collector.metrics().at("mAP"), 0.5);
}

TEST(LabelMetrics, ClassWithoutSamples_IsNotANumber) {
  LabelMetrics collector(2, {"mAP", "average_precision"}, false);
  const std::vector<float> logits = {0.8F, -1, 0.4F, 0, 0.35F, -2}, targets = {1, 0, 0, 0, 1, 0};
  const std::vector<float> weights = {1, 1, 1};
  collector.add(rows_of(logits, targets, weights));
  ThreadRanks::run(1, [&](RankExchange& ranks, int) { collector.finish(ranks); });
  EXPECT_NEAR(collector.metrics().at("mAP"), 5.0 / 6, 1e-12);
  EXPECT_NEAR(collector.metrics().at("average_precision"), 5.0 / 12, 1e-12);
  EXPECT_TRUE(std::isnan(collector.fields().numbers[0].second[1]));
}

// Padding and the number of ranks change nothing of the report.
TEST(ClassMetrics, Report_IsThatOfOneRank) {
  std::vector<std::string> reports;
  for (const int world : {1, 2, 3}) {
    ThreadRanks::run(world, [&](RankExchange& ranks, int rank) {
      ClassMetrics collector(3, {}, true);
      for (int64_t n = rank; n < 60; n += world) {
        const std::vector<float> logits = {static_cast<float>(n % 7),
                                           static_cast<float>(n % 5),
                                           static_cast<float>(n % 3),
                                           9,
                                           9,
                                           9};
        const std::vector<int64_t> labels = {n % 3, 0}, samples = {n, 0};
        const std::vector<float> weights = {1, 0};
        collector.add({.size = 2,
                       .output = [&](const std::string&) { return std::span<const float>(logits); },
                       .column =
                           [&](const std::string& name) {
                             return name == "label" ? std::as_bytes(std::span(labels))
                                                    : std::as_bytes(std::span(weights));
                           },
                       .samples = samples});
      }
      collector.finish(ranks);
      if (rank != 0) return;
      std::string text = collector.report().dump();
      for (const WorstSample& sample : collector.worst_samples()) {
        text += " " + std::to_string(sample.sample);
      }
      reports.push_back(text);
      EXPECT_EQ(collector.worst_samples().size(), WorstSamples::kMost);
      EXPECT_EQ(collector.class_support(), (std::vector<int64_t>{20, 20, 20}));
    });
  }
  EXPECT_EQ(reports[1], reports[0]);
  EXPECT_EQ(reports[2], reports[0]);
}

}  // namespace
}  // namespace fleet

#include "models/average_precision.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fleet {
namespace {

using Scores = std::vector<std::pair<float, bool>>;

// sklearn.metrics.average_precision_score([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
TEST(AveragePrecision, ExampleOfScikitLearn_IsEqual) {
  EXPECT_NEAR(average_precision(Scores{{0.1f, false}, {0.4f, false}, {0.35f, true}, {0.8f, true}}),
              5.0 / 6, 1e-12);
}

// Ties count together: (1 + 0) / 2 at the only threshold, as scikit-learn says.
TEST(AveragePrecision, EqualScores_CountTogether) {
  EXPECT_DOUBLE_EQ(average_precision(Scores{{1, true}, {1, false}}), 0.5);
  EXPECT_DOUBLE_EQ(average_precision(Scores{{1, false}, {1, true}}), 0.5);
}

TEST(AveragePrecision, NoPositiveSample_IsNotANumber) {
  EXPECT_TRUE(std::isnan(average_precision(Scores{{1, false}})));
}

TEST(AveragePrecision, ScoreThatIsNotANumber_IsTheLowest) {
  EXPECT_DOUBLE_EQ(average_precision(Scores{{NAN, true}, {-5, false}}), 0.5);
}

// Two ranks with 1 and 2 samples, the second one seen through this exchange.
class TwoRanks : public RankExchange {
 public:
  explicit TwoRanks(std::vector<double> other) : other_(std::move(other)) {}
  void sum(std::span<double>) override {}
  std::vector<std::vector<double>> gather(const std::vector<double>& own) override {
    return {own, other_};
  }

 private:
  std::vector<double> other_;
};

TEST(AveragePrecisions, AllRanks_CountWithoutPadding) {
  AveragePrecisions collector(2);
  const std::vector<float> logits = {0.8f, -1, 9, 9}, targets = {1, 0, 0, 1}, weights = {1, 0};
  collector.add({.size = 2,
                 .output = [&](const std::string&) { return std::span<const float>(logits); },
                 .column =
                     [&](const std::string& name) {
                       return std::as_bytes(std::span(name == "weight" ? weights : targets));
                     }});
  TwoRanks ranks({0.4, 0, 0, 0, 0.35, -2, 1, 0});
  collector.finish(ranks);
  // Class 0: scores 0.8 (positive), 0.4, 0.35 (positive); class 1 has no positive sample.
  EXPECT_NEAR(collector.metrics().at("mAP"), 5.0 / 6, 1e-12);
  EXPECT_TRUE(std::isnan(collector.fields().numbers[0].second[1]));
}

}  // namespace
}  // namespace fleet

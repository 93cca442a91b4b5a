// AUC, log loss and calibration against scikit-learn's (scripts/make_golden_click.py, which draws
// the same cases).
#include "models/metrics_clicks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "models/click_metrics.h"
#include "tests/golden/golden.h"

namespace fleet {
namespace {

constexpr int64_t kBins = 1 << 18;

struct Samples {
  std::vector<float> logits, labels;

  ClickCounts counts(int64_t bins = kBins) const {
    ClickCounts counts = click_counts(bins);
    for (size_t n = 0; n < logits.size(); ++n) add_click(logits[n], labels[n], &counts);
    return counts;
  }
};

// 0 to 1
double draw(const std::string& name, size_t i) {
  return static_cast<double>(golden::splitmix64(golden::fnv1a(name) + i) >> 44) / (1 << 20);
}

// Ties, a narrow range, rare positives.
Samples golden_case(int i) {
  struct Kind {
    double scale, shift, threshold;
  };
  constexpr Kind kKinds[] = {
      {0.5, -3, 0.3}, {6, -3, 0.5}, {0.02, -0.01, 0.5}, {4, -5, 0.02}, {16, -8, 0.5}};
  const Kind& kind = kKinds[i % 5];
  const std::string number = std::to_string(i);
  Samples samples;
  for (size_t n = 0; n < 200 + 150 * static_cast<size_t>(i); ++n) {
    double u = draw("auc.logit" + number, n);
    if (i % 5 == 0) u = std::floor(u * 12);
    samples.logits.push_back(static_cast<float>(u * kind.scale + kind.shift));
  }
  const auto [least, most] = std::ranges::minmax(samples.logits);
  for (size_t n = 0; n < samples.logits.size(); ++n) {
    const float part = (samples.logits[n] - least) / (most - least);
    const double limit = kind.threshold * (0.5 + static_cast<double>(part));
    samples.labels.push_back(draw("auc.label" + number, n) < limit ? 1 : 0);
  }
  samples.labels[0] = 0;
  samples.labels[1] = 1;
  return samples;
}

double metric(const char* name, const ClickCounts& counts) {
  return named_metric_registry().get(name).of_clicks(counts);
}

// Ranks whose messages are added up and put together: each finish() adds one.
class Ranks : public RankExchange {
 public:
  void sum(std::span<double> values) override {
    std::vector<double>& all = sums_[next_sum_++];
    all.resize(values.size());
    for (size_t i = 0; i < values.size(); ++i) values[i] = all[i] += values[i];
  }
  std::vector<std::vector<double>> gather(const std::vector<double>& own) override {
    rows_.push_back(own);
    return rows_;
  }
  void finish(ClickMetrics* collector) {
    next_sum_ = 0;
    collector->finish(*this);
  }

 private:
  std::map<int, std::vector<double>> sums_;
  std::vector<std::vector<double>> rows_;
  int next_sum_ = 0;
};

const std::vector<std::string> kNames = {"auc", "calibration", "logloss"};

// Samples begin to end - 1, and padding.
void add(const Samples& all, size_t begin, size_t end, ClickMetrics* collector) {
  const auto from = static_cast<ptrdiff_t>(begin), to = static_cast<ptrdiff_t>(end);
  std::vector<float> logits(all.logits.begin() + from, all.logits.begin() + to);
  std::vector<float> labels(all.labels.begin() + from, all.labels.begin() + to);
  std::vector<float> weights(end - begin, 1);
  for (auto* column : {&logits, &labels, &weights}) column->resize(end - begin + 3);
  collector->add({.size = static_cast<int64_t>(logits.size()),
                  .output = [&](const std::string&) { return std::span<const float>(logits); },
                  .column =
                      [&](const std::string& name) {
                        return std::as_bytes(std::span(name == "label" ? labels : weights));
                      }});
}

TEST(ClickMetrics, RandomCases_EqualScikitLearns) {
  const auto json =
      nlohmann::json::parse(std::ifstream(source_folder() + "/tests/golden/clicks.json"));
  const auto& cases = json.at("metrics");
  ASSERT_EQ(cases.size(), 30u);
  for (int i = 0; i < static_cast<int>(cases.size()); ++i) {
    const Samples samples = golden_case(i);
    ClickMetrics collector(kNames, kBins);
    add(samples, 0, samples.logits.size(), &collector);
    Ranks().finish(&collector);
    const ClickCounts& counts = collector.counts();
    EXPECT_EQ(counts.samples, cases[i].at("samples").get<double>()) << i;
    EXPECT_EQ(counts.clicks, cases[i].at("clicks").get<double>()) << i;
    EXPECT_NEAR(metric("auc", counts), cases[i].at("auc").get<double>(), 1e-9) << i;
    EXPECT_NEAR(metric("logloss", counts), cases[i].at("logloss").get<double>(), 1e-8) << i;
    EXPECT_NEAR(metric("calibration", counts), cases[i].at("calibration").get<double>(), 1e-7) << i;
  }
}

// The histograms of many samples of rare events, against the exact value.
TEST(ClickMetrics, ManySamples_ComeFromHistograms) {
  Samples samples;
  std::vector<ScoredClick> scored;
  for (size_t n = 0; n < 300000; ++n) {
    const double z = -5 + 2 * (draw("many.a", n) + draw("many.b", n) - draw("many.c", n));
    samples.logits.push_back(static_cast<float>(z));
    samples.labels.push_back(draw("many.label", n) < 1 / (1 + std::exp(-z)) ? 1 : 0);
    scored.push_back({samples.logits.back(), samples.labels.back() > 0});
  }
  ClickMetrics collector({"auc"}, kBins);
  add(samples, 0, samples.logits.size(), &collector);
  Ranks().finish(&collector);
  EXPECT_EQ(collector.counts().positives.size(), static_cast<size_t>(kBins));
  ClickCounts exact;
  count_exactly(scored, &exact);
  EXPECT_NEAR(metric("auc", collector.counts()), metric("auc", exact), 1e-5);
  EXPECT_NE(metric("auc", collector.counts()), metric("auc", exact));
}

TEST(MetricsClicks, Ties_CountOneHalf) {
  const Samples tied{.logits = {0.3f, 0.3f, 0.3f, 0.3f}, .labels = {1, 0, 0, 1}};
  EXPECT_EQ(metric("auc", tied.counts()), 0.5);
  const Samples sorted{.logits = {-2, 0.3f, 0.3f, 5}, .labels = {0, 0, 1, 1}};
  EXPECT_EQ(metric("auc", sorted.counts()), 3.5 / 4);
}

TEST(MetricsClicks, ExtremeLogits_AreOrderedAndFinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Samples samples{.logits = {-kInfinity, -1e30f, 1e30f, kInfinity}, .labels = {0, 0, 1, 1}};
  EXPECT_EQ(metric("auc", samples.counts()), 1);
  const Samples wrong{.logits = {-100, 200}, .labels = {1, 0}};
  EXPECT_DOUBLE_EQ(metric("logloss", wrong.counts()), 150);
}

TEST(MetricsClicks, OneClass_HasNoArea) {
  const Samples negatives{.logits = {1, 2}, .labels = {0, 0}};
  EXPECT_TRUE(std::isnan(metric("auc", negatives.counts())));
  EXPECT_TRUE(std::isnan(metric("calibration", negatives.counts())));
  EXPECT_TRUE(std::isnan(metric("logloss", click_counts(4))));
}

// Two ranks with unequal parts and padding have the AUC of one rank, to the last bit: exact, or by
// few bins.
TEST(ClickMetrics, Ranks_GiveTheCountsOfOneRank) {
  const Samples all = golden_case(3);
  for (const int64_t bins : {kBins, int64_t{50}}) {
    ClickMetrics whole(kNames, bins), first(kNames, bins), second(kNames, bins);
    add(all, 0, all.logits.size(), &whole);
    add(all, 0, 100, &first);
    add(all, 100, all.logits.size(), &second);
    Ranks alone, two;
    alone.finish(&whole);
    two.finish(&first);
    two.finish(&second);
    EXPECT_EQ(second.metrics().at("auc"), whole.metrics().at("auc"));
    EXPECT_EQ(second.counts().samples, static_cast<double>(all.logits.size()));
    EXPECT_EQ(second.counts().positives, whole.counts().positives);
    for (const std::string& name : kNames) {
      EXPECT_NEAR(second.metrics().at(name), whole.metrics().at(name), 1e-12) << name;
    }
  }
}

}  // namespace
}  // namespace fleet

// Metrics of classes, scores, labels and numbers against scikit-learn's on one, two and three ranks
// (scripts/make_golden_scores.py, which draws the same cases).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "models/label_metrics.h"
#include "tests/engine/models/thread_ranks.h"
#include "tests/golden/golden.h"

namespace fleet {
namespace {

constexpr int kGoldenCases = 24;
constexpr int64_t kLargeCase = 1000;

class ScoreDraw {
 public:
  explicit ScoreDraw(const std::string& name) : at_(golden::fnv1a(name)) {}
  int64_t operator()(int64_t below) {
    return static_cast<int64_t>((golden::splitmix64(at_++) >> 11) % static_cast<uint64_t>(below));
  }
  // A whole number from -2048 to 2047, divided.
  double spread(double by) { return static_cast<double>((*this)(1 << 12) - 2048) / by; }

 private:
  uint64_t at_;
};

// Samples of `width` logits and targets, and their labels if they have one class each.
struct Case {
  int64_t width = 0;
  std::vector<int64_t> labels;
  std::vector<float> logits, targets;
  int64_t samples() const { return static_cast<int64_t>(logits.size()) / width; }
};

struct Drawn {
  int64_t classes, samples, mode;
};

Drawn shape_of(ScoreDraw& draw, int i) {
  const int64_t classes = i % 4 == 0 ? 2 : 3 + draw(4);
  return {classes, i % 8 == 1 ? kLargeCase : 20 + draw(60), i % 6};
}

Case scored_classes(int i) {
  ScoreDraw draw("scores" + std::to_string(i));
  const auto [classes, samples, mode] = shape_of(draw, i);
  Case drawn{.width = classes};
  for (int64_t n = 0; n < samples; ++n) {
    int64_t label = draw(classes);
    if (mode == 3) label = std::min(label, classes - 2);
    if (mode == 4) label = 1;
    std::vector<double> row;
    for (int64_t c = 0; c < classes; ++c) {
      row.push_back(mode == 2 ? static_cast<double>(draw(5)) - 2
                              : draw.spread(mode == 5 ? 32 : 1024));
    }
    if (draw(3) > 0) row[label] += 1;
    drawn.labels.push_back(label);
    drawn.logits.insert(drawn.logits.end(), row.begin(), row.end());
  }
  return drawn;
}

Case scored_labels(int i) {
  ScoreDraw draw("labels" + std::to_string(i));
  const auto [classes, samples, mode] = shape_of(draw, i);
  Case drawn{.width = classes};
  for (int64_t n = 0; n < samples; ++n) {
    std::vector<float> row;
    for (int64_t c = 0; c < classes; ++c) row.push_back(draw(3) == 0 ? 1.0F : 0.0F);
    if (mode == 3) row.back() = 0;
    if (mode == 4) row.assign(row.size(), 1);
    drawn.targets.insert(drawn.targets.end(), row.begin(), row.end());
    for (int64_t c = 0; c < classes; ++c) {
      const double logit = mode == 2 ? static_cast<double>(draw(5)) - 2 : draw.spread(1024);
      drawn.logits.push_back(static_cast<float>(logit + row[c]));
    }
  }
  return drawn;
}

Case scored_numbers(int i) {
  ScoreDraw draw("errors" + std::to_string(i));
  const int64_t count = 1 + draw(3), samples = 2 + draw(60), mode = i % 4;
  Case drawn{.width = count};
  const bool exact = mode == 3 || (mode == 2 && i % 8 == 2);
  for (int64_t n = 0; n < samples; ++n) {
    std::vector<double> row;
    for (int64_t t = 0; t < count; ++t) {
      row.push_back(mode == 2 ? 3.5 : static_cast<double>(draw(1 << 16)) / 1024);
    }
    drawn.targets.insert(drawn.targets.end(), row.begin(), row.end());
    for (const double target : row) {
      drawn.logits.push_back(static_cast<float>(exact ? target : target + draw.spread(512)));
    }
  }
  return drawn;
}

// The part of a rank: every world-th sample, and one of another rank that pads the batch.
void add_part(const Case& all, int rank, int world, EvaluationCollector* collector) {
  std::vector<int64_t> labels, samples;
  std::vector<float> logits, targets, weights;
  const auto add = [&](int64_t n, float weight) {
    const auto row = [&](const std::vector<float>& from, std::vector<float>* to) {
      if (from.empty()) return;
      to->insert(to->end(), from.begin() + n * all.width, from.begin() + (n + 1) * all.width);
    };
    row(all.logits, &logits);
    row(all.targets, &targets);
    if (!all.labels.empty()) labels.push_back(all.labels[n]);
    weights.push_back(weight);
    samples.push_back(n);
  };
  for (int64_t n = rank; n < all.samples(); n += world) add(n, 1);
  add((rank + 1) % world, 0);
  const auto column = [&](const std::string& name) {
    if (name == "label") return std::as_bytes(std::span(labels));
    return std::as_bytes(std::span(name == "weight" ? weights : targets));
  };
  collector->add({.size = static_cast<int64_t>(weights.size()),
                  .output = [&](const std::string&) { return std::span<const float>(logits); },
                  .column = column,
                  .samples = samples});
}

using MakeCollector = std::unique_ptr<EvaluationCollector> (*)(int64_t width,
                                                               std::vector<std::string> metrics);

// Expects these metrics on 1, 2 and 3 ranks, and the bits of one rank on all of them.
void expect_metrics(const Case& all, const nlohmann::json& wanted, const MakeCollector& make,
                    const std::string& what) {
  std::vector<std::string> names;
  for (const auto& [name, value] : wanted.items()) names.push_back(name);
  std::map<std::string, double> first;
  for (const int world : {1, 2, 3}) {
    std::vector<std::map<std::string, double>> found(world);
    ThreadRanks::run(world, [&](RankExchange& ranks, int rank) {
      const auto collector = make(all.width, names);
      add_part(all, rank, world, collector.get());
      collector->finish(ranks);
      found[rank] = collector->metrics();
    });
    if (world == 1) first = found[0];
    for (const std::string& name : names) {
      const std::string where = what + ", " + name + ", ranks: " + std::to_string(world);
      const double value = found[world - 1].at(name);
      if (wanted[name].is_null()) {
        EXPECT_TRUE(std::isnan(value)) << where << " is " << value;
        continue;
      }
      const double peer = wanted[name];
      EXPECT_NEAR(value, peer, 1e-12 * std::max(1.0, std::abs(peer))) << where;
      EXPECT_EQ(value, first.at(name)) << where;
    }
  }
}

nlohmann::json golden_scores(const std::string& kind) {
  static const auto all =
      nlohmann::json::parse(std::ifstream(source_folder() + "/tests/golden/scores.json"));
  return all.at(kind);
}

TEST(ScoresGolden, Classes_EqualScikitLearnOnAnyRanks) {
  const MakeCollector make = [](int64_t width, std::vector<std::string> metrics) {
    return std::unique_ptr<EvaluationCollector>(
        std::make_unique<ClassMetrics>(width, std::move(metrics), true));
  };
  const auto wanted = golden_scores("classes");
  ASSERT_EQ(wanted.size(), static_cast<size_t>(kGoldenCases));
  for (int i = 0; i < kGoldenCases; ++i) {
    expect_metrics(scored_classes(i), wanted[i], make, "classes " + std::to_string(i));
  }
}

TEST(ScoresGolden, Labels_EqualScikitLearnOnAnyRanks) {
  const MakeCollector make = [](int64_t width, std::vector<std::string> metrics) {
    return std::unique_ptr<EvaluationCollector>(
        std::make_unique<LabelMetrics>(width, std::move(metrics), true));
  };
  const auto wanted = golden_scores("labels");
  ASSERT_EQ(wanted.size(), static_cast<size_t>(kGoldenCases));
  for (int i = 0; i < kGoldenCases; ++i) {
    expect_metrics(scored_labels(i), wanted[i], make, "labels " + std::to_string(i));
  }
}

TEST(ScoresGolden, Numbers_EqualScikitLearnOnAnyRanks) {
  const MakeCollector make = [](int64_t width, std::vector<std::string> metrics) {
    return std::unique_ptr<EvaluationCollector>(
        std::make_unique<NumberMetrics>(width, std::move(metrics)));
  };
  const auto wanted = golden_scores("numbers");
  ASSERT_EQ(wanted.size(), static_cast<size_t>(kGoldenCases));
  for (int i = 0; i < kGoldenCases; ++i) {
    expect_metrics(scored_numbers(i), wanted[i], make, "numbers " + std::to_string(i));
  }
}

}  // namespace
}  // namespace fleet

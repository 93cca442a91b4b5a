// Metrics that a job names, and their collectors.
#include "models/named_metrics.h"

#include <gmock/gmock.h>

#include <cmath>

#include "models/answer_metrics.h"
#include "models/entity_metrics.h"
#include "models/metric_collectors.h"
#include "models/model.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;

// A task's options with these metrics, for a model of `classes` classes.
TrainingOptions options_of(MetricInput input, const std::string& metrics, int64_t classes) {
  Schema schema;
  metrics_key(&schema, input, {});
  return {.model = "mlp",
          .model_settings =
              ConfigTree::from_json(R"({"num_classes": )" + std::to_string(classes) + "}", "test")
                  .validate(model_registry().get("mlp").schema),
          .task_settings =
              ConfigTree::from_json(R"({"metrics": )" + metrics + "}", "test").validate(schema)};
}

void add(MetricInput input, const std::string& metrics, int64_t classes, MetricTable* table) {
  const TrainingOptions options = options_of(input, metrics, classes);
  add_named_metrics({options}, input, table);
}

TEST(NamedMetrics, Table_HasThemInTheirOrder) {
  MetricTable table;
  add(MetricInput::kClasses, R"(["matthews", "f1"])", 2, &table);
  ASSERT_EQ(table.metrics.size(), 2u);
  EXPECT_EQ(table.headline, "matthews");
  EXPECT_EQ(table.metrics[1].name, "f1");
  EXPECT_TRUE(table.metrics[1].collected);
}

TEST(NamedMetrics, WrongOnes_AreRefusedByName) {
  const auto refused = [](MetricInput input, const std::string& metrics, int64_t classes) {
    MetricTable table;
    return thrown_by([&] { add(input, metrics, classes, &table); });
  };
  for (const Error& error : {refused(MetricInput::kClasses, R"(["f2"])", 2),
                             refused(MetricInput::kClasses, R"(["pearson"])", 2),
                             refused(MetricInput::kNumbers, R"(["matthews"])", 2),
                             refused(MetricInput::kEntities, R"(["exact_match"])", 2),
                             refused(MetricInput::kClasses, R"(["f1"])", 3),
                             refused(MetricInput::kClasses, R"(["f1", "f1"])", 2)}) {
    EXPECT_THAT(error, IsUsageError("train.metrics"));
  }
}

TEST(NamedMetrics, EachName_HasHelpAndAnInput) {
  for (const std::string& name : named_metric_registry().names()) {
    const NamedMetric& metric = named_metric_registry().get(name);
    EXPECT_FALSE(metric.help.empty()) << name;
    EXPECT_TRUE(metric.takes(MetricInput::kClasses) || metric.takes(MetricInput::kNumbers) ||
                metric.takes(MetricInput::kEntities) || metric.takes(MetricInput::kAnswers) ||
                metric.takes(MetricInput::kClicks))
        << name;
  }
}

// Ranks that meet in one thread: each finish() gets what all ranks gave in this round.
class Meeting : public RankExchange {
 public:
  explicit Meeting(std::vector<std::vector<double>> all) : all_(std::move(all)) {}
  void sum(std::span<double> values) override {
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = 0;
      for (const auto& rank : all_) values[i] += rank[i];
    }
  }
  std::vector<std::vector<double>> gather(const std::vector<double>&) override { return all_; }

 private:
  std::vector<std::vector<double>> all_;
};

// One rank alone.
class Alone : public RankExchange {
 public:
  void sum(std::span<double>) override {}
  std::vector<std::vector<double>> gather(const std::vector<double>& own) override { return {own}; }
};

struct Columns {
  std::map<std::string, std::vector<float>> outputs, numbers;
  std::map<std::string, std::vector<int64_t>> integers;
  std::vector<std::string> class_names;
  std::function<std::vector<std::string>(int64_t, const std::string&)> texts;
  EvaluationCollector::Rows rows(int64_t size) const {
    return {.size = size,
            .output = [this](const std::string& name) -> std::span<const float> {
              return outputs.at(name);
            },
            .column =
                [this](const std::string& name) {
                  const auto found = numbers.find(name);
                  return found == numbers.end() ? std::as_bytes(std::span(integers.at(name)))
                                                : std::as_bytes(std::span(found->second));
                },
            .class_names = class_names,
            .texts = texts};
  }
};

TEST(ClassMetrics, Batch_CountsWithoutPadding) {
  ClassMetrics collector(2, {"accuracy", "f1"}, false);
  const Columns columns{.outputs = {{"logits", {0, 1, 1, 0, 0, 1, 0, 1}}},
                        .numbers = {{"weight", {1, 1, 1, 0}}},
                        .integers = {{"label", {1, 1, 0, 0}}}};
  collector.add(columns.rows(4));
  Alone alone;
  collector.finish(alone);
  EXPECT_DOUBLE_EQ(collector.metrics().at("accuracy"), 1.0 / 3);
  EXPECT_DOUBLE_EQ(collector.metrics().at("f1"), 0.5);
  EXPECT_EQ(collector.csv({}), "");
}

// The order of the ranks does not change a bit.
TEST(NumberMetrics, Ranks_GiveTheBitsOfOneRank) {
  const std::vector<double> first = {0.1, 0.7, 3.3, 0.2}, second = {1e8, 5, -0.3, 0.9, 2, 2.5};
  std::vector<std::vector<double>> orders = {first, second};
  std::vector<double> values;
  for (int order = 0; order < 3; ++order) {
    if (order == 1) std::swap(orders[0], orders[1]);
    if (order == 2) {
      orders[0].insert(orders[0].end(), orders[1].begin(), orders[1].end());
      orders.pop_back();
    }
    NumberMetrics collector(1, {"pearson", "spearman"});
    Meeting ranks(orders);
    collector.finish(ranks);
    values.push_back(collector.metrics().at("pearson"));
    EXPECT_DOUBLE_EQ(collector.metrics().at("spearman"), 0.3);
  }
  EXPECT_EQ(values[0], values[1]);
  EXPECT_EQ(values[0], values[2]);
}

TEST(NumberMetrics, SeveralTargets_AreAveraged) {
  NumberMetrics collector(2, {"pearson"});
  const Columns columns{.outputs = {{"logits", {1, 3, 2, 2, 3, 1}}},
                        .numbers = {{"targets", {1, 1, 2, 2, 3, 3}}, {"weight", {1, 1, 1}}}};
  collector.add(columns.rows(3));
  Alone alone;
  collector.finish(alone);
  EXPECT_NEAR(collector.metrics().at("pearson"), 0, 1e-15);  // 1 and -1
}

// A text of two parts, whose entity goes over the cut, in the wrong order.
TEST(EntityMetrics, PartsOfAText_AreJoined) {
  EntityMetrics collector({"entity_f1", "accuracy"});
  const std::vector<float> logits = {0, 0, 1, /**/ 1, 0, 0, /**/ 9, 9, 9,   // I-PER O .
                                     1, 0, 0, /**/ 0, 1, 0, /**/ 0, 1, 0};  // O B-PER B-PER
  const Columns columns{
      .outputs = {{"token_logits", logits}},
      .numbers = {{"weight", {1, 1}}},
      .integers = {{"token_labels", {2, 0, -100, 0, 1, 2}}, {"text", {5, 5}}, {"part", {1, 0}}},
      .class_names = {"O", "B-PER", "I-PER"}};
  collector.add(columns.rows(2));
  Alone alone;
  collector.finish(alone);
  // Right: O B I I O; predicted: O B B I O.
  EXPECT_EQ(collector.counts().expected, 1);
  EXPECT_EQ(collector.counts().predicted, 2);
  EXPECT_EQ(collector.counts().correct, 0);
  EXPECT_DOUBLE_EQ(collector.metrics().at("accuracy"), 0.8);
  EntityMetrics unnamed({"entity_f1"});
  Columns without = columns;
  without.class_names.clear();
  EXPECT_THAT(thrown_by([&] { unnamed.add(without.rows(2)); }), IsUsageError("data.class_names"));
}

TEST(BestAnswer, Spans_AreOrderedShortAndInTheContext) {
  const std::vector<float> starts = {9, 1, 5, 0, 4}, ends = {9, 0, 1, 5, 2};
  const std::vector<uint8_t> in_context = {0, 1, 1, 1, 1};
  EXPECT_EQ(best_answer(starts, ends, in_context, {}), (AnswerSpan{10, 2, 3}));
  EXPECT_EQ(best_answer(starts, ends, in_context, {.longest = 1}), (AnswerSpan{6, 2, 2}));
  // The best start is no candidate's partner: the best two of each are tokens 0 and 2, 0 and 3.
  EXPECT_EQ(best_answer(starts, ends, in_context, {.candidates = 2}), (AnswerSpan{10, 2, 3}));
  EXPECT_EQ(best_answer(starts, ends, in_context, {.candidates = 1}).last, -1);
}

// Two windows of a question: the second one has the better answer, the first the lower null score.
Columns two_windows() {
  return {.outputs = {{"span_logits", {1, 1, 2, 0, 0, 2, /**/ 3, 3, 4, 0, 0, 4}}},
          .numbers = {{"weight", {1, 1}}},
          .integers = {{"question", {7, 7}},
                       {"part", {0, 1}},
                       {"token_begin", {-1, 0, 4, -1, 4, 8}},
                       {"token_end", {-1, 3, 7, -1, 7, 11}}},
          .class_names = {},
          .texts = [](int64_t, const std::string& what) -> std::vector<std::string> {
            if (what == "context") return {"one two six"};
            return {"Two six.", "six"};
          }};
}

TEST(AnswerMetrics, WindowsOfAQuestion_GiveOneAnswer) {
  AnswerMetrics collector({"exact_match", "f1"}, {});
  const Columns columns = two_windows();
  collector.add(columns.rows(2));
  Alone alone;
  collector.finish(alone);
  EXPECT_EQ(collector.sums().questions, 1);
  EXPECT_EQ(collector.metrics().at("exact_match"), 1);  // "two six"
  EXPECT_EQ(collector.metrics().at("f1"), 1);
}

// The null score is 2, the best answer's 8.
TEST(AnswerMetrics, NoAnswer_NeedsABetterScore) {
  for (const double threshold : {0.0, -7.0}) {
    AnswerMetrics collector({"exact_match"}, {.may_have_none = true, .none_threshold = threshold});
    const Columns columns = two_windows();
    collector.add(columns.rows(2));
    Alone alone;
    collector.finish(alone);
    EXPECT_EQ(collector.metrics().at("exact_match"), threshold == 0 ? 1 : 0);
  }
}

}  // namespace
}  // namespace fleet

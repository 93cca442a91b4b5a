#include "ps/tables/table_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/engine/ps/tables/some_table.h"
#include "tests/errors.h"

namespace fleet::ps {
namespace {

constexpr int kDim = 7;

// The formulas in double, one value at a time.
struct Reference {
  std::string rule;
  double rate;
  std::vector<double> values, first = std::vector<double>(kDim), second = first;
  double sum = 0, power1 = 0.9, power2 = 0.999;

  void update(const std::vector<float>& gradient, double shows) {
    double squares = 0;
    for (size_t i = 0; i < kDim; ++i) {
      const double g = gradient[i], scaled = g / shows;
      double step = 0;
      if (rule == "naive") step = rate * g;
      if (rule == "adagrad") step = rate * scaled * std::sqrt(3 / (3 + sum));
      if (rule == "std_adagrad") {
        step = rate * scaled * std::sqrt(3 / (3 + second[i]));
        second[i] += scaled * scaled;
      }
      if (rule == "dense_adagrad") {
        second[i] += g * g;
        step = rate * g / std::sqrt(second[i]);
      }
      if (rule == "adam") {
        first[i] = 0.9 * first[i] + 0.1 * g;
        second[i] = 0.999 * second[i] + 0.001 * g * g;
        step =
            rate * std::sqrt(1 - power2) / (1 - power1) * first[i] / (std::sqrt(second[i]) + 1e-8);
      }
      squares += scaled * scaled;
      values[i] = std::clamp(values[i] - step, -10.0, 10.0);
    }
    sum += squares / kDim;
    power1 *= 0.9;
    power2 *= 0.999;
  }
};

class EachTableRule : public ::testing::TestWithParam<const char*> {};

TEST_P(EachTableRule, Updates_FollowTheFormulaInDouble) {
  const std::string name = GetParam();
  SparseTable table(some_settings("'dim': 7, 'rule': {'name': '" + name +
                                  "'}, 'initializer': {'name': 'normal', 'deviation': 1}"));
  const std::vector<uint64_t> ids = {5};
  const std::vector<float> start = pulled(table, ids);
  Reference reference{.rule = name,
                      .rate = make_table_rule(table.settings().rule)->learning_rate(),
                      .values = std::vector<double>(start.begin(), start.end())};
  std::mt19937_64 random(1);
  for (int step = 0; step < 40; ++step) {
    const std::vector<float> gradient = random_floats(kDim, random);
    const float shows = static_cast<float>(1 + step % 3);
    table.push(ids, gradient, {.shows = {&shows, 1}});
    reference.update(gradient, shows);
  }
  const std::vector<float> rows = pulled(table, ids);
  for (size_t i = 0; i < kDim; ++i) {
    EXPECT_NEAR(rows[i], reference.values[i], 2e-6 * (1 + std::abs(reference.values[i])));
    EXPECT_GT(std::abs(rows[i] - start[i]), 1e-4);
  }
}

TEST_P(EachTableRule, LearningRateOfAPush_ReplacesTheSettings) {
  SparseTable table(some_settings(std::string("'dim': 2, 'rule': {'name': '") + GetParam() + "'}"));
  const std::vector<uint64_t> ids = {1};
  const std::vector<float> start = pulled(table, ids);
  table.push(ids, std::vector<float>{1, 1}, {.learning_rate = 0});
  EXPECT_EQ(pulled(table, ids), start);
  table.push(ids, std::vector<float>{1, 1}, {.learning_rate = 0.5});
  EXPECT_LT(pulled(table, ids)[0], start[0] - 0.01f);
}

TEST_P(EachTableRule, Values_StayWithinTheBounds) {
  SparseTable table(some_settings(std::string("'dim': 2, 'rule': {'name': '") + GetParam() +
                                  "', 'low': -0.25, 'high': 0.5, 'learning_rate': 100}"));
  const std::vector<uint64_t> ids = {1};
  table.push(ids, std::vector<float>{1, -1});
  EXPECT_EQ(pulled(table, ids), (std::vector<float>{-0.25f, 0.5f}));
}

INSTANTIATE_TEST_SUITE_P(All, EachTableRule,
                         ::testing::Values("naive", "adagrad", "std_adagrad", "adam",
                                           "dense_adagrad"),
                         [](const auto& test) { return std::string(test.param); });

TEST(TableRule, States_AreThoseOfTheRule) {
  const auto states = [](const std::string& name) {
    return some_settings("'dim': 16, 'rule': {'name': '" + name + "'}").layout().states;
  };
  EXPECT_EQ(states("naive"), 0);
  EXPECT_EQ(states("adagrad"), 1);
  EXPECT_EQ(states("std_adagrad"), 16);
  EXPECT_EQ(states("adam"), 34);
  EXPECT_EQ(states("dense_adagrad"), 16);
}

TEST(TableRule, UnknownRule_IsRefused) {
  EXPECT_THAT(thrown_by([] { some_settings("'rule': {'name': 'adagrat'}"); }), IsUsageError());
}

}  // namespace
}  // namespace fleet::ps

// label_distribution, and hardmax, which also makes rows of a label.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

CheckInput labels(Values values) {
  return {.shape = {static_cast<int64_t>(values.size())},
          .values = std::move(values),
          .dtype = DType::kInt64,
          .differentiate = false};
}

TEST(LabelDistribution, OneLabel_IsSmoothed) {
  check_op({.type = "label_distribution",
            .attributes = {{"classes", int64_t{4}}, {"label_smoothing", 0.2}},
            .inputs = {labels({2, -100, 0})},
            .reference =
                [](const std::vector<Values>&) {
                  return std::vector<Values>{
                      {0.05, 0.05, 0.85, 0.05, 0, 0, 0, 0, 0.85, 0.05, 0.05, 0.05}, {1, 0, 1}};
                },
            .check_gradient = false});
}

TEST(LabelDistribution, TwoLabels_HaveTheirShares) {
  check_op({.type = "label_distribution",
            .attributes = {{"classes", int64_t{3}}, {"ignore_index", int64_t{-1}}},
            .inputs = {labels({0, 1, 2, -1}),
                       labels({1, 1, -1, -1}),
                       {.shape = {4},
                        .values = {0.75, 0.5, 0.25, 0.5},
                        .dtype = DType::kFloat32,
                        .differentiate = false}},
            .reference =
                [](const std::vector<Values>&) {
                  return std::vector<Values>{{0.75, 0.25, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0},
                                             {1, 1, 0.25, 0}};
                },
            .check_gradient = false});
}

TEST(Hardmax, FirstOfEqual_IsOne) {
  check_op({.type = "hardmax",
            .inputs = {{.shape = {3, 3}, .values = {1, 3, 2, -5, -5, -7, 0, 0, 0}}},
            .reference =
                [](const std::vector<Values>&) {
                  return std::vector<Values>{{0, 1, 0, 1, 0, 0, 1, 0, 0}};
                },
            .check_gradient = false});
  check_op({.type = "hardmax",
            .inputs = {{.shape = {2, 1200}}},
            .reference =
                [](const std::vector<Values>& in) {
                  Values rows(2400);
                  for (const int n : {0, 1}) {
                    const auto begin = in[0].begin() + n * 1200;
                    rows[std::max_element(begin, begin + 1200) - in[0].begin()] = 1;
                  }
                  return std::vector<Values>{rows};
                },
            .check_gradient = false});
}

}  // namespace
}  // namespace fleet

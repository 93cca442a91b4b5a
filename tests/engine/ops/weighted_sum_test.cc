#include <gtest/gtest.h>

#include <cmath>

#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

TEST(WeightedSum, Weights_PaddedSamplesDoNotCount) {
  check_op({.type = "weighted_sum",
            .inputs = {{.shape = {4}, .values = {1, 2, NAN, 8}},
                       {.shape = {4}, .values = {1, 1, 0, 0.5}, .dtype = DType::kFloat32}},
            .reference =
                [](const std::vector<Values>&) {
                  return std::vector<Values>{{7, 2.5}};
                },
            .tolerance = 0,
            .check_gradient = false});
}

}  // namespace
}  // namespace fleet

#include <gtest/gtest.h>

#include <cmath>

#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

OpCheck check_of_add_layer_norm(const Shape& shape, bool has_bias = true) {
  const int64_t size = shape[shape.rank() - 1];
  CheckInput scale{.shape = {size},
                   .dtype = DType::kFloat32,
                   .kind = VarKind::kParameter,
                   .low = 0.5,
                   .high = 2};
  CheckInput bias{
      .shape = {size}, .dtype = DType::kFloat32, .kind = VarKind::kParameter, .present = has_bias};
  return {.type = "add_layer_norm",
          .attributes = {{"epsilon", 1e-3}},
          .inputs = {{.shape = shape, .low = -1, .high = 1},
                     {.shape = shape, .low = -1, .high = 2},
                     scale,
                     bias},
          .reference = [size, has_bias](const std::vector<Values>& in) {
            Values sum = in[0], y(in[0].size());
            for (size_t i = 0; i < sum.size(); ++i) sum[i] += in[1][i];
            for (size_t at = 0; at < sum.size(); at += size) {
              double mean = 0, variance = 0;
              for (int64_t i = 0; i < size; ++i) mean += sum[at + i] / static_cast<double>(size);
              for (int64_t i = 0; i < size; ++i) {
                variance += std::pow(sum[at + i] - mean, 2) / static_cast<double>(size);
              }
              for (int64_t i = 0; i < size; ++i) {
                y[at + i] = (sum[at + i] - mean) / std::sqrt(variance + 1e-3) * in[2][i] +
                            (has_bias ? in[3][i] : 0);
              }
            }
            return std::vector<Values>{y, sum};
          }};
}

TEST(AddLayerNorm, BothOutputs_MatchReference) {
  check_op(check_of_add_layer_norm({5, 13}));
  check_op(check_of_add_layer_norm({2, 3, 16}));
}

TEST(AddLayerNorm, WithoutBias_MatchesReference) {
  check_op(check_of_add_layer_norm({4, 8}, /*has_bias=*/false));
}

TEST(AddLayerNorm, ManyRows_MatchReference) { check_op(check_of_add_layer_norm({70, 16})); }

TEST(AddLayerNorm, OtherShapes_AreRefused) {
  OpCheck wrong = check_of_add_layer_norm({4, 8});
  wrong.inputs[1].shape = {8, 4};
  EXPECT_THROW(check_op(wrong), Error);
}

}  // namespace
}  // namespace fleet

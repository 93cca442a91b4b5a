#include <gtest/gtest.h>

#include <cmath>

#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

struct LayerNormCase {
  Shape x;
  int64_t axis = 1;
  double epsilon = 1e-3;
  bool scale = true, bias = true;
  double low = -2, high = 3;
};

std::vector<Values> naive_layer_norm(const LayerNormCase& c, const std::vector<Values>& in) {
  int64_t rows = 1;
  for (int d = 0; d < c.axis; ++d) rows *= c.x[d];
  const int64_t size = c.x.elements() / rows;
  Values y(in[0].size()), means, variances;
  for (int64_t r = 0; r < rows; ++r) {
    const double* x = &in[0][r * size];
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < size; ++i) mean += x[i] / static_cast<double>(size);
    for (int64_t i = 0; i < size; ++i) {
      variance += (x[i] - mean) * (x[i] - mean) / static_cast<double>(size);
    }
    for (int64_t i = 0; i < size; ++i) {
      y[r * size + i] = (x[i] - mean) / std::sqrt(variance + c.epsilon);
      if (c.scale) y[r * size + i] *= in[1][i];
      if (c.bias) y[r * size + i] += in[2][i];
    }
    means.push_back(mean);
    variances.push_back(variance);
  }
  return {y, means, variances};
}

OpCheck check_of_layer_norm(const LayerNormCase& c) {
  int64_t size = 1;
  for (int d = static_cast<int>(c.axis); d < c.x.rank(); ++d) size *= c.x[d];
  return {.type = "layer_norm",
          .attributes = {{"epsilon", c.epsilon}, {"begin_norm_axis", c.axis}},
          .inputs = {{.shape = c.x, .low = c.low, .high = c.high},
                     {.shape = {size},
                      .dtype = DType::kFloat32,
                      .kind = VarKind::kParameter,
                      .present = c.scale,
                      .low = 0.5,
                      .high = 2},
                     {.shape = {size},
                      .dtype = DType::kFloat32,
                      .kind = VarKind::kParameter,
                      .present = c.bias}},
          .reference = [=](const std::vector<Values>& in) { return naive_layer_norm(c, in); }};
}

// The statistics are outputs that are not differentiable: gradients are checked of y alone.
void check_layer_norm(const LayerNormCase& c, bool gradients = true) {
  SCOPED_TRACE(c.x.text());
  OpCheck statistics = check_of_layer_norm(c);
  statistics.check_gradient = false;
  check_op(statistics);
  if (!gradients) return;
  OpCheck values = check_of_layer_norm(c);
  values.reference = [=](const std::vector<Values>& in) {
    return std::vector<Values>{naive_layer_norm(c, in)[0]};
  };
  check_op(values);
}

TEST(LayerNorm, Rows_MatchReference) { check_layer_norm({.x = {5, 13}}); }

TEST(LayerNorm, LaterAxis_NormalisesWhatIsBehindIt) {
  check_layer_norm({.x = {2, 3, 4, 5}, .axis = 2});
}

TEST(LayerNorm, WithoutScaleOrBias_MatchesReference) {
  check_layer_norm({.x = {4, 9}, .scale = false});
  check_layer_norm({.x = {4, 9}, .bias = false});
  check_layer_norm({.x = {4, 9}, .scale = false, .bias = false});
}

TEST(LayerNorm, LongRowsAndManyRows_MatchReference) {
  check_layer_norm({.x = {3, 1500}}, /*gradients=*/false);
  check_layer_norm({.x = {700, 24}}, /*gradients=*/false);
}

// Sizes for which a GPU's warp has whole rows: one, some and all of a lane's packs, over several
// blocks of rows.
TEST(LayerNorm, GradientsInOnePass_MatchReference) {
  check_layer_norm({.x = {67, 16}});
  check_layer_norm({.x = {3, 264}});
  check_layer_norm({.x = {2, 1024}, .scale = false});
}

TEST(LayerNorm, RowsFarFromZero_KeepTheirDigits) {
  OpCheck far = check_of_layer_norm({.x = {4, 64}, .low = 100, .high = 101});
  for (CheckInput& input : far.inputs) input.dtype = DType::kFloat32;
  far.tolerance = 1e-4;
  far.check_gradient = false;
  check_op(far);
}

TEST(LayerNorm, ScaleThatDoesNotFit_IsRefused) {
  OpCheck wrong = check_of_layer_norm({.x = {4, 9}});
  wrong.inputs[1].shape = {8};
  wrong.reference = [](const std::vector<Values>& in) { return std::vector<Values>{in[0]}; };
  EXPECT_THROW(check_op(wrong), Error);
}

}  // namespace
}  // namespace fleet

#include <gtest/gtest.h>

#include <cmath>

#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

constexpr double kRmsEpsilon = 1e-3;

// y and 1 / sqrt(...) of rows.
std::vector<Values> naive_rms_norm(const Values& x, const Values& scale) {
  Values y(x.size()), rstd;
  const size_t size = scale.size();
  for (size_t row = 0; row < x.size() / size; ++row) {
    double squares = 0;
    for (size_t i = 0; i < size; ++i) squares += x[row * size + i] * x[row * size + i];
    rstd.push_back(1 / std::sqrt(squares / static_cast<double>(size) + kRmsEpsilon));
    for (size_t i = 0; i < size; ++i) {
      y[row * size + i] = x[row * size + i] * rstd.back() * scale[i];
    }
  }
  return {y, rstd};
}

CheckInput rms_scale(int64_t size) {
  return {.shape = {size},
          .dtype = DType::kFloat32,
          .kind = VarKind::kParameter,
          .low = 0.5,
          .high = 2};
}

OpCheck check_of_rms_norm(const Shape& shape) {
  return {.type = "rms_norm",
          .attributes = {{"epsilon", kRmsEpsilon}},
          .inputs = {{.shape = shape, .low = -2, .high = 3}, rms_scale(shape[shape.rank() - 1])},
          .reference = [](const std::vector<Values>& in) {
            return std::vector<Values>{naive_rms_norm(in[0], in[1])[0]};
          }};
}

TEST(RmsNorm, Rows_MatchReference) {
  check_op(check_of_rms_norm({5, 13}));
  check_op(check_of_rms_norm({2, 3, 4, 16}));
}

TEST(RmsNorm, SavedRstd_IsTheRows) {
  OpCheck statistics = check_of_rms_norm({4, 8});
  statistics.check_gradient = false;
  statistics.reference = [](const std::vector<Values>& in) { return naive_rms_norm(in[0], in[1]); };
  check_op(statistics);
}

TEST(RmsNorm, LongRowsAndManyRows_MatchReference) {
  OpCheck rows = check_of_rms_norm({3, 1500});
  rows.check_gradient = false;
  check_op(rows);
  check_op(check_of_rms_norm({70, 4}));  // more rows than parts of the scale's gradient
}

OpCheck check_of_add_rms_norm(const Shape& shape) {
  return {.type = "add_rms_norm",
          .attributes = {{"epsilon", kRmsEpsilon}},
          .inputs = {{.shape = shape, .low = -1, .high = 1},
                     {.shape = shape, .low = -1, .high = 2},
                     rms_scale(shape[shape.rank() - 1])},
          .reference = [](const std::vector<Values>& in) {
            Values sum = in[0];
            for (size_t i = 0; i < sum.size(); ++i) sum[i] += in[1][i];
            return std::vector<Values>{naive_rms_norm(sum, in[2])[0], sum};
          }};
}

TEST(AddRmsNorm, BothOutputs_MatchReference) {
  check_op(check_of_add_rms_norm({5, 13}));
  check_op(check_of_add_rms_norm({2, 3, 16}));
}

TEST(AddRmsNorm, OneOutputReachesTheLoss_HasItsGradient) {
  for (const size_t other : {0, 1}) {
    OpCheck check = check_of_add_rms_norm({5, 8});
    check.reference = [all = check.reference, other](const std::vector<Values>& in) {
      std::vector<Values> outputs = all(in);
      outputs[other].clear();
      return outputs;
    };
    if (other == 0) check.inputs[2].differentiate = false;  // the sum does not depend on it
    check_op(check);
  }
}

TEST(AddRmsNorm, OneSummandNeedsAGradient_HasIt) {
  for (const size_t constant : {0, 1}) {
    OpCheck check = check_of_add_rms_norm({5, 8});
    check.inputs[constant].differentiate = false;
    check_op(check);
  }
}

TEST(RmsNorm, ScaleThatDoesNotFit_IsRefused) {
  OpCheck wrong = check_of_rms_norm({4, 9});
  wrong.inputs[1].shape = {8};
  wrong.reference = [](const std::vector<Values>& in) { return std::vector<Values>{in[0]}; };
  EXPECT_THROW(check_op(wrong), Error);
  OpCheck other = check_of_add_rms_norm({4, 8});
  other.inputs[1].shape = {3, 8};
  other.reference = [](const std::vector<Values>& in) { return std::vector<Values>{in[0], in[0]}; };
  EXPECT_THROW(check_op(other), Error);
}

}  // namespace
}  // namespace fleet

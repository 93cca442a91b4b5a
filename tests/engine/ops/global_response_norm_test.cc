#include <gtest/gtest.h>

#include <cmath>

#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

constexpr double kResponseEpsilon = 1e-3;

// y and the norms of each sample's channels.
std::vector<Values> naive_response_norm(const Shape& shape, const std::vector<Values>& in) {
  const int64_t channels = shape[shape.rank() - 1], size = shape.elements() / shape[0];
  Values y = in[0], norms(shape[0] * channels);
  for (size_t i = 0; i < y.size(); ++i) {
    norms[i / size * channels + i % channels] += in[0][i] * in[0][i];
  }
  for (double& norm : norms) norm = std::sqrt(norm);
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t sample = i / size, c = i % channels;
    double mean = kResponseEpsilon;
    for (int64_t k = 0; k < channels; ++k) mean += norms[sample * channels + k] / channels;
    y[i] += in[1][c] * in[0][i] * norms[sample * channels + c] / mean + in[2][c];
  }
  return {y, norms};
}

OpCheck check_of_response_norm(const Shape& shape) {
  const Shape channels = {shape[shape.rank() - 1]};
  const CheckInput parameter{
      .shape = channels, .dtype = DType::kFloat32, .kind = VarKind::kParameter};
  return {.type = "global_response_norm",
          .attributes = {{"epsilon", kResponseEpsilon}},
          .inputs = {{.shape = shape, .low = -2, .high = 3}, parameter, parameter},
          .reference = [=](const std::vector<Values>& in) {
            return std::vector<Values>{naive_response_norm(shape, in)[0]};
          }};
}

TEST(GlobalResponseNorm, Images_MatchReference) {
  check_op(check_of_response_norm({2, 3, 2, 5}));
  check_op(check_of_response_norm({3, 1, 4, 16}));
  check_op(check_of_response_norm({2, 7, 33}));  // positions of one axis, a channel left over
}

TEST(GlobalResponseNorm, ManyChannelsAndPositions_MatchReference) {
  OpCheck large = check_of_response_norm({2, 9, 5, 300});
  large.check_gradient = false;
  check_op(large);
}

TEST(GlobalResponseNorm, SavedNorms_AreThoseOfTheChannels) {
  OpCheck check = check_of_response_norm({2, 3, 3, 4});
  check.check_gradient = false;
  check.reference = [](const std::vector<Values>& in) {
    return naive_response_norm({2, 3, 3, 4}, in);
  };
  check_op(check);
}

TEST(GlobalResponseNorm, ChannelOfZeros_StaysAtItsBias) {
  OpCheck check = check_of_response_norm({1, 2, 3});
  check.check_gradient = false;
  check.inputs[0].values = {1, 0, 2, 3, 0, -1};
  check_op(check);
}

TEST(GlobalResponseNorm, OneInputIsConstant_TheOthersHaveTheirGradient) {
  for (const size_t constant : {0, 1, 2}) {
    OpCheck check = check_of_response_norm({2, 4, 6});
    check.inputs[constant].differentiate = false;
    check_op(check);
  }
}

TEST(GlobalResponseNorm, ScaleThatDoesNotFit_IsRefused) {
  OpCheck wrong = check_of_response_norm({2, 4, 6});
  wrong.inputs[1].shape = {5};
  wrong.reference = [](const std::vector<Values>& in) { return std::vector<Values>{in[0]}; };
  EXPECT_THROW(check_op(wrong), Error);
}

}  // namespace
}  // namespace fleet

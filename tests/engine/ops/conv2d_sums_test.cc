// There are only cuda kernels: on the CPU these tests are skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/engine/ops/naive_convolution.h"
#include "tests/engine/ops/op_check.h"
#include "tests/engine/ops/op_device.h"

namespace fleet {
namespace {

class Conv2dSums : public testing::Test {
 protected:
  void SetUp() override {
    if (op_device().backend() != "cuda") GTEST_SKIP() << "no kernel on " << op_device().name();
  }
};

CheckInput channels(int64_t count, double low = -1, double high = 1) {
  return {.shape = {count}, .dtype = DType::kFloat32, .low = low, .high = high};
}

double channel(const Shape& image, const Values& values, size_t element) {
  return values[element / (image[2] * image[3]) % image[1]];
}

Values transformed(const Shape& shape, const Values& x, const Values& factor,
                   const Values& constant) {
  Values y = x;
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = std::max(0.0, channel(shape, factor, i) * x[i] + channel(shape, constant, i));
  }
  return y;
}

std::vector<Values> sums_of(const Shape& shape, const Values& y) {
  std::vector<Values> sums(2, Values(shape[1]));
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t c = i / (shape[2] * shape[3]) % shape[1];
    sums[0][c] += y[i];
    sums[1][c] += y[i] * y[i];
  }
  return sums;
}

void check_sums(const Shape& x, const Shape& weight, const Shape& y, int64_t stride,
                bool transforms) {
  const std::vector<int64_t> strides = {stride, stride}, paddings = {weight[2] / 2, weight[3] / 2};
  check_op({.type = "conv2d_sums",
            .attributes = {{"strides", strides}, {"paddings", paddings}},
            .inputs = {{.shape = x},
                       {.shape = weight, .kind = VarKind::kParameter},
                       {.shape = {x[1]}, .present = transforms},
                       {.shape = {x[1]}, .present = transforms}},
            .reference =
                [=](const std::vector<Values>& in) {
                  const Values image = transforms ? transformed(x, in[0], in[2], in[3]) : in[0];
                  const Values result = naive_convolution({x, weight, strides, paddings, {1, 1}, 1},
                                                          image, in[1], {});
                  const std::vector<Values> sums = sums_of(y, result);
                  return std::vector<Values>{result, sums[0], sums[1]};
                },
            .check_gradient = false});
}

TEST_F(Conv2dSums, WithoutTransformation_MatchesReference) {
  check_sums({2, 16, 6, 5}, {24, 16, 3, 3}, {2, 24, 6, 5}, 1, false);
  check_sums({2, 3, 9, 9}, {16, 3, 3, 3}, {2, 16, 5, 5}, 2, false);
}

TEST_F(Conv2dSums, WithTransformation_MatchesReference) {
  check_sums({2, 16, 6, 5}, {24, 16, 3, 3}, {2, 24, 6, 5}, 1, true);
  check_sums({2, 24, 7, 7}, {8, 24, 1, 1}, {2, 8, 4, 4}, 2, true);
}

// Values that no rounding of `normal` brings to the other side of zero.
double away_from_zero(double value) { return value + (value < 0 ? -0.2 : 0.2); }

TEST_F(Conv2dSums, ReluNormGradient_MatchesReference) {
  const Shape x{2, 8, 5, 4}, weight{16, 8, 1, 1}, y{2, 16, 5, 4};
  CheckInput mean = channels(8), inverse = channels(8), scale = channels(8), bias = channels(8);
  mean.values = {0.25, -0.5, 0.125, 0, -0.25, 0.5, -0.125, 0.75};
  inverse.values = {1, 2, 0.5, 1.5, 1, 2, 0.5, 1.5};
  scale.values = {1, 0.5, -1, 2, 1.5, -0.5, 1, 0.75};
  bias.values = {-0.25, 0.5, 0, -0.125, 0.25, -0.5, 0.125, 0.375};
  Values image(x.elements());
  for (size_t i = 0; i < image.size(); ++i) {
    const size_t c = i / 20 % 8;
    const double z = away_from_zero(std::sin(static_cast<double>(i)));
    image[i] = mean.values[c] + (z - bias.values[c]) / (scale.values[c] * inverse.values[c]);
  }
  check_op({.type = "conv2d_relu_norm_grad",
            .inputs = {{.shape = weight, .kind = VarKind::kParameter},
                       {.shape = y},
                       {.shape = x, .values = image},
                       mean,
                       inverse,
                       scale,
                       bias},
            .reference =
                [=](const std::vector<Values>& in) {
                  std::vector<Values> out = {Values(x.elements()), Values(8), Values(8)};
                  for (int64_t n = 0; n < 2; ++n) {
                    for (int64_t c = 0; c < 8; ++c) {
                      for (int64_t s = 0; s < 20; ++s) {
                        const int64_t at = (n * 8 + c) * 20 + s;
                        const double normal = (in[2][at] - in[3][c]) * in[4][c];
                        if (normal * in[5][c] + in[6][c] <= 0) continue;
                        for (int64_t k = 0; k < 16; ++k) {
                          out[0][at] += in[0][k * 8 + c] * in[1][(n * 16 + k) * 20 + s];
                        }
                        out[1][c] += out[0][at] * normal;
                        out[2][c] += out[0][at];
                      }
                    }
                  }
                  return out;
                },
            .check_gradient = false});
}

TEST_F(Conv2dSums, WeightGradient_MatchesReference) {
  const Shape x{2, 8, 4, 3}, y{2, 16, 4, 3};
  check_op({.type = "conv2d_sums_weight_grad",
            .inputs = {{.shape = x}, {.shape = y}, {.shape = {8}}, {.shape = {8}}},
            .reference =
                [=](const std::vector<Values>& in) {
                  const Values image = transformed(x, in[0], in[2], in[3]);
                  Values dweight(16 * 8);
                  for (int64_t n = 0; n < 2; ++n) {
                    for (int64_t k = 0; k < 16; ++k) {
                      for (int64_t c = 0; c < 8; ++c) {
                        for (int64_t s = 0; s < 12; ++s) {
                          dweight[k * 8 + c] +=
                              in[1][(n * 16 + k) * 12 + s] * image[(n * 8 + c) * 12 + s];
                        }
                      }
                    }
                  }
                  return std::vector<Values>{dweight};
                },
            .check_gradient = false});
}

}  // namespace
}  // namespace fleet

// Convolutions of 1 x 1 with the batch normalizations around them (backend/cuda/pointwise.cu). Only
// cuda has such a kernel, for 16-bit types.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/engine/ops/naive_convolution.h"
#include "tests/engine/ops/op_check.h"
#include "tests/engine/ops/op_device.h"

namespace fleet {
namespace {

struct PointwiseCase {
  int64_t images, height, width, channels, filters, stride = 1;
  bool transforms = false, pivot = false;
  std::string activation = "relu";

  NaiveConvolution naive() const {
    return {.x = {images, channels, height, width},
            .weight = {filters, channels, 1, 1},
            .strides = {stride, stride},
            .paddings = {0, 0},
            .dilations = {1, 1},
            .groups = 1};
  }
};

CheckInput per_channel(int64_t count, bool present, double low, double high) {
  return {.shape = {count},
          .dtype = DType::kFloat32,
          .kind = VarKind::kState,
          .differentiate = false,
          .present = present,
          .low = low,
          .high = high};
}

int64_t channel_at(const Shape& image, size_t i) {
  return static_cast<int64_t>(i) / (image[2] * image[3]) % image[1];
}

// y, sum and squares, of the values that memory of a 16-bit type holds.
std::vector<Values> pointwise_reference(const PointwiseCase& c, const std::vector<Values>& in) {
  const NaiveConvolution naive = c.naive();
  Values x = in[0];
  for (size_t i = 0; c.transforms && i < x.size(); ++i) {
    const int64_t channel = channel_at(naive.x, i);
    const double value = x[i] * in[2][channel] + in[3][channel];
    x[i] = c.activation == "relu" ? std::max(value, 0.0) : value;
  }
  Values y = naive_convolution(naive, x, in[1], {}), sum(c.filters), squares(c.filters);
  for (size_t i = 0; i < y.size(); ++i) {
    const int64_t filter = channel_at(naive.y(), i);
    const double difference = y[i] - (c.pivot ? in[4][filter] : 0);
    sum[filter] += difference;
    squares[filter] += difference * difference;
  }
  return {y, sum, squares};
}

void check_pointwise(const PointwiseCase& c) {
  if (op_device().backend() != "cuda") GTEST_SKIP() << "no kernel on " << op_device().name();
  const NaiveConvolution naive = c.naive();
  const double scale = 2 / std::sqrt(static_cast<double>(c.channels));
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    SCOPED_TRACE(name_of(dtype));
    check_op(
        {.type = "conv2d_sums",
         .dtype = dtype,
         .attributes = {{"strides", std::vector<int64_t>{c.stride, c.stride}},
                        {"norm_activation", c.activation}},
         .inputs =
             {{.shape = naive.x},
              {.shape = naive.weight, .kind = VarKind::kParameter, .low = -scale, .high = scale},
              per_channel(c.channels, c.transforms, 0.5, 1.5),
              per_channel(c.channels, c.transforms, -0.5, 0.5),
              per_channel(c.filters, c.pivot, -0.5, 0.5)},
         .reference = [c](const std::vector<Values>& in) { return pointwise_reference(c, in); },
         .check_gradient = false});
  }
}

TEST(PointwiseSums, WholeTiles_MatchReference) {
  check_pointwise({.images = 2, .height = 8, .width = 16, .channels = 64, .filters = 64});
  check_pointwise({.images = 1, .height = 8, .width = 16, .channels = 128, .filters = 256});
}

TEST(PointwiseSums, RaggedEnds_MatchReference) {
  check_pointwise(
      {.images = 3, .height = 7, .width = 9, .channels = 72, .filters = 40, .pivot = true});
  check_pointwise({.images = 1, .height = 5, .width = 3, .channels = 8, .filters = 8});
  check_pointwise({.images = 1, .height = 13, .width = 11, .channels = 136, .filters = 136});
}

TEST(PointwiseSums, NormalizedInput_MatchesReference) {
  check_pointwise({.images = 2,
                   .height = 9,
                   .width = 8,
                   .channels = 256,
                   .filters = 64,
                   .transforms = true,
                   .pivot = true});
  check_pointwise(
      {.images = 1, .height = 3, .width = 7, .channels = 200, .filters = 128, .transforms = true});
  check_pointwise({.images = 1,
                   .height = 5,
                   .width = 5,
                   .channels = 24,
                   .filters = 24,
                   .transforms = true,
                   .activation = ""});
}

// More tiles than a block has stages, several of them for each block, and several blocks for the
// filters.
TEST(PointwiseSums, ManyTiles_MatchReference) {
  check_pointwise({.images = 5,
                   .height = 16,
                   .width = 21,
                   .channels = 72,
                   .filters = 128,
                   .transforms = true,
                   .pivot = true});
  check_pointwise({.images = 2, .height = 16, .width = 21, .channels = 64, .filters = 512});
}

TEST(PointwiseSums, DeepImage_MatchesReference) {
  check_pointwise(
      {.images = 1, .height = 7, .width = 7, .channels = 2048, .filters = 512, .transforms = true});
  check_pointwise({.images = 1, .height = 4, .width = 4, .channels = 512, .filters = 1024});
}

TEST(PointwiseSums, Stride_MatchesReference) {
  check_pointwise(
      {.images = 3, .height = 9, .width = 14, .channels = 64, .filters = 128, .stride = 2});
  check_pointwise({.images = 2,
                   .height = 10,
                   .width = 7,
                   .channels = 256,
                   .filters = 512,
                   .stride = 2,
                   .transforms = true});
}

}  // namespace
}  // namespace fleet

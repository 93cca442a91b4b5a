// Graphs of several operations for which cuDNN has engines. docs/performance/gpu.md has the result.
#include <gtest/gtest.h>

#include "backend/cuda/dnn.h"
#include "backend/cuda/dnn_convolution.h"
#include "tests/engine/backend/cuda/dnn/convolutions.h"
#include "tests/engine/backend/cuda/dnn/gpus.h"

namespace fleet::cuda::dnn {
namespace {

const Target& h200() {
  static const Target target(h200_properties());
  return target;
}

size_t plans(const Pattern& pattern) {
  return candidate_plans(make_graph(pattern), h200(), {.workspace = 512u << 20}, 1).size();
}

// All that a residual block's convolutions are asked for: every one but the network's first.
template <typename Body>
void each_inner(DType dtype, Convolution::Direction direction, Body body) {
  for (const Convolution& conv : convolutions("resnet50", 64, dtype)) {
    if (conv.direction == direction && conv.x[1] >= 64) body(conv);
  }
}

TEST(DnnPatterns, Float16OnHopper_AreSupportedForAllOfResnet50) {
  each_inner(DType::kFloat16, Convolution::kForward, [](const Convolution& conv) {
    EXPECT_TRUE(plans({.convolution = conv, .sums_y = true})) << conv.text();
    EXPECT_TRUE(plans({.convolution = conv, .transforms_x = true, .sums_y = true})) << conv.text();
  });
  each_inner(DType::kFloat16, Convolution::kWeight, [](const Convolution& conv) {
    EXPECT_TRUE(plans({.convolution = conv, .transforms_x = true})) << conv.text();
  });
  each_inner(DType::kFloat16, Convolution::kData, [](const Convolution& conv) {
    EXPECT_TRUE(plans({.convolution = conv, .normalises_x = true})) << conv.text();
  });
}

// If this test fails, cuDNN has gained engines: update docs/performance/gpu.md and fuse_resunit.
TEST(DnnPatterns, BFloat16OnHopper_HasNone) {
  each_inner(DType::kBFloat16, Convolution::kForward, [](const Convolution& conv) {
    EXPECT_FALSE(plans({.convolution = conv, .sums_y = true})) << conv.text();
  });
}

}  // namespace
}  // namespace fleet::cuda::dnn

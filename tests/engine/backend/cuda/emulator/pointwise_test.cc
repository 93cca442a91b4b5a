// What scripts/gpu_bench.sh pointwise runs on a GPU, with small images on the emulated one.
#include <gtest/gtest.h>

#include "exec/backend.h"
#include "tests/bench/pointwise_layers.h"

namespace fleet {
namespace {

TEST(PointwiseLayers, BothWays_Agree) {
  const DeviceChoice gpu = choose_device("cuda", 0);
  for (bench::PointwiseLayer layer : bench::pointwise_layers()) {
    if (layer.channels * layer.filters > 128 * 512) continue;  // seconds each
    SCOPED_TRACE(layer.name);
    layer.size = 9;
    for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
      const double allowed = dtype == DType::kFloat16 ? 4e-3 : 3e-2;
      EXPECT_LE(bench::pointwise_difference(*gpu.device, layer, 2, dtype), allowed);
    }
  }
}

}  // namespace
}  // namespace fleet

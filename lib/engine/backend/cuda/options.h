// The cuda backend's own options. Names and defaults are those of Paddle 2.1's flags and strategy.
#pragma once

#include <cstdint>

#include "base/config.h"

namespace fleet::cuda {

struct CudaOptions {
  bool tensor_op_math = false;              // TF32 for float32 products and convolutions
  bool cudnn_exhaustive_search = false;     // measure algorithms instead of using heuristics
  int64_t conv_workspace_size_limit = 512;  // MiB, per convolution
  double memory_fraction = 0.92;            // fraction of the device's memory that may be used
};
Schema options_schema();
// settings: of options_schema().
CudaOptions options_from(const Settings& settings);

}  // namespace fleet::cuda

#include "backend/cuda/options.h"

namespace fleet::cuda {

Schema options_schema() {
  const CudaOptions initial;
  return Schema()
      .boolean("tensor_op_math", initial.tensor_op_math,
               "TF32 for float32 products and convolutions")
      .boolean("cudnn_exhaustive_search", initial.cudnn_exhaustive_search,
               "measure cuDNN's algorithms instead of using its heuristics")
      .integer("conv_workspace_size_limit", initial.conv_workspace_size_limit, 0, 1e9,
               "MiB that an algorithm of cuDNN may use, per convolution")
      .number("memory_fraction", initial.memory_fraction, 0, 1,
              "fraction of the device's memory that may be used");
}

CudaOptions options_from(const Settings& settings) {
  return {.tensor_op_math = settings.boolean("tensor_op_math"),
          .cudnn_exhaustive_search = settings.boolean("cudnn_exhaustive_search"),
          .conv_workspace_size_limit = settings.integer("conv_workspace_size_limit"),
          .memory_fraction = settings.number("memory_fraction")};
}

}  // namespace fleet::cuda

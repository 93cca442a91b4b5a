#include <gtest/gtest.h>

#include "exec/kernel.h"

namespace fleet {
namespace {

// On cuDNN and cuBLASLt, which the emulated GPU has not.
bool is_on_a_library(const std::string& type) {
  for (const char* family :
       {"conv2d", "batch_norm", "fused_bn_add_activation", "pool2d", "fc", "matmul"}) {
    if (type.starts_with(family)) return true;
  }
  return false;
}

bool has_kernel(const OpDef& def) {
  try {
    find_kernel("cuda", Program(), Op{.def = &def});
    return true;
  } catch (const Error& error) {  // there may be one for other types than this one without inputs
    return std::string(error.what()).find("no cuda kernel for") != std::string::npos;
  }
}

TEST(CudaKernels, EveryOperation_HasOneOrIsALibrarys) {
  for (const std::string& type : op_registry().names()) {
    if (is_on_a_library(type)) continue;
    EXPECT_TRUE(has_kernel(op_registry().get(type))) << type << " has no cuda kernel";
  }
}

}  // namespace
}  // namespace fleet

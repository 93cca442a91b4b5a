#include <cstdio>

#include "exec/backend.h"
#include "tensor/host.h"
#include "tests/engine/ops/op_device.h"

namespace fleet {

Device& op_device() {
  static HostDevice device;
  return device;
}

PlanOptions op_plan_options() { return {.device = &op_device()}; }

const std::vector<OpVariant>& op_variants() {
  static const std::vector<OpVariant> all = [] {
    std::vector<OpVariant> variants = {{.dtype = DType::kFloat32}};
    std::string why;
    for (DType dtype : low_precision_types("cpu", &why)) variants.push_back({.dtype = dtype});
    if (!why.empty()) std::printf("[   NOTE   ] in float32 only: %s\n", why.c_str());
    return variants;
  }();
  return all;
}

bool op_may_lack_kernel() { return false; }

}  // namespace fleet

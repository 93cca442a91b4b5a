#include "tensor/host.h"
#include "tests/ops/op_device.h"

namespace fleet {

Device& op_device() {
  static HostDevice device;
  return device;
}

PlanOptions op_plan_options() { return {.device = &op_device()}; }

const std::vector<OpVariant>& op_variants() {
  static const std::vector<OpVariant> none;
  return none;
}

bool op_may_lack_kernel() { return false; }

}  // namespace fleet

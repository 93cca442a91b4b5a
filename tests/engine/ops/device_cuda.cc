// The CUDA backend: of a real GPU, or the emulated one where that is linked.
#include <gtest/gtest.h>

#include "exec/backend.h"
#include "tests/engine/ops/op_device.h"

namespace fleet {
namespace {

DeviceChoice& choice() {
  static DeviceChoice choice = choose_device("cuda", 0, {.deterministic = true});
  return choice;
}

bool is_emulated() { return std::string(FLEET_OPS_DEVICE) == "emulated"; }

class Gpu : public testing::Environment {
 public:
  void SetUp() override {
    if (op_device().backend() != "cuda") GTEST_SKIP() << choice().note;
  }
};

[[maybe_unused]] testing::Environment* const gpu =
    testing::AddGlobalTestEnvironment(new Gpu);  // NOLINT(cppcoreguidelines-owning-memory)

}  // namespace

Device& op_device() { return *choice().device; }

PlanOptions op_plan_options() { return {.backend = op_device().backend(), .device = &op_device()}; }

const std::vector<OpVariant>& op_variants() {
  static const std::vector<OpVariant> all = [] {
    std::vector<OpVariant> variants = {{.dtype = DType::kFloat32},
                                       {.dtype = DType::kFloat32, .channels_last = true},
                                       {.dtype = DType::kFloat16, .channels_last = true},
                                       {.dtype = DType::kBFloat16, .channel_block = 8}};
    if (is_emulated()) return variants;  // which takes long
    variants.push_back({.dtype = DType::kFloat16, .channel_block = 8});
    variants.push_back({.dtype = DType::kBFloat16});
    return variants;
  }();
  return all;
}

bool op_may_lack_kernel() { return is_emulated(); }

}  // namespace fleet

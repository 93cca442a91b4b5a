#include "exec/backend.h"

#include <dnnl.hpp>

#include "backend/cpu/device.h"

namespace fleet {
namespace {

// Without these instructions oneDNN emulates bfloat16, at a third of float32's speed.
std::vector<DType> low_precision(std::string* why) {
  const auto native = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
  if ((static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & native) == native) {
    return {DType::kBFloat16};
  }
  *why = "this processor has no avx512_bf16";
  return {};
}

}  // namespace

FLEET_BACKEND(cpu) {
  def.device_count = [](std::string*) { return 1; };
  def.options = cpu::options_schema();
  def.make_device = [](int, const DeviceOptions& options,
                       const Settings& own) -> std::unique_ptr<Device> {
    return std::make_unique<cpu::CpuDevice>(cpu::options_from(own), options);
  };
  def.low_precision = low_precision;
  def.passes = {"fuse_bn_recomputed_act"};
  def.uses_host_memory = true;
  def.uses_host_cores = true;
  def.false_notes = {{"use_cudnn", "model.use_cudnn has no effect on the CPU: there is no cuDNN"}};
}

}  // namespace fleet

#include "exec/backend.h"

#include <dnnl.hpp>

#include "tensor/host.h"

namespace fleet {
namespace {

// oneDNN emulates bfloat16 where it can do without these instructions: at a third of float32's
// speed.
std::vector<DType> low_precision(std::string* why) {
  const auto native = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
  if ((static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & native) == native) {
    return {DType::kBFloat16};
  }
  *why = "this processor has no avx512_bf16";
  return {};
}

[[maybe_unused]] const bool registered = register_backend(
    "cpu", {.device_count = [](std::string*) { return 1; },
            .make_device = [](int, const DeviceOptions& options) -> std::unique_ptr<Device> {
              return std::make_unique<HostDevice>(options);
            },
            .low_precision = low_precision});

}  // namespace
}  // namespace fleet

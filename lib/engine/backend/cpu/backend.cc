#include "exec/backend.h"

#include <omp.h>

#include <dnnl.hpp>

#include "tensor/host.h"

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

// Deterministic: one thread computes, because sums over the parts of several threads depend on
// their number, and that depends on the machine and OMP_NUM_THREADS. OpenMP keeps the number per
// thread, so it is set both for the thread that makes the device (it plans) and for the stream
// threads (they compute).
class CpuDevice : public HostDevice {
 public:
  explicit CpuDevice(const DeviceOptions& options) : HostDevice(options) {
    threads_ = omp_get_max_threads();
    if (options.deterministic) omp_set_num_threads(1);
  }
  std::vector<std::string> description() const override {
    if (!options().deterministic || threads_ == 1) return {};
    return {"train.deterministic: using one thread instead of " + std::to_string(threads_)};
  }
  std::unique_ptr<Stream> make_stream(const std::string& name) override {
    std::unique_ptr<Stream> stream = HostDevice::make_stream(name);
    if (options().deterministic) {
      HostStream::of(*stream).enqueue([] { omp_set_num_threads(1); });
    }
    return stream;
  }

 private:
  int threads_ = 1;
};

[[maybe_unused]] const bool registered = register_backend(
    "cpu", {.device_count = [](std::string*) { return 1; },
            .make_device = [](int, const DeviceOptions& options) -> std::unique_ptr<Device> {
              return std::make_unique<CpuDevice>(options);
            },
            .low_precision = low_precision});

}  // namespace
}  // namespace fleet

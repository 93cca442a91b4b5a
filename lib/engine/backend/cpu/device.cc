#include "backend/cpu/device.h"

#include <omp.h>

#include "base/thread.h"

namespace fleet::cpu {

Schema options_schema() {
  return Schema().integer("conv_workspace_size_limit", CpuOptions().conv_workspace_size_limit, 0,
                          1e9, "MiB that Winograd's method may use, per convolution");
}

CpuOptions options_from(const Settings& settings) {
  return {.conv_workspace_size_limit = settings.integer("conv_workspace_size_limit")};
}

// OpenMP keeps the number of threads per thread, so it is set both for the thread that makes the
// device (it plans) and for the stream threads (they compute).
CpuDevice::CpuDevice(const CpuOptions& own, const DeviceOptions& options)
    : HostDevice(options), own_(own), threads_(omp_get_max_threads()) {
  (void)openmp_threads();  // warns if OpenMP has ignored the user's value
  if (options.deterministic) omp_set_num_threads(1);
}

std::vector<std::string> CpuDevice::description() const {
  if (!options().deterministic || threads_ == 1) return {};
  return {"train.deterministic: using one thread instead of " + std::to_string(threads_)};
}

std::unique_ptr<Stream> CpuDevice::make_stream(const std::string& name) {
  std::unique_ptr<Stream> stream = HostDevice::make_stream(name);
  if (options().deterministic) {
    HostStream::of(*stream).enqueue([] { omp_set_num_threads(1); });
  }
  return stream;
}

CpuOptions options_of(const Device* device) {
  const auto* cpu = dynamic_cast<const CpuDevice*>(device);
  return cpu ? cpu->cpu_options() : CpuOptions();
}

}  // namespace fleet::cpu

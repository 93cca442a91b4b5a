// The host as a device of the cpu backend, with the backend's own options.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "tensor/host.h"

namespace fleet::cpu {

struct CpuOptions {
  // MiB that Winograd's method may use, per convolution.
  int64_t conv_workspace_size_limit = 512;
};
Schema options_schema();
// settings: of options_schema().
CpuOptions options_from(const Settings& settings);

// Deterministic: one thread computes, because sums over the parts of several threads depend on
// their number, and that depends on the machine and OMP_NUM_THREADS.
class CpuDevice : public HostDevice {
 public:
  explicit CpuDevice(const CpuOptions& own = {}, const DeviceOptions& options = {});
  const CpuOptions& cpu_options() const { return own_; }
  std::vector<std::string> description() const override;
  std::unique_ptr<Stream> make_stream(const std::string& name) override;

 private:
  const CpuOptions own_;
  int threads_ = 1;
};

// The options of the device that a kernel is made for; the defaults if there is no device (a Plan
// that is only printed), or one of the host that has none.
CpuOptions options_of(const Device* device);

}  // namespace fleet::cpu

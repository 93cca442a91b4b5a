// NVIDIA's management library, loaded if available: utilization, memory and clock of a GPU.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tensor/device.h"

namespace fleet::cuda {

// One GPU, as NVML sees it. Not thread-safe.
class Nvml {
 public:
  static constexpr const char* kLibrary = "libnvidia-ml.so.1";
  // Null if the library cannot be loaded or does not know the GPU.
  //   pci_bus_id  in the format of cudaDeviceGetPCIBusId: NVML's GPU numbers ignore
  //   CUDA_VISIBLE_DEVICES
  static std::unique_ptr<Nvml> open(const std::string& pci_bus_id,
                                    const std::string& library = kLibrary);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  // Values that the GPU does not report (utilization of a MIG slice) are 0; empty if it reports
  // none.
  std::optional<Telemetry> read();

 private:
  struct Functions;
  Nvml(std::unique_ptr<Functions> functions, void* gpu);
  std::unique_ptr<Functions> functions_;
  void* gpu_;
};

}  // namespace fleet::cuda

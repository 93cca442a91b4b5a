// NVIDIA's management library, loaded where it is there: utilization, memory and clock of a GPU.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tensor/device.h"

namespace fleet::cuda {

// One GPU as NVML sees it. Not thread-safe.
class Nvml {
 public:
  static constexpr const char* kLibrary = "libnvidia-ml.so.1";
  // Null where the library cannot be loaded or does not know the GPU.
  //   pci_bus_id  as cudaDeviceGetPCIBusId writes it: NVML counts GPUs without CUDA_VISIBLE_DEVICES
  static std::unique_ptr<Nvml> open(const std::string& pci_bus_id,
                                    const std::string& library = kLibrary);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  // What the GPU does not tell (utilization of a MIG slice) is 0; nothing where it tells nothing.
  std::optional<Telemetry> read();

 private:
  struct Functions;
  Nvml(std::unique_ptr<Functions> functions, void* gpu);
  std::unique_ptr<Functions> functions_;
  void* gpu_;
};

}  // namespace fleet::cuda

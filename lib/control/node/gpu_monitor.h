// The GPUs of this node's ranks, by NVIDIA's management library. It is loaded at run time; without
// it, or for a GPU that it does not know, there is nothing to report.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rendezvous/types.h"

namespace fleet {

// Reads the GPUs on a thread of its own: a driver that hangs must not stop the launcher.
class GpuMonitor {
 public:
  static constexpr const char* kLibrary = "libnvidia-ml.so.1";

  // `devices`: as in Node.devices: positions in CUDA_VISIBLE_DEVICES, or numbers if that is unset.
  GpuMonitor(std::vector<int> devices, std::chrono::milliseconds interval,
             const std::string& library = kLibrary);
  ~GpuMonitor();  // waits at most a second for a driver that does not answer
  GpuMonitor(const GpuMonitor&) = delete;

  // The last values of each GPU, by device; empty before the first. Thread-safe; does not wait.
  std::map<int, wire::GpuUsage> latest() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// The NVML name of a device: a number, or a UUID if CUDA_VISIBLE_DEVICES (`visible`) lists those.
std::string gpu_name(int device, const std::string& visible);

}  // namespace fleet
